import { EXPECTED, OLDER, RIGHT, SPF, TOKEN } from './setup.ts'
import type { Broken, Truth } from './truth.ts'
import { zone } from './zone.ts'

/** A TXT record with any bytes, as a line of a zone file. */
function stored(...values: readonly string[]): string {
  const escaped = (value: string) =>
    Array.from(Buffer.from(value), (byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c || byte === 0x3b
        ? `\\${String(byte).padStart(3, '0')}`
        : String.fromCharCode(byte),
    ).join('')
  return values.map((value) => `@ TXT "${escaped(value)}"`).join('\n')
}

function value(id: string, what: string, values: readonly string[], truth: Omit<Truth, 'verdicts'>): Broken {
  const domain = `${id}.com`
  return {
    id,
    what,
    name: domain,
    zones: [zone(domain, stored(SPF, ...values))],
    truth: { verdicts: ['fix'], ...truth },
  }
}

const half = Math.floor(TOKEN.length / 2)

/** The wrong value at the right name. */
export const VALUES: readonly Broken[] = [
  value('v-none', 'nothing but SPF', [], { codes: ['missing'] }),
  value('v-quoted', 'quotation marks stored', [`"${EXPECTED}"`], { codes: ['quoted'] }),
  value('v-typographic', 'typographic quotation marks stored', [`“${EXPECTED}”`], { codes: ['quoted'] }),
  value('v-blank', 'a space at the end', [`${EXPECTED} `], { codes: ['whitespace'] }),
  value('v-nbsp', 'a no-break space inside', [EXPECTED.replace('=', '=\u00a0')], { codes: ['whitespace'] }),
  value('v-zerowidth', 'a zero-width space inside', [EXPECTED.replace('=', '=\u200b')], {
    codes: ['whitespace'],
  }),
  value('v-case', 'in lowercase', [EXPECTED.toLowerCase()], { codes: ['case_changed'] }),
  value('v-cut', 'truncated at the end', [EXPECTED.slice(0, 20)], { codes: ['truncated'] }),
  value('v-halves', 'cut into two records', [EXPECTED.slice(0, 12), EXPECTED.slice(12)], {
    codes: ['split_records'],
  }),
  value('v-older', 'an older token', [OLDER], { codes: ['stale_token'] }),
  value('v-token', 'only the token', [TOKEN], { codes: ['token_only'] }),
  value('v-prefix', 'only the prefix', ['mc-verify='], { codes: ['prefix_only'] }),
  value('v-line', 'a whole zone line', [`v-line.com. 300 IN TXT "${EXPECTED}"`], { codes: ['pasted_line'] }),
  value('v-extra', 'after SPF in one record', [`${SPF} ${EXPECTED}`], { codes: ['extra_text'] }),
  value('v-endash', 'an en dash for the hyphen', [EXPECTED.replace('-', '\u2013')], {
    firstMentions: /dash|U\+2013/i,
  }),
  value('v-nbhyphen', 'a non-breaking hyphen', [EXPECTED.replace('-', '\u2011')], {
    firstMentions: /hyphen|U\+2011/i,
  }),
  value('v-fullwidth', 'a full-width equals sign', [EXPECTED.replace('=', '\uff1d')], {
    firstMentions: /full-?width|U\+FF1D/i,
  }),
  value('v-colon', 'a colon for the equals sign', [EXPECTED.replace('=', ':')], {
    firstMentions: /":"|colon|equals|"="/i,
  }),
  value('v-colonblank', 'a colon and a space for the equals sign', [EXPECTED.replace('=', ': ')], {
    firstMentions: /":|colon|equals|"="/i,
  }),
  value('v-percent', '%3D for the equals sign', [EXPECTED.replace('=', '%3D')], {
    firstMentions: /%3D|encod/i,
  }),
  value('v-backslash', 'a backslash before the equals sign', [EXPECTED.replace('=', '\\=')], {
    firstMentions: /backslash|escap/i,
  }),
  value('v-underscore', 'an underscore for the hyphen', [EXPECTED.replace('-', '_')], {
    firstMentions: /underscore|"_"|hyphen/i,
  }),
  value('v-swapped', 'the halves around "=" swapped', [`${TOKEN}=mc-verify`], {
    firstMentions: /swap|order|reverse|before|exchanged/i,
  }),
  value(
    'v-swappedcut',
    'two halves in the wrong order in one record',
    [TOKEN.slice(half) + TOKEN.slice(0, half)],
    { codes: ['missing', 'stale_token'] },
  ),
  value('v-homoglyph', 'a Cyrillic letter that looks the same', [EXPECTED.replace('B', '\u0412')], {
    firstMentions: /look|Cyrillic|U\+0412/i,
  }),
  value('v-onechar', 'one wrong character', [EXPECTED.replace('p', 'q')], {
    firstMentions: /character|typ(o|ed|ing)|copied/i,
  }),
  value('v-placeholder', 'the placeholder from the instructions', ['mc-verify=YOUR_TOKEN'], {
    firstMentions: /placeholder|example|instructions/i,
  }),
  {
    id: 'v-givenquotes',
    what: 'the right record; the given value has quotation marks',
    name: 'givenquotes.com',
    value: `"${EXPECTED}"`,
    zones: [zone('givenquotes.com', RIGHT)],
    truth: {
      verdicts: ['fix', 'ready', 'ready_with_warning'],
      firstMentions: /given|--value|you (typed|passed|gave)/i,
      never: /(Add|Replace|Enter|Type)[^\n]*\\?"mc-verify/,
    },
  },
]

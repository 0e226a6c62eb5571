import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { splitValue, type TxtRecord } from '../../src/claims/record.ts'
import {
  PROVIDER_NAMES,
  type ProviderName,
  providerSnippet,
  replacesRecordSet,
} from '../../src/claims/record-providers.ts'
import { harmfulIn } from '../hardening/in-process-client.ts'
import { find, needs } from '../requirements.ts'

/** Text that tools, shells and languages interpret, mixed with harmless text. */
const hostileText = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 12 }) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
      fc.constantFrom('@/etc/passwd', '=@~/.ssh/id_rsa', '--help', '-x', '$(id)', '`id`', "'", "'\\''"),
      fc.constantFrom(
        // biome-ignore lint/suspicious/noTemplateCurlyInString: Terraform's syntax.
        '${file("x")}',
        '$${a}',
        '%{if a}',
        '%%{',
        '\\',
        '"',
        '!!',
        '~',
        '*',
        '\n',
        '\r\n',
        '\0',
      ),
      fc.constantFrom('\u001b]52;c;ZXZpbA==\u0007', '\u009b2J', '\u202e', '\u3164', '\ud800', 'é', '😀'),
      fc.constantFrom(',', '^:^', ':;|~#', '@', '@@', '@@@', ' '),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((pieces) => pieces.join(''))
  .filter((text) => text !== '')
/** Values of the documented shape, with any token. */
const values = fc.oneof(
  hostileText,
  hostileText.map((token) => `prefix=${token}`),
  fc.constantFrom('@/etc/passwd', 'prefix=@/etc/passwd', '--subscription=evil', `p=${'x'.repeat(600)}`),
)

const ZONE = { zone: 'example.com', isOneOfSeveral: false }
const record: TxtRecord = { name: 'app.example.com', value: 'prefix=token', ttl: undefined }

/** The snippet, or undefined if the provider's tool can't take the value. */
function snippetOf(provider: ProviderName, value: string): string | undefined {
  try {
    return providerSnippet(provider, { ...record, value }, ZONE)
  } catch (error) {
    expect(error).toMatchObject({ code: 'value_unusable', exit: 7 })
    expect(provider).toBe('azure-dns')
    return undefined
  }
}

/** Pastes a snippet into a shell in which the tool only prints its arguments. */
function argumentsReceived(snippet: string): string[] {
  const stubs = ['curl', 'gcloud', 'az'].map((tool) => `${tool}() { printf '%s\\0' "$@"; }\n`).join('')
  const output = execFileSync(find('bash') ?? '', ['--norc', '-c', `${stubs}${snippet}`], {
    env: { PATH: '', RESOURCE_GROUP: 'group', MANAGED_ZONE: 'zone' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return output.split('\0').slice(0, -1)
}

/** The rest of the only argument that begins with this option. */
function optionValue(words: readonly string[], option: string): string {
  const [found = '', ...more] = words.filter((word) => word.startsWith(`${option}=`))
  expect(more).toEqual([])
  return found.slice(option.length + 1)
}

/** The bytes of quoted strings as DNS providers read them: `\DDD`, or an escaped character. */
function readStrings(text: string, base: 8 | 10 = 10): Buffer[] {
  expect(text).toMatch(/^"([^"\\]|\\.)*"( "([^"\\]|\\.)*")*$/)
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, inner = '']) =>
    Buffer.from(
      [...inner.matchAll(/\\(\d{3})|\\?(.)/g)].map(([, digits, character = '']) =>
        digits === undefined ? character.charCodeAt(0) : Number.parseInt(digits, base),
      ),
    ),
  )
}

const unquote = (text: string) => Buffer.concat(readStrings(text)).toString()

/** The items of a list as gcloud reads it. */
function gcloudItems(list: string): string[] {
  const [, separator = ',', items = list] = /^\^([^^]+)\^(.*)$/s.exec(list) ?? []
  return items.split(separator)
}

/** A text as a process receives it: a lone surrogate can't be encoded. */
const asBytes = (text: string) => Buffer.from(text).toString()

describe('a snippet for any value', () => {
  test.each(PROVIDER_NAMES)(
    'the snippet for %s contains no character that acts on a terminal',
    (provider) => {
      fc.assert(
        fc.property(values, (value) => {
          const snippet = snippetOf(provider, value)
          if (snippet !== undefined) expect(harmfulIn(snippet)).toEqual([])
        }),
        { numRuns: 1000 },
      )
    },
  )

  describe.runIf(needs('bash'))('pasted into a shell', () => {
    const runs = { numRuns: 150 }

    test('the pasted snippet gives curl the record in one argument', () => {
      fc.assert(
        fc.property(values, (value) => {
          const words = argumentsReceived(snippetOf('cloudflare', value) ?? '')
          expect(words.slice(0, -1)).toEqual([
            '--fail-with-body',
            '-X',
            'POST',
            'https://api.cloudflare.com/client/v4/zones//dns_records',
            '-H',
            '@-',
            '-H',
            'Content-Type: application/json',
            '--data',
          ])
          // Not "@", which means a file.
          expect(words.at(-1)).toMatch(/^\{/)
          const body = JSON.parse(words.at(-1) ?? '') as { name: string; content: string }
          expect(body.name).toBe(record.name)
          expect(unquote(body.content)).toBe(asBytes(value))
        }),
        runs,
      )
    })

    test('the pasted snippet gives gcloud a list that contains only the record', () => {
      fc.assert(
        fc.property(values, (value) => {
          const words = argumentsReceived(snippetOf('google-cloud-dns', value) ?? '')
          expect(words.slice(0, -1)).toEqual(
            'dns record-sets create app.example.com. --zone=zone --type=TXT --ttl=300'.split(' '),
          )
          const list = optionValue(words, '--rrdatas')
          expect(gcloudItems(list).map(unquote)).toEqual([asBytes(value)])
        }),
        runs,
      )
    })

    test('the pasted snippet gives az the value, which it takes neither for a file nor for an option', () => {
      fc.assert(
        fc.property(values, (value) => {
          const snippet = snippetOf('azure-dns', value)
          if (snippet === undefined) return
          const words = argumentsReceived(snippet)
          // az looks for a file after a leading "@", and after the first "=".
          for (const word of words) expect(word.replace(/^[^=]*=/, '')).not.toMatch(/^@./s)
          expect(words).toEqual([
            ...'network dns record-set txt add-record --resource-group group'.split(' '),
            '--zone-name=example.com',
            '--record-set-name=app',
            `--value=${value}`,
          ])
        }),
        runs,
      )
    })
  })

  test('the Terraform snippet contains strings without expressions', () => {
    fc.assert(
      fc.property(values, (value) => {
        const snippet = snippetOf('terraform', value) ?? ''
        const [, text = ''] = /^ {2}txt {2}= \[(".*")\]$/m.exec(snippet) ?? []
        expect(text).not.toMatch(/[$%]\{/)
        expect(unquote(`"${JSON.parse(text)}"`)).toBe(asBytes(value))
      }),
    )
  })

  test('the Route 53 snippet is a change batch', () => {
    fc.assert(
      fc.property(values, (value) => {
        const batch = JSON.parse(snippetOf('route53', value) ?? '')
        const [{ Value: text }] = batch.Changes[0].ResourceRecordSet.ResourceRecords
        expect(Buffer.concat(readStrings(text, 8)).toString()).toBe(asBytes(value))
      }),
    )
  })

  test('the nsupdate snippet has the record on one line', () => {
    fc.assert(
      fc.property(values, (value) => {
        const lines = (snippetOf('nsupdate', value) ?? '').split('\n')
        expect(lines.length).toBe(3)
        expect(unquote(lines[1]?.replace('update add app.example.com. 300 IN TXT ', '') ?? '')).toBe(
          asBytes(value),
        )
      }),
    )
  })
})

/** A string of a TXT record: any bytes, or text that tools interpret. */
const txtString = fc.oneof(
  fc.uint8Array({ maxLength: 255 }).map((bytes) => Buffer.from(bytes)),
  hostileText.map((text) => Buffer.from(text).subarray(0, 255)),
)
const txtValue = fc
  .array(txtString, { minLength: 1, maxLength: 3 })
  .map((strings) => ({ strings, bytes: Buffer.concat(strings) }))
/** What is in DNS before: other values, and the new one or not. */
const before = fc
  .record({
    value: values,
    others: fc.array(txtValue, { maxLength: 4 }),
    published: fc.boolean(),
    // A TTL of 0 may have been an invalid one (RFC 2181 section 8).
    ttl: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 86_400 })),
  })
  .map(({ value, others, published, ttl }) => {
    const bytes = Buffer.from(value)
    const own = { bytes, strings: [bytes.subarray(0, 200), bytes.subarray(200, 400), bytes.subarray(400)] }
    const existing = published ? [...others, own] : others
    const isThere = existing.some((other) => other.bytes.equals(bytes))
    const after = existing.map(({ strings }) => strings)
    return {
      value,
      existing: { values: existing, ttl: existing.length > 0 ? ttl : null },
      /** Each value's strings that the set must have afterwards, with the new value once. */
      after: isThere ? after : [...after, splitValue(value)],
      ttl: (existing.length > 0 && ttl) || 300,
    }
  })

/** How the tool of each provider that replaces record sets reads a snippet: the whole set that it leaves. */
const SET_READERS: Partial<
  Record<ProviderName, (snippet: string) => { values: Buffer[][]; ttl: number | undefined }>
> = {
  route53: (snippet) => {
    const { Changes, Comment } = JSON.parse(snippet)
    expect(Comment.length).toBeLessThanOrEqual(256)
    expect(Changes).toHaveLength(1)
    const [{ Action, ResourceRecordSet: set }] = Changes
    expect([Action, set.Name, set.Type]).toEqual(['UPSERT', 'app.example.com.', 'TXT'])
    const values = set.ResourceRecords.map(({ Value }: { Value: string }) => readStrings(Value, 8))
    return { values, ttl: set.TTL }
  },
  'google-cloud-dns': (snippet) => {
    const words = argumentsReceived(snippet)
    const items = gcloudItems(optionValue(words, '--rrdatas'))
    return { values: items.map((item) => readStrings(item)), ttl: Number(optionValue(words, '--ttl')) }
  },
  terraform: (snippet) => {
    const [, list = ''] = /^ {2}txt {2}= (\[".*"\])$/m.exec(snippet) ?? []
    expect(list).not.toMatch(/[$%]\{/)
    const values = (JSON.parse(list) as string[]).map((text) => readStrings(`"${text}"`))
    return { values, ttl: Number(/^ {2}ttl {2}= (\d+)$/m.exec(snippet)?.[1]) }
  },
}

describe.each(PROVIDER_NAMES.filter(replacesRecordSet))('a snippet for %s', (provider) => {
  const read = SET_READERS[provider]
  const needsShell = provider === 'google-cloud-dns'

  test.runIf(!needsShell || needs('bash'))(
    'keeps every value that is in DNS, byte for byte, and the TTL unless it is 0, and has the new value once',
    () => {
      fc.assert(
        fc.property(before, ({ value, existing, after, ttl }) => {
          const snippet = providerSnippet(provider, { ...record, value }, ZONE, existing)
          expect(harmfulIn(snippet)).toEqual([])
          expect(read?.(snippet)).toEqual({ values: after, ttl })
        }),
        { numRuns: needsShell ? 150 : 500 },
      )
    },
  )

  test('says which values it has', () => {
    const snippet = (...existing: Parameters<typeof providerSnippet>[3][]) =>
      providerSnippet(provider, record, ZONE, ...existing)
    expect(snippet()).toContain('other')
    expect(snippet({ values: [], ttl: null })).toContain('Keeps the TXT records that were in DNS')
  })
})

test('gcloud creates a record set only if DNS has none, and updates it otherwise', () => {
  const spf = Buffer.from('v=spf1 -all')
  const verb = (existing?: Parameters<typeof providerSnippet>[3]) =>
    /record-sets (\w+)/.exec(providerSnippet('google-cloud-dns', record, ZONE, existing))?.[1]
  expect(verb()).toBe('create')
  expect(verb({ values: [], ttl: null })).toBe('create')
  expect(verb({ values: [{ bytes: spf, strings: [spf] }], ttl: 60 })).toBe('update')
})

test.each([
  ['@/etc/passwd', 'names a file'],
  ['prefix=\u001b[2J', 'cannot be typed'],
  ['prefix=\u202e', 'reorders the line'],
])('the value %j is refused for az: it %s', (value) => {
  expect(() => providerSnippet('azure-dns', { ...record, value }, ZONE)).toThrow(
    expect.objectContaining({ code: 'value_unusable', exit: 7 }),
  )
})

test('a value whose token begins with "@" reaches az, which looks for no file after a second "="', () => {
  expect(providerSnippet('azure-dns', { ...record, value: 'prefix=@~/.ssh/id_rsa' }, ZONE)).toContain(
    `--value='prefix=@~/.ssh/id_rsa'`,
  )
})

const label = fc
  .array(fc.constantFrom('a', 'b', '1', '-'), { minLength: 1, maxLength: 5 })
  .map((characters) => characters.join(''))
  .filter((text) => /^[^-](?:.*[^-])?$/.test(text))
const zoneName = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join('.'))

test('snippets of several zones identify each zone at its provider by a variable of its own', () => {
  const variable = (provider: ProviderName, zone: string) =>
    /\$((?:CLOUDFLARE_ZONE|MANAGED)\w+)/.exec(
      providerSnippet(provider, { ...record, name: zone }, { zone, isOneOfSeveral: true }),
    )?.[1]
  expect(variable('cloudflare', 'a-b.com')).toBe('CLOUDFLARE_ZONE_ID_A__B_COM')
  fc.assert(
    fc.property(zoneName, zoneName, (one, other) => {
      for (const provider of ['cloudflare', 'google-cloud-dns'] as const)
        expect(variable(provider, one) === variable(provider, other)).toBe(one === other)
    }),
  )
})

test('Terraform resources of several names, or of several runs, have different names', () => {
  const resource = (name: string) =>
    /"dns_txt_record_set" "([\w-]+)"/.exec(providerSnippet('terraform', { ...record, name }, ZONE))?.[1]
  expect(resource('a-b.com')).toBe('domain_claim_a-b_com')
  fc.assert(
    fc.property(zoneName, zoneName, (one, other) => {
      expect(resource(one) === resource(other)).toBe(one === other)
    }),
  )
})

test('of several changes for Route 53 each is a line', () => {
  const several = providerSnippet('route53', record, { ...ZONE, isOneOfSeveral: true })
  expect(several).not.toContain('\n')
  expect(JSON.parse(several)).toEqual(JSON.parse(providerSnippet('route53', record, ZONE)))
})

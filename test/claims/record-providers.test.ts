import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TxtRecord } from '../../src/claims/record.ts'
import { PROVIDER_NAMES, type ProviderName, providerSnippet } from '../../src/claims/record-providers.ts'
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

const record: TxtRecord = { name: 'app.example.com', value: 'prefix=token', ttl: undefined }

/** The snippet, or undefined if the provider's tool can't take the value. */
function snippetOf(provider: ProviderName, value: string): string | undefined {
  try {
    return providerSnippet(provider, { ...record, value }, 'example.com')
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

/** The text of quoted strings as DNS providers read them: `\DDD`, or an escaped character. */
function unquote(text: string): string {
  expect(text).toMatch(/^"([^"\\]|\\.)*"( "([^"\\]|\\.)*")*$/)
  const bytes = [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].flatMap(([, inner = '']) =>
    [...inner.matchAll(/\\(\d{3})|\\?(.)/g)].map(([, digits, character = '']) =>
      digits === undefined ? character.charCodeAt(0) : Number.parseInt(digits, 10),
    ),
  )
  return Buffer.from(bytes).toString()
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
            'Authorization: Bearer ',
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
          const [, separator = ',', items = list] = /^\^([^^]+)\^(.*)$/s.exec(list) ?? []
          expect(items.split(separator).map(unquote)).toEqual([asBytes(value)])
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
        // Route 53's escapes are octal.
        const decimal = text.replace(/\\(\d{3})/g, (_: string, digits: string) => {
          return `\\${String(Number.parseInt(digits, 8)).padStart(3, '0')}`
        })
        expect(unquote(decimal)).toBe(asBytes(value))
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

test.each([
  ['@/etc/passwd', 'names a file'],
  ['prefix=\u001b[2J', 'cannot be typed'],
  ['prefix=\u202e', 'reorders the line'],
])('the value %j is refused for az: it %s', (value) => {
  expect(() => providerSnippet('azure-dns', { ...record, value }, 'example.com')).toThrow(
    expect.objectContaining({ code: 'value_unusable', exit: 7 }),
  )
})

test('a value whose token begins with "@" reaches az, which looks for no file after a second "="', () => {
  expect(
    providerSnippet('azure-dns', { ...record, value: 'prefix=@~/.ssh/id_rsa' }, 'example.com'),
  ).toContain(`--value='prefix=@~/.ssh/id_rsa'`)
})

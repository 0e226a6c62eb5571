import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  accessTokenFormat,
  claimFormat,
  journalFormat,
  secretFormat,
  sessionFormat,
  supersededFormat,
} from '../../src/storage/file-formats.ts'
import type { FileSchema } from '../../src/storage/schema.ts'

const NOON = Date.parse('2026-11-20T12:00:00.000Z')

/** One file of each kind: the schema, what the program works with, and what is on the disk. */
const files: readonly [name: string, format: FileSchema<unknown>, value: unknown, onDisk: object][] = [
  [
    'a session',
    sessionFormat,
    {
      kind: 'oauth',
      id: '0123456789ab',
      profile: 'work',
      issuer: 'https://api.example.com',
      store: 'keychain',
      signedInAt: NOON,
      clientId: 'client',
      scope: null,
      resource: null,
      ended: { at: NOON, description: null, cause: 'refused', renewedAt: NOON },
    },
    {
      version: 1,
      kind: 'oauth',
      id: '0123456789ab',
      profile: 'work',
      issuer: 'https://api.example.com',
      store: 'keychain',
      signed_in_at: '2026-11-20T12:00:00.000Z',
      client_id: 'client',
      scope: null,
      resource: null,
      ended: {
        at: '2026-11-20T12:00:00.000Z',
        description: null,
        cause: 'refused',
        renewed_at: '2026-11-20T12:00:00.000Z',
      },
    },
  ],
  [
    'a stored API key',
    sessionFormat,
    {
      kind: 'api_key',
      id: '0123456789ab',
      profile: 'work',
      issuer: null,
      store: 'file',
      signedInAt: NOON,
    },
    {
      version: 1,
      kind: 'api_key',
      id: '0123456789ab',
      profile: 'work',
      issuer: null,
      store: 'file',
      signed_in_at: '2026-11-20T12:00:00.000Z',
    },
  ],
  [
    'an access token',
    accessTokenFormat,
    {
      session: '0123456789ab',
      generation: 3,
      issuer: 'https://api.example.com',
      clientId: 'client',
      value: 'token',
      scope: 'emails:send',
      narrowed: true,
      expiresInSeconds: 900,
      received: { wall: NOON, sinceBoot: 12.5, boot: null },
    },
    {
      version: 1,
      session: '0123456789ab',
      generation: 3,
      issuer: 'https://api.example.com',
      client_id: 'client',
      access_token: 'token',
      scope: 'emails:send',
      scope_is: 'narrowed',
      expires_in: 900,
      received_at: '2026-11-20T12:00:00.000Z',
      received_since_boot: 12.5,
      boot: null,
    },
  ],
  [
    'a secret',
    secretFormat,
    { generation: 2, issuedAt: NOON, value: 'refresh-token' },
    { version: 1, generation: 2, issued_at: '2026-11-20T12:00:00.000Z', secret: 'refresh-token' },
  ],
  ['a journal entry', journalFormat, { sentAt: NOON }, { version: 1, sent_at: '2026-11-20T12:00:00.000Z' }],
  [
    'a list of superseded secrets',
    supersededFormat,
    { keychain: [{ account: 'work https://api.example.com 0123456789ab' }] },
    { version: 1, keychain: [{ account: 'work https://api.example.com 0123456789ab' }] },
  ],
  [
    'a claim',
    claimFormat,
    {
      issuer: 'https://api.example.com',
      seen_at: '2026-11-20T12:00:00.000Z',
      claim: { name: 'example.com', domain_id: 'd1', later_field: [1] },
      gone_at: null,
    },
    {
      version: 1,
      issuer: 'https://api.example.com',
      seen_at: '2026-11-20T12:00:00.000Z',
      gone_at: null,
      claim: { name: 'example.com', domain_id: 'd1', later_field: [1] },
    },
  ],
]

describe.each(files)('the file of %s', (_name, format, value, onDisk) => {
  it('has the fields that earlier versions wrote, in the same order', () => {
    const text = format.text(value)
    expect(JSON.stringify(JSON.parse(text))).toBe(JSON.stringify(onDisk))
    expect(text.endsWith('\n')).toBe(true)
  })

  it('reads as what was written', () => {
    expect(format.parse(JSON.parse(format.text(value)))).toEqual(value)
  })

  it('is refused if a later version wrote it', () => {
    expect(() => format.parse({ ...onDisk, version: 2 })).toThrow(
      'it was written by a later version of mailclaim (format 2, this one knows 1)',
    )
  })

  it.each([[undefined], ['1'], [null]])('is refused with %j as the number of its format', (version) => {
    expect(() => format.parse({ ...onDisk, version })).toThrow('it is damaged: it has no format number')
  })

  it.each([['an object'], [null], [[]], [7]])('is refused if it holds %j instead', (other) => {
    expect(() => format.parse(other)).toThrow('it is damaged: it does not hold an object')
  })

  it.each(Object.keys(onDisk).filter((field) => field !== 'version'))(
    'names the field %s if its value is of another kind',
    (field) => {
      expect(() => format.parse({ ...onDisk, [field]: { other: true } })).toThrow(`it is damaged: `)
      expect(() => format.parse({ ...onDisk, [field]: false })).toThrow(`it is damaged: ${field} is not `)
    },
  )
})

describe('any JSON value', () => {
  it('is read, or refused with an error that says what is wrong', () => {
    fc.assert(
      fc.property(fc.constantFrom(...files), fc.dictionary(fc.string(), fc.jsonValue()), (file, changes) => {
        const [, format, , onDisk] = file
        const keys = Object.keys(onDisk)
        const changed = Object.fromEntries(
          Object.values(changes).map((value, at) => [keys[at % keys.length], value]),
        )
        try {
          const value = format.parse({ ...onDisk, ...changed })
          expect(format.parse(JSON.parse(format.text(value)))).toEqual(value)
        } catch (error) {
          expect((error as Error).message).toMatch(/^it (is damaged: .+|was written by a later version)/)
        }
      }),
    )
  })
})

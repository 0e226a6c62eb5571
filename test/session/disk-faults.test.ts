import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Call,
  compileShim,
  type Fault,
  isSend,
  readCalls,
  shimEnvironment,
} from '../../bench/chaos/fault-shim.ts'
import { createClient, type Run } from '../../bench/chaos/run-mailclaim.ts'
import { needs } from '../requirements.ts'

const REFRESH = ['grants', 'list', '--json']
const NARROW = ['auth', 'refresh', '--scope', 'emails:send', '--json']

/** Finds a call of a refresh, of those that a run without a fault makes. */
type Find = (calls: readonly Call[]) => Call | undefined

const first =
  (name: RegExp, about: RegExp): Find =>
  (calls) =>
    calls.find((call) => name.test(call.name) && about.test(call.about))

/** The last look for other processes' tokens, which follows the journal's creation. */
const lookAfterJournal: Find = (calls) => {
  const created = calls.findIndex(({ name, about }) => name === 'create' && about.includes('/journal.'))
  return calls.slice(created).find(({ name }) => name === 'scandir')
}

/** The flush of the directory that follows the journal's creation. */
const flushOfJournal: Find = (calls) => {
  const created = calls.findIndex(({ name, about }) => name === 'create' && about.includes('/journal.'))
  return calls.slice(created).find(({ name, about }) => name === 'fsync' && !about.includes('journal.'))
}

/** The call on a new token that comes after the request. */
const afterSending =
  (name: RegExp): Find =>
  (calls) =>
    calls.slice(calls.findIndex(isSend)).find((call) => name.test(call.name) && /\/secret\./.test(call.about))

/** The end of the last check of the stored tokens, between the journal and the request. */
const closeOfStoredToken: Find = (calls) => {
  const created = calls.findIndex(({ name, about }) => name === 'create' && about.includes('/journal.'))
  return calls.slice(created).find(({ name, about }) => name === 'close' && /\/secret\./.test(about))
}

/** What goes wrong; with which command; at which call; how; how the command ends; what it says. */
const rows: [string, readonly string[], Find, Fault, string, RegExp][] = [
  [
    'the directory of the journal cannot be flushed',
    REFRESH,
    flushOfJournal,
    'EIO',
    '1 cannot_write',
    /Nothing was sent, and the session is untouched/,
  ],
  [
    'the journal cannot be created',
    REFRESH,
    first(/^create$/, /\/journal\./),
    'EACCES',
    '1 cannot_write',
    /Nothing was sent/,
  ],
  [
    'the journal is created, and that is reported as failed',
    REFRESH,
    first(/^create$/, /\/journal\./),
    'done but reported failed',
    '1 cannot_write',
    /Nothing was sent/,
  ],
  [
    'the directory cannot be read after the journal was created',
    REFRESH,
    lookAfterJournal,
    'EIO',
    '1 directory_unusable',
    /Nothing was sent/,
  ],
  [
    'there is no space for the new token',
    REFRESH,
    first(/^create$/, /\/secret\./),
    'ENOSPC',
    '1 cannot_write',
    /Nothing was sent/,
  ],
  ['no socket can be had at first', REFRESH, first(/^socket$/, /./), 'EMFILE', '0', /^$/],
  ['the first connection is refused by this machine', REFRESH, first(/^connect$/, /./), 'EACCES', '0', /^$/],
  ['a stored token cannot be closed after it was read', REFRESH, closeOfStoredToken, 'EIO', '0', /^$/],
  ['the new token cannot be written', REFRESH, afterSending(/write/), 'EIO', '0', /^$/],
  ['the new token cannot be flushed', REFRESH, afterSending(/sync/), 'EIO', '0', /^$/],
  [
    'the new token is flushed, and that is reported as failed',
    REFRESH,
    afterSending(/sync/),
    'done but reported failed',
    '0',
    /^$/,
  ],
  [
    'the record of the session cannot be read',
    REFRESH,
    first(/^read$/, /session\.json/),
    'EIO',
    '4 file_unusable',
    /cannot be read \(the disk reported an error\)","hint":"run the command again; if this happens again, check the disk"/,
  ],
  [
    'no more files can be opened when the record of the session is read',
    REFRESH,
    first(/open/, /session\.json/),
    'EMFILE',
    '4 file_unusable',
    /"hint":"raise the limit on open files \(ulimit -n\) and run the command again"/,
  ],
  [
    'no more files can be opened when the token is read',
    REFRESH,
    first(/open/, /\/secret\./),
    'EMFILE',
    '4 file_unusable',
    /"hint":"raise the limit on open files \(ulimit -n\) and run the command again"/,
  ],
  [
    'a narrowed access token cannot be stored',
    NARROW,
    first(/^rename$/, /access-token\.json/),
    'EIO',
    '1 cannot_write',
    /The session is renewed/,
  ],
]

describe('a refresh during a single disk fault', () => {
  it.runIf(needs('cc')).each(rows)(
    'if %s, a refresh loses nothing and says nothing untrue',
    async (_what, words, find, fault, end, says) => {
      const library = compileShim(onTestFinished)
      const client = await createClient(onTestFinished)
      client.rewind()
      expect((await client.run(words, shimEnvironment(library, client))).code).toBe(0)
      const call = find(readCalls(client))
      expect(call, 'the call is one that the command makes').toBeDefined()

      client.rewind()
      const run = await client.run(words, shimEnvironment(library, client, { at: call?.number ?? 0, fault }))
      expect(endOf(run)).toBe(end)
      expect(run.stderr).toMatch(says)
      const { bytes } = client.service.counts
      if (/Nothing was sent/.test(run.stderr)) expect(bytes).toBe(0)
      expect(endOf(await client.run(REFRESH))).toBe('0')
      expect(client.service.counts).toMatchObject({ reuse: 0, leaks: 0 })
    },
  )
})

function endOf({ code, error }: Run): string {
  return error === undefined ? String(code) : `${code} ${error.code}`
}

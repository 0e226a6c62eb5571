import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OnEnd } from '../../test/stories/built-program.ts'
import type { Client } from './run-mailclaim.ts'

const SOURCE = fileURLToPath(new URL('fault-shim.c', import.meta.url))
const CODE = fileURLToPath(new URL('../../dist', import.meta.url))

const ERRNOS = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EMFILE', 'EACCES', 'ESTALE', 'EINTR'] as const

/** What can become of one call: the name in the table, and what the shim calls it. */
export const FAULTS = {
  'killed before': 'kill-before',
  'killed after': 'kill-after',
  ...(Object.fromEntries(ERRNOS.map((name) => [name, String(constants.errno[name])])) as Record<
    (typeof ERRNOS)[number],
    string
  >),
  'done but reported failed': 'said-failed',
} as const

export type Fault = keyof typeof FAULTS

export function isKill(fault: Fault): boolean {
  return fault === 'killed before' || fault === 'killed after'
}

/** Faults of a disk that last. */
export const LASTING: readonly Fault[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'ESTALE']

/** Calls that a lasting fault strikes after the first: those of its name, or all that change files. */
export type Extent = 'same' | 'changes'

/** One call of the program, as the shim saw it. */
export interface Call {
  readonly number: number
  readonly name: string
  readonly about: string
  readonly result: number
  /** Whether the fault hit it. */
  readonly hit: boolean
}

/** Compiles the shim. @returns the path of the library. */
export function compileShim(onEnd: OnEnd): string {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-shim-'))
  onEnd(() => rmSync(directory, { recursive: true, force: true }))
  const library = join(directory, 'fault-shim.so')
  const options = '-shared -fPIC -O1 -Wall -Wextra -Werror'.split(' ')
  execFileSync('cc', [...options, '-o', library, SOURCE, '-ldl'])
  return library
}

/** The environment under which the shim counts and, at one call, strikes. */
export function shimEnvironment(
  library: string,
  client: Client,
  strike?: { readonly at: number; readonly fault: Fault; readonly lasts?: Extent | undefined },
): Record<string, string> {
  rmSync(logOf(client), { force: true })
  return {
    LD_PRELOAD: library,
    FAULT_STATE: client.state,
    FAULT_CODE: CODE,
    FAULT_LOG: logOf(client),
    ...(strike === undefined ? {} : { FAULT_AT: String(strike.at), FAULT_KIND: FAULTS[strike.fault] }),
    ...(strike?.lasts === undefined ? {} : { FAULT_LASTS: strike.lasts }),
  }
}

/** The calls of the last process under the shim. */
export function readCalls(client: Client): Call[] {
  if (!existsSync(logOf(client))) return []
  const lines = readFileSync(logOf(client), 'utf8').trimEnd().split('\n')
  return lines.map((line) => {
    const [number, name = '', about = '', result, hit] = line.split('\t')
    return { number: Number(number), name, about, result: Number(result), hit: hit !== '' }
  })
}

/** Bytes that the program handed to its outgoing connections, whatever became of them. */
export function bytesSent(calls: readonly Call[]): number {
  return calls.filter(isSend).reduce((sum, { result }) => sum + Math.max(result, 0), 0)
}

/** Whether the note that a token is about to be sent had been made: the trace that a process leaves for the next. */
export function wroteNote(calls: readonly Call[]): boolean {
  return calls.some(({ name, about, result }) => name === 'create' && /\/next\./.test(about) && result >= 0)
}

/** Whether a call wrote to a connection: what it reports as failed may have left, and the program cannot know. */
export function isSend({ name, about }: Call): boolean {
  return about === 'socket' && /^(write|writev|send|sendmsg)$/.test(name)
}

/** Whether a call was about a connection. */
export function isOnNetwork({ about }: Call): boolean {
  return about === 'socket' || about === 'accepted'
}

/** Whether a call opens, changes or flushes a file of the session. */
export function isOnDisk(call: Call): boolean {
  const names = /^(open|create|p?writev?|fsync|fdatasync|rename|link|unlink|mkdir|fchmod|chmod|ftruncate)$/
  return names.test(call.name) && !isOnNetwork(call) && !isOwnCode(call)
}

/** Whether a call was about the program's own files. */
export function isOwnCode({ about }: Call): boolean {
  return /^dist(\/|$)/.test(about)
}

/** A call in words that are the same in every run: without process ids and random names. */
export function describeCall(call: Call): string {
  const about = call.about
    .replace(/[0-9a-f]{12}/g, '*')
    .replace(/\.\d+-\*/g, '.*')
    .replace(/-[A-Z0-9]{8}\.js/, '-*.js')
  return `call ${call.number}, ${call.name} ${about}`
}

const logOf = (client: Client) => join(client.home, 'calls.log')

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

/** Values of the shim's variable `FAULT_KIND`, by the name of the fault in the printed table. */
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

/** Faults with which a broken or full disk keeps failing, so that they are also injected into later calls. */
export const LASTING_FAULTS: readonly Fault[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'ESTALE']

/** Later calls that a lasting fault also hits: `same`, those of the same name; `changes`, those that change or flush files. */
export type FaultExtent = 'same' | 'changes'

/** A system call of the program on a file or socket, as logged by the shim. */
export interface Call {
  readonly number: number
  readonly name: string
  readonly about: string
  readonly result: number
  /** Whether the injected fault hit this call. */
  readonly hit: boolean
}

/** Compiles the fault-injecting shim, an LD_PRELOAD library. @returns the path of the library */
export function compileShim(onEnd: OnEnd): string {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-shim-'))
  onEnd(() => rmSync(directory, { recursive: true, force: true }))
  const library = join(directory, 'fault-shim.so')
  const options = '-shared -fPIC -O1 -Wall -Wextra -Werror'.split(' ')
  execFileSync('cc', [...options, '-o', library, SOURCE, '-ldl'])
  return library
}

/** Deletes the client's log; returns the environment that makes the shim log each call and, with `strike`, inject a fault. */
export function shimEnvironment(
  library: string,
  client: Client,
  strike?: { readonly at: number; readonly fault: Fault; readonly lasts?: FaultExtent | undefined },
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

/** Returns the system calls in the client's log: those of the last run with the shim. */
export function readCalls(client: Client): Call[] {
  if (!existsSync(logOf(client))) return []
  const lines = readFileSync(logOf(client), 'utf8').trimEnd().split('\n')
  return lines.map((line) => {
    const [number, name = '', about = '', result, hit] = line.split('\t')
    return { number: Number(number), name, about, result: Number(result), hit: hit !== '' }
  })
}

/** Returns the number of bytes that the program wrote to outgoing connections, delivered or not. */
export function bytesSent(calls: readonly Call[]): number {
  return calls.filter(isSend).reduce((sum, { result }) => sum + Math.max(result, 0), 0)
}

/**
 * Whether the process created a note file (`next.…`), by which the next process knows that the refresh token may have been sent.
 */
export function wroteNote(calls: readonly Call[]): boolean {
  return calls.some(({ name, about, result }) => name === 'create' && /\/next\./.test(about) && result >= 0)
}

/** Whether a call writes to an outgoing connection. If such a call reports a failure, its bytes may have left all the same. */
export function isSend({ name, about }: Call): boolean {
  return about === 'socket' && /^(write|writev|send|sendmsg)$/.test(name)
}

/** Whether a call used a network socket. */
export function isOnNetwork({ about }: Call): boolean {
  return about === 'socket' || about === 'accepted'
}

/** Whether a call opens, changes or flushes a file or directory, other than the program's own code. */
export function isOnDisk(call: Call): boolean {
  const names = /^(open|create|p?writev?|fsync|fdatasync|rename|link|unlink|mkdir|fchmod|chmod|ftruncate)$/
  return names.test(call.name) && !isOnNetwork(call) && !isOwnCode(call)
}

/** Whether a call accessed the program's own files. */
export function isOwnCode({ about }: Call): boolean {
  return /^dist(\/|$)/.test(about)
}

/** Describes a call without process ids and random names, so that each run describes the same call alike. */
export function describeCall(call: Call): string {
  const about = call.about
    .replace(/[0-9a-f]{12}/g, '*')
    .replace(/\.\d+-\*/g, '.*')
    .replace(/-[A-Z0-9]{8}\.js/, '-*.js')
  return `call ${call.number}, ${call.name} ${about}`
}

const logOf = (client: Client) => join(client.home, 'calls.log')

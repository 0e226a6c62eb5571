/**
 * Entry of the helper process, which makes one call to the operating system's keychain, sends the result over the IPC channel,
 * and ends. keychain-process.ts starts it.
 */
import type { KeychainRequest, KeychainResult } from '../context.ts'

/**
 * Milliseconds that a keychain call may continue after the parent process has ended, so that storing a new token can finish.
 */
const ORPHAN_MS = 2_000

const end = () => process.kill(process.pid, 'SIGKILL')

// Ignore signals: a service manager sends them to every process of the program, and the helper may hold the only copy of a
// token. The parent process kills the helper after the call.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

process.once('message', async (request: KeychainRequest) => {
  const answer = await perform(request)
  process.send?.(answer, end)
})
process.once('disconnect', () => setTimeout(end, ORPHAN_MS))

async function perform(request: KeychainRequest): Promise<KeychainResult> {
  let keytar: typeof import('keytar')
  try {
    keytar = (await import('keytar')).default
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND'
    return isMissing
      ? { ok: false, reason: 'no_addon', detail: `${process.platform}-${process.arch}` }
      : { ok: false, reason: 'no_module', detail: firstLine(error) }
  }
  try {
    switch (request.operation) {
      case 'get':
        return { ok: true, value: await keytar.getPassword(request.service, request.account) }
      case 'set':
        await keytar.setPassword(request.service, request.account, request.secret ?? '')
        return { ok: true, value: true }
      case 'delete':
        return { ok: true, value: await keytar.deletePassword(request.service, request.account) }
    }
  } catch (error) {
    return { ok: false, reason: classifyMessage(firstLine(error)), detail: firstLine(error) }
  }
}

/** Matches messages of libsecret (which has no error codes) for a machine without D-Bus, or without a Secret Service on it. */
const NO_KEYCHAIN =
  /autolaunch|could not connect|cannot connect|D-?Bus|session bus|connection is closed|given address|address element|org\.freedesktop\.secrets|not provided by any|ServiceUnknown|no such interface/i

function classifyMessage(message: string): Extract<KeychainResult, { ok: false }>['reason'] {
  if (/locked|dismissed/i.test(message)) return 'locked'
  return NO_KEYCHAIN.test(message) ? 'no_keychain' : 'refused'
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return (text.split('\n')[0] ?? '').slice(0, 200)
}

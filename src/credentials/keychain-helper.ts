/**
 * The process that talks to the operating system's keychain: it takes one request over the channel, answers it and ends.
 * Started by keychain-process.ts.
 */
import type { KeychainAnswer, KeychainRequest } from '../context.ts'

/** How long a call may continue after its parent process has ended, so that a token still gets stored. */
const ORPHAN_MS = 2_000

const end = () => process.kill(process.pid, 'SIGKILL')

// The parent decides when this ends. A service manager signals every process, and the token may exist nowhere else.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

process.once('message', async (request: KeychainRequest) => {
  const answer = await perform(request)
  process.send?.(answer, end)
})
process.once('disconnect', () => setTimeout(end, ORPHAN_MS))

async function perform(request: KeychainRequest): Promise<KeychainAnswer> {
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
    return { ok: false, reason: reasonOf(firstLine(error)), detail: firstLine(error) }
  }
}

/** What libsecret says without a bus, or without a Secret Service on it: only its messages distinguish its failures. */
const NO_KEYCHAIN =
  /autolaunch|could not connect|cannot connect|D-?Bus|session bus|connection is closed|given address|address element|org\.freedesktop\.secrets|not provided by any|ServiceUnknown|no such interface/i

function reasonOf(message: string): Extract<KeychainAnswer, { ok: false }>['reason'] {
  if (/locked|dismissed/i.test(message)) return 'locked'
  return NO_KEYCHAIN.test(message) ? 'no_keychain' : 'refused'
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return (text.split('\n')[0] ?? '').slice(0, 200)
}

import { type ChildProcess, fork } from 'node:child_process'
import type { Keychain, KeychainAnswer } from '../context.ts'

/**
 * The keychain, with a helper process for each call: a call can hang forever on a prompt that nobody sees, and the only
 * way to stop a native call that hangs is to end its process. Secrets go over the channel between the two processes,
 * never through arguments or the environment.
 */
export function createKeychain(script: string, environment: NodeJS.ProcessEnv): Keychain {
  return {
    call: ({ signal, ...request }) =>
      new Promise((resolve) => {
        const abort = () => finish({ ok: false, reason: 'timeout', detail: '' })
        let helper: ChildProcess | undefined
        const finish = (answer: KeychainAnswer) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          // SIGKILL: the native call may be blocked, and process.exit() would wait for it.
          helper?.kill('SIGKILL')
          resolve(answer)
        }
        const crashed = (detail: string) => finish({ ok: false, reason: 'crashed', detail })
        const timer = setTimeout(
          () => finish({ ok: false, reason: 'timeout', detail: `${request.timeoutMs / 1000} s` }),
          request.timeoutMs,
        )
        if (signal?.aborted || request.timeoutMs <= 0) return abort()
        signal?.addEventListener('abort', abort)
        try {
          helper = fork(script, [], {
            execArgv: [],
            env: { ...environment },
            stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
            // In its own process group, it gets no Ctrl-C: it may be storing a token that exists nowhere else. When the program ends,
            // the channel closes, and the helper ends as well.
            ...{ detached: true, windowsHide: true },
          })
        } catch (error) {
          return crashed((error as Error).message)
        }
        helper.once('message', (answer) => finish(answer as KeychainAnswer))
        helper.on('error', (error) => crashed(error.message))
        // Not "exit", which can come before the last message.
        helper.once('close', (code, signal) => crashed(signal ?? `exit code ${code}`))
        // If this fails, the helper has ended, and `close` says why. Without a file descriptor for the channel there is no `send`.
        helper.send?.(request, () => {})
      }),
  }
}

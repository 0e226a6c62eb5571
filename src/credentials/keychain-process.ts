import { type ChildProcess, fork } from 'node:child_process'
import type { Keychain, KeychainResult } from '../context.ts'

/**
 * Creates a keychain that makes each call in a helper process. A call can hang forever on a prompt that nobody sees, and only
 * ending the process stops a native call. Secrets go over the IPC channel, never through arguments or the environment.
 *
 * @param script path of the built keychain-helper.ts
 * @param environment complete environment of the helper: variables that a keychain needs, and no secret
 */
export function createKeychain(script: string, environment: NodeJS.ProcessEnv): Keychain {
  return {
    call: ({ signal, ...request }) =>
      new Promise((resolve) => {
        const abort = () => finish({ ok: false, reason: 'timeout', detail: '' })
        let helper: ChildProcess | undefined
        const finish = (answer: KeychainResult) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          // End the helper with SIGKILL: it ignores SIGTERM, and a blocked native call in it would delay `process.exit()`.
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
            // A process group of its own keeps the terminal's Ctrl-C away from the helper, which may hold the only copy of a token.
            // When the program ends, the channel closes, and the helper ends as well.
            ...{ detached: true, windowsHide: true },
          })
        } catch (error) {
          return crashed((error as Error).message)
        }
        helper.once('message', (answer) => finish(answer as KeychainResult))
        helper.on('error', (error) => crashed(error.message))
        // Wait for `close` rather than `exit`, which can be emitted before the last message, so that an answer isn't reported as a
        // crash.
        helper.once('close', (code, signal) => crashed(signal ?? `exit code ${code}`))
        // Ignore a failed send: the helper has ended, and `close` reports why. If the channel got no file descriptor, `send` is
        // undefined.
        helper.send?.(request, () => {})
      }),
  }
}

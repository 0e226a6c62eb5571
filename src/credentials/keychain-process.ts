import { type ChildProcess, fork } from 'node:child_process'
import type { Keychain, KeychainResult } from '../context.ts'

/**
 * Creates a keychain that makes each call in a helper process, which can be killed: a native call may wait forever for a prompt
 * that nobody sees. Secrets go over the IPC channel, never through arguments or the environment.
 *
 * @param helperScript path of the built keychain-helper.ts
 * @param environment complete environment of the helper; must have the variables that a keychain needs, and no secret
 */
export function createKeychain(helperScript: string, environment: NodeJS.ProcessEnv): Keychain {
  return {
    call: ({ signal, ...request }) =>
      new Promise((resolve) => {
        const abort = () => finish({ ok: false, reason: 'timeout', detail: '' })
        let helper: ChildProcess | undefined
        const finish = (answer: KeychainResult) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', abort)
          // Send SIGKILL: the helper ignores SIGINT, SIGTERM and SIGHUP, and couldn't end itself by `process.exit()`,
          // which would wait for a blocked native call.
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
          helper = fork(helperScript, [], {
            execArgv: [],
            env: { ...environment },
            stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
            // Start a separate process group, so that the terminal's Ctrl-C doesn't reach the helper, which may hold the only
            // copy of a token.
            ...{ detached: true, windowsHide: true },
          })
        } catch (error) {
          return crashed((error as Error).message)
        }
        helper.once('message', (answer) => finish(answer as KeychainResult))
        helper.on('error', (error) => crashed(error.message))
        // Wait for `close`: `exit` may come before the helper's last message, and an answer would be reported as a
        // crash.
        helper.once('close', (code, signal) => crashed(signal ?? `exit code ${code}`))
        // Ignore an error of `send`: the helper has ended, and `close` reports why. `send` is undefined if no IPC
        // channel could be opened.
        helper.send?.(request, () => {})
      }),
  }
}

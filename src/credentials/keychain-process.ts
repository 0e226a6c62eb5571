import { type ChildProcess, fork, type SpawnOptions } from 'node:child_process'
import type { Keychain, KeychainAnswer, KeychainRequest } from '../context.ts'

export interface HelperOptions {
  /** The executable that runs the helper. */
  readonly node: string
  /** The helper's script. */
  readonly script: string
  /** All that the helper gets to see of the environment: what a keychain needs, and no secret. */
  readonly environment: Readonly<Record<string, string>>
}

/**
 * The keychain, reached through a helper process for each call: a call can hang for ever on a prompt that nobody sees,
 * and a native call that hangs cannot be stopped in any other way than by ending its process. Secrets go over the
 * channel between the two, never through arguments or the environment.
 */
export function createKeychain(options: HelperOptions): Keychain {
  return { call: (request) => callHelper(options, request) }
}

/**
 * A process group of its own: a Ctrl-C is for the program, which may be storing a token that exists nowhere else. When
 * the program is gone, the channel closes, and the helper ends by itself.
 */
const OUT_OF_REACH: Pick<SpawnOptions, 'detached' | 'windowsHide'> = { detached: true, windowsHide: true }

/** What ends a helper that has not left our process group yet. */
const SIGNALS_OF_THE_GROUP: readonly unknown[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

function callHelper(options: HelperOptions, request: KeychainRequest): Promise<KeychainAnswer> {
  return new Promise((resolve) => {
    let helper: ChildProcess | undefined
    let finished = false
    const finish = (answer: KeychainAnswer) => {
      finished = true
      clearTimeout(timer)
      // SIGKILL: the native call may be blocked, and process.exit() would wait for it.
      helper?.kill('SIGKILL')
      resolve(answer)
    }
    const crashed = (detail: string) => finish({ ok: false, reason: 'crashed', detail })
    const timer = setTimeout(
      () => finish({ ok: false, reason: 'timeout', detail: `${request.timeoutMs / 1000} s` }),
      request.timeoutMs,
    )
    const start = (mayStartAgain: boolean) => {
      try {
        helper = fork(options.script, [], {
          execPath: options.node,
          execArgv: [],
          env: { ...options.environment },
          stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
          ...OUT_OF_REACH,
        })
      } catch (error) {
        crashed((error as Error).message)
        return
      }
      helper.once('message', (answer) => finish(answer as KeychainAnswer))
      helper.on('error', (error) => crashed(error.message))
      // Not "exit", which can come before an answer that has been sent.
      helper.once('close', (code, signal) => {
        // Every call can be made twice: it comes to the same.
        if (mayStartAgain && !finished && SIGNALS_OF_THE_GROUP.includes(signal)) start(false)
        else crashed(signal ?? `exit code ${code}`)
      })
      // Where this fails, the helper has ended, and its end says why.
      helper.send(request, () => {})
    }
    start(true)
  })
}

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { interruptGroup, shareSandbox, type World, writeScript } from './built-program.ts'
import { openTerminal } from './terminal.ts'

/** Reads a file that the publish command wrote in the home directory. */
const written = (world: World, name: string) => readFileSync(join(world.home, name), 'utf8')

/** Waits until a file in the home directory exists. */
async function untilWritten(world: World, name: string): Promise<void> {
  while (!existsSync(join(world.home, name))) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Whether a process is running; false for a zombie, which has exited but wasn't waited for. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[2] !== 'Z'
  } catch {
    return false
  }
}

/** Waits until a process has exited; the test's timeout limits the wait. */
async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe.runIf(needs('posix', 'bash'))('the publish command', () => {
  const serve = shareSandbox()
  let count = 0

  /** Creates a world with a script for `--publish`, and the arguments to claim a domain that no other test uses. */
  async function createPublisher(script: string) {
    const world = serve()
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    const domain = `hook${count++}.example`
    writeScript(world.home, 'hook', script)
    return { world, words: ['claim', domain, '--publish', './hook'] }
  }

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'on %s, mailclaim claim sends SIGTERM to the --publish command, and waits for its end',
    async (signal, code) => {
      const { world, words } = await createPublisher(
        "env > environment; echo $$ > pid; trap 'echo bye > got; exit' TERM; sleep 300 & wait",
      )
      const running = world.start(words, {
        group: true,
        env: { mailclaim_store_key: 'k', AWS_PROFILE: 'dns' },
      })
      await untilWritten(world, 'pid')
      if (signal === 'SIGINT') interruptGroup(running)
      else running.child.kill(signal)
      expect((await running.ended).code).toBe(code)
      expect(written(world, 'got')).toBe('bye\n')
      expect(written(world, 'environment')).toMatch(/^AWS_PROFILE=dns$/m)
      expect(written(world, 'environment')).not.toMatch(/^mailclaim_(?!record_)/im)
      await untilGone(Number(written(world, 'pid')))
    },
  )

  test.runIf(needs('tmux'))('the output of the --publish command is sanitized for the terminal', async () => {
    const { world, words } = await createPublisher("printf '\\033[2J\\033]0;title\\007harmless\\n'; exit 1")
    const terminal = openTerminal(world, `mailclaim ${words.join(' ')}`, { columns: 120 })
    expect(await terminal.exit()).toBe(7)
    expect(terminal.screen()).toContain('\\u{1b}[2J\\u{1b}]0;title\\u{7}harmless')
    expect(terminal.screen()).toContain('The TXT record:')
  })
})

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { interruptGroup, program, shareSandbox, type World } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const SPF = 'v=spf1 include:_spf.example.net ~all'
const SECRET = 'hook-secret-0123456789'

/** What the program wrote to a file in its home. */
const written = (world: World, name: string) => readFileSync(join(world.home, name), 'utf8')

/** Waits until a file is there. */
async function untilWritten(world: World, name: string): Promise<void> {
  while (!existsSync(join(world.home, name))) await new Promise((resolve) => setTimeout(resolve, 20))
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Waits until a process is gone; a test that waits for too long fails. */
async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe.runIf(needs('posix', 'bash'))('a program of the user', () => {
  const serve = shareSandbox()
  let count = 0

  /** A person with a claim of a domain of their own, and a program. */
  async function createPublisher(script: string) {
    const world = serve()
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    const domain = `hook${count++}.example`
    program(world.home, 'hook', script)
    const put = (name: string, values: readonly string[]) =>
      world.control('PUT', `dns/${name}/TXT`, { values })
    return {
      world,
      domain,
      put,
      words: ['claim', domain, '--publish', './hook'],
      publish: `curl -sSf -o /dev/null -d '{}' ${world.service.base_url}/_sandbox/claims/${domain}/publish`,
    }
  }

  test('gets the record in its environment, and nothing else of ours', async () => {
    const { world, domain, words, put } = await createPublisher('env -0 > environment; exit 3')
    await put(domain, [SPF, 'a "quoted\\" value'])
    const secrets = {
      MAILCLAIM_STORE_KEY: 'c3RvcmUta2V5LW9mLTMyLWJ5dGVzLTAxMjM0NTY3ODk=',
      MAILCLAIM_STORE_PASSWORD: 'store-password',
      MAILCLAIM_SOMETHING: 'of a later version',
      mailclaim_api_key: 'lower case',
      AWS_PROFILE: 'dns',
    }
    expect((await world.run(words, { env: secrets })).code).toBe(7)
    const variables = Object.fromEntries(
      written(world, 'environment')
        .split('\0')
        .map((entry) => [entry.replace(/=.*/s, ''), entry.replace(/^[^=]*=/, '')]),
    )
    expect(variables).toMatchObject({ AWS_PROFILE: 'dns', HOME: world.home })
    const value = (await world.run(['claims', 'record', domain, '--format', 'value'])).stdout.trim()
    expect(
      Object.entries(variables)
        .filter(([name]) => /mailclaim/i.test(name))
        .sort(),
    ).toEqual([
      ['MAILCLAIM_RECORD_ACTION', 'publish'],
      ['MAILCLAIM_RECORD_HOST', '@'],
      ['MAILCLAIM_RECORD_NAME', domain],
      ['MAILCLAIM_RECORD_OLD_VALUES', `${SPF}\na "quoted\\" value`],
      ['MAILCLAIM_RECORD_RDATA', `"${value}"`],
      ['MAILCLAIM_RECORD_SET', `"${SPF}"\n"a \\"quoted\\\\\\" value"\n"${value}"`],
      ['MAILCLAIM_RECORD_TTL', expect.stringMatching(/^\d+$/)],
      ['MAILCLAIM_RECORD_TYPE', 'TXT'],
      ['MAILCLAIM_RECORD_VALUE', value],
      ['MAILCLAIM_RECORD_ZONE', domain],
    ])
    expect(JSON.stringify(variables)).not.toContain(world.service.api_key)
  })

  test.each([
    ['and ignores SIGTERM', "trap '' TERM; sleep 300 & echo $! > child; wait; sleep 300"],
    ['because of what it started', "(trap '' TERM; exec sleep 300) & echo $! > child; wait"],
  ])('that hangs %s is stopped, with everything it started', async (_why, script) => {
    const { world, words } = await createPublisher(script)
    const ended = await world.run([...words, '--publish-timeout', '0.5', '--json'])
    expect(ended.code).toBe(7)
    expect(JSON.parse(ended.stderr.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: {
        code: 'publish_timeout',
        message: expect.stringMatching(/^hook was stopped after /),
        hint: expect.stringContaining('--publish-timeout'),
      },
    })
    await untilGone(Number(written(world, 'child')))
  })

  test('shows what it prints on stderr, and nothing of it is kept', async () => {
    const { world, words, publish } = await createPublisher('')
    program(world.home, 'hook', `echo '{"error":{}} ${SECRET}'; printf 'no line end' >&2; ${publish}`)
    const ended = await world.run([...words, '--json', '--verbose'])
    expect(ended.code, ended.stderr).toBe(0)
    expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'completed' })
    expect(ended.stderr).toContain(`hook: {"error":{}} ${SECRET}\n`)
    expect(ended.stderr).toContain('\nhook: no line end\n')
    const kept = await world.script(`grep -rl '${SECRET}' config state; true`)
    expect(kept.stdout).toBe('')
  })

  test.each([
    ['does not exist', './absent', /couldn't run \.\/absent: the file doesn't exist$/m],
    [
      'is not in PATH',
      'absent',
      /there is no such program in PATH; if it is in this directory: \.\/absent$/m,
    ],
    ['is not executable', './data', /it is not executable/],
    ['has no interpreter', './odd', /the interpreter in its first line doesn't exist: #!\/no\/such\/inter/],
    ['has Windows line ends', './crlf', /run \.\/crlf: it has Windows line ends/],
    ['is a directory', '/', /couldn't run \/: it is a directory/],
  ])('that %s is exit 2, before anything is created', async (_what, file, reason) => {
    const { world, domain, words } = await createPublisher('')
    writeFileSync(join(world.home, 'data'), '#!/bin/sh\n')
    writeFileSync(join(world.home, 'odd'), '#!/no/such/interpreter\n', { mode: 0o755 })
    writeFileSync(join(world.home, 'crlf'), '#!/bin/sh\r\nexit 0\r\n', { mode: 0o755 })
    for (const options of [[file], ['./hook', '--unpublish', file]]) {
      const ended = await world.run([...words.slice(0, -1), ...options])
      expect(ended.code, ended.stderr).toBe(2)
      expect(ended.stderr).toMatch(reason)
      expect(ended.stderr).toContain('nothing has been created or changed')
    }
    expect((await world.run(['claims', 'list', '--fields', 'name'])).stdout).not.toContain(domain)
  })

  test('that is killed stops the claim', async () => {
    const { world, words } = await createPublisher('kill -KILL $$')
    const ended = await world.run(words)
    expect(ended.code).toBe(7)
    expect(ended.stderr).toMatch(/^error: hook was ended by SIGKILL$/m)
  })

  test.each(['| tee log', '> log', '; true', '$HOME', '`id`', '&& true'])(
    'with shell syntax (%s) is refused before anything is sent',
    async (syntax) => {
      const { world, words } = await createPublisher('')
      const ended = await world.run([...words.slice(0, -1), `./hook ${syntax}`])
      expect(ended.code).toBe(2)
      expect(ended.stderr).toMatch(/no shell reads the command/)
      expect((await world.run(['claims', 'list'])).stdout).not.toContain('example')
    },
  )

  test('that failed to remove the record leaves a completed claim and a warning', async () => {
    const { world, domain, words, publish } = await createPublisher('')
    program(world.home, 'hook', `[ "$MAILCLAIM_RECORD_ACTION" = publish ] || exit 5; ${publish}`)
    const ended = await world.run([...words, '--unpublish', './hook'])
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(
      new RegExp(
        `warning: the record wasn't removed: hook ended with exit code 5; remove it by hand.*${domain}`,
      ),
    )
    expect(ended.stderr).toContain('is no longer needed')
  })

  test('that ignores the action leaves the record, a warning, and the next step to remove it', async () => {
    const { world, domain, words, publish } = await createPublisher('')
    program(world.home, 'hook', publish)
    program(world.home, 'stay', 'exit 0')
    const ended = await world.run([...words, '--unpublish', './stay'])
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(
      new RegExp(`warning: stay ended without an error, but DNS still has the TXT value at ${domain}: `),
    )
    expect(ended.stderr).not.toContain('stay removed the record')
    expect(ended.stderr).toContain('is no longer needed; remove it')
  })

  test('is not run if the TXT values that it might delete cannot be seen, unless it only adds one', async () => {
    const { world, domain, words, publish } = await createPublisher('')
    program(
      world.home,
      'hook',
      `echo "\${MAILCLAIM_RECORD_OLD_VALUES-unset} \${MAILCLAIM_RECORD_SET-unset}"; ${publish}`,
    )
    await world.run(['claims', 'create', domain])
    await world.publish([domain], 'refused')
    const ended = await world.run(words)
    expect(ended.code, ended.stderr).toBe(8)
    expect(ended.stderr).toMatch(/^error: couldn't see which TXT values .* has: /m)
    expect(ended.stderr).not.toContain('hook: ')
    const forced = await world.run([...words, '--only-new', '--no-check', '--timeout', '1'])
    expect(forced.stderr).toContain('hook: unset unset\n')
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('gets %s as we do, and is gone when we are', async (signal, code) => {
    const { world, words } = await createPublisher(
      "echo $$ > pid; trap 'echo bye > got; exit' INT TERM; sleep 300 & wait",
    )
    const running = world.start(words, { group: true })
    await untilWritten(world, 'pid')
    if (signal === 'SIGINT') interruptGroup(running)
    else running.child.kill(signal)
    expect((await running.ended).code).toBe(code)
    expect(written(world, 'got')).toBe('bye\n')
    await untilGone(Number(written(world, 'pid')))
  })

  test('that ignores Ctrl-C is killed before we end', async () => {
    const { world, words } = await createPublisher("trap '' INT TERM; echo $$ > pid; sleep 300")
    const running = world.start(words, { group: true })
    await untilWritten(world, 'pid')
    interruptGroup(running)
    expect((await running.ended).code).toBe(130)
    expect(isRunning(Number(written(world, 'pid')))).toBe(false)
  })

  test('is killed by Ctrl-\\, which ends us at once', async () => {
    const { world, words } = await createPublisher("trap '' INT TERM; echo $$ > pid; sleep 300")
    const running = world.start(words)
    await untilWritten(world, 'pid')
    running.child.kill('SIGQUIT')
    await running.ended
    expect(running.child.signalCode).toBe('SIGQUIT')
    await untilGone(Number(written(world, 'pid')))
  })

  test('cannot act on the terminal on which somebody reads the log', async () => {
    const { world, words } = await createPublisher("printf '\\033[2K\\rforged\\n'; exit 1")
    expect((await world.run(words)).stderr).toContain('hook: \\u{1b}[2K\\rforged\n')
  })

  test.runIf(needs('tmux'))('cannot act on the terminal with what it prints', async () => {
    const { world, words } = await createPublisher("printf '\\033[2J\\033]0;title\\007harmless\\n'; exit 1")
    const terminal = openTerminal(world, `mailclaim ${words.join(' ')}`, { columns: 120 })
    expect(await terminal.exit()).toBe(7)
    expect(terminal.screen()).toContain('hook: \\u{1b}[2J\\u{1b}]0;title\\u{7}harmless')
    expect(terminal.screen()).toContain('The TXT record:')
  })
})

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runInShell } from '../../src/child-processes.ts'
import { requirePublishFunction } from '../../src/claims/publish.ts'
import { createIo } from '../../src/terminal/io.ts'
import { smallWorld } from '../dns/fake-internet.ts'
import { fakeSettings } from '../fake-context.ts'
import { createWorld, VALUE, type WorldOptions } from './world.ts'

const record = { name: 'example.com', value: VALUE, ttl: 60 }

/** Creates the function that runs a `--publish` command in a fake world. `OUTPUT` in the command stands for the path of a file. */
async function publishing(command: string, options: WorldOptions = {}, timeoutMs?: number) {
  const { context } = createWorld({
    ...options,
    runInShell: (request) =>
      runInShell(timeoutMs === undefined ? request : { ...request, timeoutMs }, {
        environment: { PATH: process.env['PATH'] },
        platform: 'linux',
      }),
  })
  const home = context.directories.state
  const io = createIo(context, await fakeSettings(context, { resolver: ['192.0.2.53'] }))
  const output = join(home, '..', 'output')
  const publish = await requirePublishFunction(command.replaceAll('OUTPUT', output), io)
  return { publish, context, output }
}

describe('the command of --publish', () => {
  test('the --publish command runs in a shell with the record, the existing TXT values and their TTL in its environment', async () => {
    const txt = () => ['v=spf1 -all', 'say "hi"']
    const { publish, output } = await publishing(
      'env > OUTPUT; echo ::error::one; echo error: two >&2; printf "no line end"',
      { txt },
    )
    const lines: string[] = []
    const say = async (line: string) => void lines.push(line)
    expect(await publish(record, say)).toBe('the command ended without an error')
    const environment = readFileSync(output, 'utf8')
    const own = environment.slice(environment.indexOf('MAILCLAIM_')).split(/^(?!MAILCLAIM_|say|"v=)/m)
    for (const line of [
      'MAILCLAIM_RECORD_NAME=example.com',
      'MAILCLAIM_RECORD_HOST=@',
      'MAILCLAIM_RECORD_ZONE=example.com',
      'MAILCLAIM_RECORD_TYPE=TXT',
      `MAILCLAIM_RECORD_VALUE=${VALUE}`,
      'MAILCLAIM_RECORD_TTL=300',
      'MAILCLAIM_RECORD_OLD_VALUES=v=spf1 -all\nsay "hi"',
      `MAILCLAIM_RECORD_RDATA="${VALUE}"`,
      `MAILCLAIM_RECORD_SET="v=spf1 -all"\n"say \\"hi\\""\n"${VALUE}"`,
    ])
      expect(environment, own.join('|')).toContain(`${line}\n`)
    expect(lines.sort()).toEqual(['publish: ::error::one', 'publish: error: two', 'publish: no line end'])
  })

  test.each([
    ['./no-such-script.sh', './no-such-script.sh'],
    ['KEY=x  no-such-command --add', 'no-such-command'],
    ['true; no-such-command', undefined],
    ['sh no-such-script.sh', undefined],
    ['if true; then no-such-command; fi', undefined],
    ['"no such command"', undefined],
  ])('the check of the --publish command `%s` reports as missing: %s', async (command, missing) => {
    const looked = publishing(command)
    if (missing === undefined) return void (await looked)
    await expect(looked).rejects.toMatchObject({
      exit: 2,
      message: `--publish: there is no command "${missing}"`,
    })
  })

  test('the --publish command is not run if DNS has the TXT value already', async () => {
    const { publish, output } = await publishing('touch OUTPUT')
    expect(await publish(record)).toContain('has the TXT value already')
    expect(() => readFileSync(output)).toThrow()
  })

  const world = smallWorld(() => [])
  test.each([
    ['no DNS server answers', { dns: () => 'silent' as const }],
    ['a value has a line break', { txt: () => ['one\ntwo'] }],
    [
      'the servers refuse',
      { dns: (asked) => (asked.server === '192.0.2.2' ? { flags: 5 } : world(asked)) } as WorldOptions,
    ],
  ] satisfies [string, WorldOptions][])(
    'the --publish command is not run if the existing TXT values are unknown or cannot be passed to it: %s',
    async (_where, options) => {
      const { publish, output } = await publishing('touch OUTPUT', options)
      await expect(publish(record)).rejects.toMatchObject({
        code: 'values_unknown',
        exit: 8,
        hint: 'add it yourself: mailclaim claims record example.com',
      })
      expect(() => readFileSync(output)).toThrow()
    },
  )

  test.each([
    ['exit 3', 'ended with exit code 3'],
    ['kill -9 $$', 'was ended by SIGKILL'],
  ])('the --publish command "%s" causes the error publish_failed, exit 7', async (command, why) => {
    const { publish } = await publishing(command, { txt: () => [] })
    await expect(publish(record)).rejects.toMatchObject({
      code: 'publish_failed',
      exit: 7,
      message: `the --publish command ${why}`,
    })
  })

  test('the --publish command and its child process are killed at the timeout, even if they ignore SIGTERM', async () => {
    const { publish, output } = await publishing('sh OUTPUT.sh OUTPUT', { txt: () => [] }, 300)
    writeFileSync(`${output}.sh`, 'trap "" TERM; sleep 60 & echo $! > "$1"; wait; wait; sleep 60')
    await expect(publish(record)).rejects.toMatchObject({
      code: 'publish_failed',
      message: 'the --publish command was stopped after 120 seconds',
    })
    const pid = readFileSync(output, 'utf8').trim()
    // A process that has ended may be a zombie until its parent waits for it.
    const states = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[2]
    await expect.poll(() => (existsSync(`/proc/${pid}`) ? states() : 'Z')).toBe('Z')
  }, 20_000)

  test('after Ctrl-C, the running --publish command and the next `publish` call fail with the error `interrupted`', async () => {
    const { publish, context } = await publishing('echo begun; sleep 60', { txt: () => [] })
    let interrupt = () => {}
    context.interrupts.shield = async (work, onSignal) => {
      interrupt = () => onSignal?.('SIGINT')
      return work()
    }
    const begun = publish(record)
    while (!context.stderr.text.includes('begun')) await new Promise((resolve) => setTimeout(resolve, 20))
    interrupt()
    await expect(begun).rejects.toMatchObject({ code: 'interrupted', exit: 130 })
    await expect(publish(record)).rejects.toMatchObject({ code: 'interrupted' })
  })
})

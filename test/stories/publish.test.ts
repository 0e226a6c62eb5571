import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { quoteValue } from '../../src/claims/record.ts'
import { startUpdatableServer, type UpdatableServer } from '../dns/servers/updatable-server.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { createWorld, interruptGroup, program, shareSandbox, type World } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const SPF = 'v=spf1 include:_spf.example.net ~all'
const SECRET = 'hook-secret-0123456789'

const page = readFileSync(new URL('../../docs/publish.md', import.meta.url), 'utf8')

/** The program in docs/publish.md below a heading that begins with this. */
function documented(heading: string): string {
  const [, script] = new RegExp(`\n### ${heading}[^]*?\n\`\`\`sh [^\n]*\n([^]*?)\n\`\`\``).exec(page) ?? []
  if (script === undefined) throw new Error(`docs/publish.md has no program for ${heading}`)
  return script
}

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

describe.runIf(needs('knotd', 'nsupdate', 'posix'))('with Knot, nsupdate and a TSIG key', () => {
  let knot: UpdatableServer
  beforeAll(async () => {
    knot = await startUpdatableServer({
      'shop.example': [`@ TXT "${SPF}"`],
      'resumed.example': [],
      'refused.example': [],
      'bystander.example': [],
    })
    return () => knot.stop()
  })

  /** A person with the documented program, whose claims are verified by looking at the real server. */
  async function createPublisher(): Promise<World> {
    const sandbox = await sandboxForTest({
      verifierPort: knot.port,
      checkSeconds: 0.05,
      transferSeconds: 0.05,
    })
    const world = createWorld()
    Object.assign(world.env, {
      MAILCLAIM_BASE_URL: sandbox.baseUrl,
      MAILCLAIM_API_KEY: sandbox.apiKey,
      MAILCLAIM_RESOLVER: `127.0.0.1:${knot.port}`,
      MAILCLAIM_AUTHORITATIVE_PORT: String(knot.port),
      NSUPDATE_KEY: knot.keyFile,
      NSUPDATE_SERVER: `127.0.0.1 ${knot.port}`,
    })
    writeFileSync(join(world.home, 'publish.sh'), documented('nsupdate'), { mode: 0o755 })
    return world
  }

  test('claim goes from the start to the completed claim, keeps SPF, and removes its record', async () => {
    const world = await createPublisher()
    const words = ['claim', 'shop.example', '--publish', './publish.sh', '--unpublish', './publish.sh']
    const ended = await world.run([...words, '--format', 'jsonl'])
    expect(ended.code, ended.stderr).toBe(0)
    const events = ended.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map(({ event }) => event).filter((event) => event !== 'waiting')).toEqual([
      'created',
      'record',
      'published',
      'dns',
      'verification',
      'completed',
      'unpublished',
    ])
    expect(await knot.txt('shop.example')).toEqual([SPF])
    expect(ended.stderr).not.toContain('no longer needed')

    // The claim is completed: there is nothing to add or to remove.
    const again = await world.run(words)
    expect(again.code, again.stderr).toBe(0)
    expect(again.stderr).toContain("no longer has the TXT value: publish.sh wasn't run")
  })

  test('after a program that failed, the same command continues the same claim', async () => {
    const world = await createPublisher()
    const words = ['claim', 'resumed.example', '--publish', './publish.sh']
    const failed = await world.run(words, { env: { NSUPDATE_KEY: join(world.home, 'no-such-key') } })
    expect(failed.code).toBe(7)
    expect(failed.stderr).toMatch(/^publish\.sh: .*no-such-key/m)
    expect(failed.stderr).toMatch(/^error: publish\.sh ended with exit code \d+$/m)
    expect(failed.stderr).toMatch(/^hint: .*run the same command again: it continues the same claim$/m)
    const done = await world.run([...words, '--format', 'json'])
    expect(done.code, done.stderr).toBe(0)
    expect(done.stderr).toBe('')
    const claim = JSON.parse(done.stdout)
    expect(claim).toMatchObject({ status: 'completed' })
    expect(await knot.txt('resumed.example')).toEqual([claim.record.value])
  })

  test('a server that refuses the update stops the claim', async () => {
    const world = await createPublisher()
    const key = readFileSync(knot.keyFile, 'utf8').replace(/secret ".*"/, `secret "${'A'.repeat(43)}="`)
    writeFileSync(join(world.home, 'wrong.key'), key)
    const ended = await world.run(['claim', 'refused.example', '--publish', './publish.sh'], {
      env: { NSUPDATE_KEY: 'wrong.key' },
    })
    expect(ended.code).toBe(7)
    expect(ended.stderr).toMatch(/^publish\.sh: .*TSIG/im)
    expect(await knot.txt('refused.example')).toEqual([])
  })

  test('the documented program adds and removes any value as it is', async () => {
    const world = await createPublisher()
    const value = `$(touch hacked) \`id\` \\" "; 'ü' END ${'long '.repeat(60)}`
    const record = {
      MAILCLAIM_RECORD_NAME: 'odd.shop.example',
      MAILCLAIM_RECORD_ZONE: 'shop.example',
      MAILCLAIM_RECORD_TTL: '60',
      MAILCLAIM_RECORD_RDATA: quoteValue(value),
    }
    const change = (action: string) =>
      world.script('./publish.sh', { env: { ...record, MAILCLAIM_RECORD_ACTION: action } })
    const added = await change('publish')
    expect(added.code, added.stderr).toBe(0)
    expect(await knot.txt('odd.shop.example')).toEqual([value])
    expect((await change('unpublish')).code).toBe(0)
    expect(await knot.txt('odd.shop.example')).toEqual([])
    expect(existsSync(join(world.home, 'hacked'))).toBe(false)
  })

  test('claims publish adds the record once', async () => {
    const world = await createPublisher()
    await world.run(['claims', 'create', 'bystander.example'])
    const words = ['claims', 'publish', 'bystander.example', '--with', './publish.sh', '--json']
    const first = await world.run(words)
    expect(first.code, first.stderr).toBe(0)
    const [value] = await knot.txt('bystander.example')
    expect(JSON.parse(first.stdout)).toEqual({
      name: 'bystander.example',
      zone: 'bystander.example',
      value,
      ran: true,
    })
    const second = await world.run(words, { env: { NSUPDATE_KEY: 'no-such-key' } })
    expect(second.code, second.stderr).toBe(0)
    expect(JSON.parse(second.stdout)).toMatchObject({ ran: false })
    expect(second.stderr).toBe('')
    const told = await world.run(words.slice(0, -1))
    expect(told.stderr).toContain("has the TXT value already: publish.sh wasn't run")
  })
})

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
    await world.control('PUT', `zones/${domain}/trouble`, { trouble: 'servfail' })
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

describe.runIf(needs('posix', 'jq'))('the documented programs', () => {
  const VALUE = '$(touch hacked) `touch hacked` \\" "; update delete example.com'
  const RDATA = JSON.stringify(VALUE)
  const VARIABLES = {
    MAILCLAIM_RECORD_ACTION: 'publish',
    MAILCLAIM_RECORD_NAME: '_mc.example.com',
    MAILCLAIM_RECORD_HOST: '_mc',
    MAILCLAIM_RECORD_ZONE: 'example.com',
    MAILCLAIM_RECORD_TYPE: 'TXT',
    MAILCLAIM_RECORD_VALUE: VALUE,
    MAILCLAIM_RECORD_RDATA: RDATA,
    MAILCLAIM_RECORD_TTL: '300',
    MAILCLAIM_RECORD_OLD_VALUES: 'v=spf1 -all\none, two',
    MAILCLAIM_RECORD_SET: `"v=spf1 -all"\n"one, two"\n${RDATA}`,
  }
  const REMOVING = {
    MAILCLAIM_RECORD_ACTION: 'unpublish',
    MAILCLAIM_RECORD_OLD_VALUES: `v=spf1 -all\n${VALUE}`,
    MAILCLAIM_RECORD_SET: '"v=spf1 -all"',
  }
  const ALONE = { MAILCLAIM_RECORD_OLD_VALUES: '', MAILCLAIM_RECORD_SET: RDATA }
  const LAST = { ...REMOVING, MAILCLAIM_RECORD_OLD_VALUES: VALUE, MAILCLAIM_RECORD_SET: '' }

  /** Runs a documented program with a tool that records its arguments and prints `answers`. */
  async function run(heading: string, variables: Readonly<Record<string, string>>, answer: unknown = []) {
    const world = createWorld()
    program(
      world.home,
      heading,
      `for word; do printf '%s\\0' "$word"; done >> calls; printf '\\1' >> calls; printf '%s' "$ANSWER"`,
    )
    writeFileSync(join(world.home, 'publish.sh'), documented(heading), { mode: 0o755 })
    Object.assign(world.env, VARIABLES, variables, {
      PATH: `${world.home}:${world.env['PATH']}`,
      ANSWER: JSON.stringify(answer),
      AWS_HOSTED_ZONE_ID: 'Z1',
      GCLOUD_ZONE: 'zone-1',
      AZURE_RESOURCE_GROUP: 'dns group',
    })
    const ended = await world.script('./publish.sh')
    expect(existsSync(join(world.home, 'hacked'))).toBe(false)
    const calls = existsSync(join(world.home, 'calls'))
      ? written(world, 'calls')
          .split('\u0001')
          .slice(0, -1)
          .map((call) => call.split('\0').slice(0, -1))
      : []
    return { ...ended, calls }
  }

  const AWS = ['route53', 'change-resource-record-sets', '--hosted-zone-id', 'Z1', '--change-batch']
  const route53 = (action: string, values: readonly string[]) => ({
    Changes: [
      {
        Action: action,
        ResourceRecordSet: {
          Name: '_mc.example.com.',
          Type: 'TXT',
          TTL: 300,
          ResourceRecords: values.map((value) => ({ Value: value })),
        },
      },
    ],
  })

  test.each([
    ['adds to the set', {}, 'UPSERT', ['"v=spf1 -all"', '"one, two"', RDATA]],
    ['keeps the rest of the set', REMOVING, 'UPSERT', ['"v=spf1 -all"']],
    ['deletes a set that was only ours', LAST, 'DELETE', [RDATA]],
  ] as const)('aws %s', async (_what, variables, action, values) => {
    const { calls, code, stderr } = await run('aws', variables)
    expect(code, stderr).toBe(0)
    expect(calls[0]?.slice(0, -1)).toEqual(AWS)
    expect(JSON.parse(calls[0]?.at(-1) ?? '')).toEqual(route53(action, values))
  })

  test('aws changes nothing if a value has bytes that it would misread', async () => {
    const { calls, code } = await run('aws', { MAILCLAIM_RECORD_SET: '"gr\\195\\188n"' })
    expect({ calls, code }).toEqual({ calls: [], code: 1 })
  })

  const GCLOUD = ['_mc.example.com.', '--zone=zone-1', '--type=TXT']
  test.each([
    [
      'adds to the set',
      {},
      ['update', ...GCLOUD, '--ttl=300', `--rrdatas=^\n^${VARIABLES.MAILCLAIM_RECORD_SET}`],
    ],
    ['creates a set', ALONE, ['create', ...GCLOUD, '--ttl=300', `--rrdatas=^\n^${RDATA}`]],
    [
      'keeps the rest of the set',
      REMOVING,
      ['update', ...GCLOUD, '--ttl=300', '--rrdatas=^\n^"v=spf1 -all"'],
    ],
    ['deletes a set that was only ours', LAST, ['delete', ...GCLOUD]],
  ] as const)('gcloud %s', async (_what, variables, words) => {
    const { calls, code, stderr } = await run('gcloud', variables)
    expect(code, stderr).toBe(0)
    expect(calls).toEqual([['dns', 'record-sets', ...words]])
  })

  test.each([
    ['add-record', {}],
    ['remove-record', REMOVING],
  ] as const)('az runs %s', async (verb, variables) => {
    const { calls } = await run('az', variables)
    const place = ['--resource-group', 'dns group', '--zone-name=example.com', '--record-set-name=_mc']
    expect(calls).toEqual([['network', 'dns', 'record-set', 'txt', verb, ...place, `--value=${VALUE}`]])
  })

  test('az never reads a file for a value', async () => {
    expect(await run('az', { MAILCLAIM_RECORD_VALUE: '@/etc/passwd' })).toMatchObject({ code: 1, calls: [] })
  })

  const LIST = [
    '--json',
    'dns',
    'list',
    '--zone',
    'example.com',
    '--type',
    'TXT',
    '--name',
    '_mc.example.com',
  ]
  const OTHER = { ID: 'other', Content: '"v=spf1 -all"' }
  const RECORD = { ID: 'ours', Content: RDATA }
  const CREATE = ['--zone', 'example.com', '--name', '_mc.example.com', '--type', 'TXT', `--content=${RDATA}`]
  test.each([
    ['creates the record', {}, [OTHER], [['dns', 'create', ...CREATE, '--ttl', '1']]],
    ['creates no second one', {}, [OTHER, RECORD], []],
    ['deletes ours', REMOVING, [OTHER, RECORD], [['dns', 'delete', '--zone', 'example.com', '--id', 'ours']]],
    ['deletes nothing else', REMOVING, [OTHER], []],
  ] as const)('flarectl %s', async (_what, variables, records, changes) => {
    const { calls, code, stderr } = await run('flarectl', variables, records)
    expect(code, stderr).toBe(0)
    expect(calls).toEqual([LIST, ...changes])
  })

  const RECORDS = ['compute', 'domain', 'records']
  const NAMED = { type: 'TXT', name: '_mc', data: VALUE, id: 7 }
  const OTHERS = [
    { ...NAMED, id: 8, data: 'v=spf1 -all' },
    { ...NAMED, id: 9, name: '@' },
  ]
  const DATA = [
    '--record-type',
    'TXT',
    '--record-name',
    '_mc',
    `--record-data=${VALUE}`,
    '--record-ttl',
    '300',
  ]
  test.each([
    ['creates the record', {}, OTHERS, [[...RECORDS, 'create', 'example.com', ...DATA]]],
    ['creates no second one', {}, [...OTHERS, NAMED], []],
    ['deletes ours', REMOVING, [...OTHERS, NAMED], [[...RECORDS, 'delete', 'example.com', '7', '--force']]],
    ['deletes nothing else', REMOVING, OTHERS, []],
  ] as const)('doctl %s', async (_what, variables, records, changes) => {
    const { calls, code, stderr } = await run('doctl', variables, records)
    expect(code, stderr).toBe(0)
    expect(calls).toEqual([[...RECORDS, 'list', 'example.com', '--output', 'json'], ...changes])
  })

  test.each(['flarectl', 'doctl'])(
    '%s that fails stops the program, which must not claim success',
    async (tool) => {
      const { code, calls } = await run(tool, REMOVING, undefined)
      expect({ code, calls: calls.length }).toEqual({ code: 0, calls: 1 })
      const world = createWorld()
      program(world.home, tool, 'exit 4')
      writeFileSync(join(world.home, 'publish.sh'), documented(tool), { mode: 0o755 })
      Object.assign(world.env, VARIABLES, REMOVING, { PATH: `${world.home}:${world.env['PATH']}` })
      expect((await world.script('./publish.sh')).code).toBe(4)
    },
  )

  test.each([
    ['add-records', {}],
    ['remove-records', REMOVING],
  ] as const)('hcloud runs %s', async (verb, variables) => {
    const { calls } = await run('hcloud', variables)
    expect(calls).toEqual([['zone', verb, '--record', RDATA, 'example.com', '_mc', 'TXT']])
  })

  test.each(['aws', 'gcloud'])('%s changes nothing if nobody knows the values to keep', async (tool) => {
    const { calls, code } = await run(tool, {})
    expect(code).toBe(0)
    expect(calls).toHaveLength(1)
    const world = createWorld()
    writeFileSync(join(world.home, 'publish.sh'), documented(tool), { mode: 0o755 })
    const { MAILCLAIM_RECORD_OLD_VALUES: _old, MAILCLAIM_RECORD_SET: _set, ...unknown } = VARIABLES
    program(world.home, tool, 'touch called')
    Object.assign(world.env, unknown, { PATH: `${world.home}:${world.env['PATH']}` })
    expect((await world.script('./publish.sh')).code).not.toBe(0)
    expect(existsSync(join(world.home, 'called'))).toBe(false)
  })
})

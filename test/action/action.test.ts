import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { needs } from '../requirements.ts'
import { program, type ServedWorld, shareSandbox } from '../stories/built-program.ts'
import { ACTION_DIRECTORY, action, type Job, type JobOptions, runJob, type Step } from './runner.ts'

const page = readFileSync(join(ACTION_DIRECTORY, 'docs/github-action.md'), 'utf8')

const expression = (text: string) => `\${{ ${text} }}`

interface Repository extends JobOptions {
  readonly world: ServedWorld
  readonly workspace: string
  /** Runs the action once, with the id `claim`. */
  use(inputs: Step['with'], env?: Step['env']): Promise<Job>
}

describe.runIf(needs('posix', 'bash', 'curl'))('the action', () => {
  const serve = shareSandbox()
  let count = 0
  const nextDomain = (label?: string) => `${label === undefined ? '' : `${label}.`}action${count++}.example`

  /** A repository with a program that publishes at the sandbox, and a machine whose `node` notes its arguments. */
  function createRepository(): Repository {
    const world = serve()
    const workspace = join(world.home, 'workspace')
    const bin = join(world.home, 'bin')
    for (const directory of [workspace, bin]) mkdirSync(directory)
    program(bin, 'node', `printf '%s\\n' "$*" >> '${world.home}/arguments'\nexec '${process.execPath}' "$@"`)
    program(
      workspace,
      'publish.sh',
      `env > '${world.home}/environment'
curl -sSf -o /dev/null -d '{}' "$SANDBOX/_sandbox/claims/$MAILCLAIM_RECORD_NAME/publish"`,
    )
    const { MAILCLAIM_RESOLVER = '', MAILCLAIM_AUTHORITATIVE_PORT = '' } = world.env
    const env = {
      PATH: `${bin}:${world.env['PATH']}`,
      HOME: world.home,
      LANG: 'C.UTF-8',
      SANDBOX: world.service.base_url,
      MAILCLAIM_RESOLVER,
      MAILCLAIM_AUTHORITATIVE_PORT,
    }
    const options = { home: world.home, env, cache: new Map<string, string>() }
    return {
      world,
      workspace,
      ...options,
      use: (inputs, own = {}) =>
        runJob([{ id: 'claim', uses: './', with: { ...defaultsOf(world), ...inputs }, env: own }], options),
    }
  }

  const defaultsOf = ({ service }: ServedWorld) => ({
    'api-key': service.api_key,
    'base-url': service.base_url,
    version: 'checkout',
  })

  const outputsOf = (job: Job) => job.steps['claim']?.outputs ?? {}
  const annotations = (job: Job) =>
    job.commands.filter(({ command }) => ['error', 'warning', 'notice'].includes(command))

  /** The API key is nowhere but in the command that masks it. */
  function expectNoSecret(job: Job, { world, home }: Repository): void {
    const key = world.service.api_key
    expect(job.commands.filter(({ command }) => command === 'add-mask').map(({ data }) => data)).toContain(
      key,
    )
    const rest = job.commands.filter(({ command }) => command !== 'add-mask')
    expect(JSON.stringify([job.log, job.summary, job.steps, job.env, rest])).not.toContain(key)
    for (const file of ['arguments', 'environment'].map((name) => join(home, name)))
      if (existsSync(file)) expect(readFileSync(file, 'utf8')).not.toContain(key)
  }

  test('claims a domain with a program that publishes, from the start to the completed claim', async () => {
    const repository = createRepository()
    const domain = nextDomain('shop.eu')
    const job = await repository.use({ domain, publish: './publish.sh' }, { DNS_TOKEN: 'of the step' })
    expect(job.log).toContain('Completed: the domain is yours')
    expect(job.succeeded).toBe(true)
    expect(outputsOf(job)).toEqual({
      result: 'completed',
      'exit-code': '0',
      status: 'completed',
      reason: '',
      verdict: '',
      'domain-id': expect.stringMatching(/^[\w-]{36}$/),
      'record-type': 'TXT',
      'record-name': domain,
      'record-host': 'shop.eu',
      'record-zone': domain.replace('shop.eu.', ''),
      'record-value': expect.stringMatching(/^sandbox-domain-verification=\S+$/),
    })
    expect(annotations(job)).toEqual([])
    expect(job.summary).toContain(
      `## mailclaim: \` ${domain} \`\n\n- **Result:** the domain is yours (exit code 0)`,
    )

    const environment = readFileSync(join(repository.home, 'environment'), 'utf8')
    expect(environment).toContain('DNS_TOKEN=of the step')
    expect(environment).toContain(`MAILCLAIM_RECORD_NAME=${domain}`)
    expect(environment).not.toMatch(/^(MAILCLAIM_(?!RECORD_)|INPUT_)/m)
    expect(readFileSync(join(repository.home, 'arguments'), 'utf8')).toContain(domain)
    expectNoSecret(job, repository)
  })

  test('a record that is not in DNS is not yet: exit code 8, with the cause in the summary', async () => {
    const repository = createRepository()
    const domain = nextDomain()
    const job = await repository.use({ domain, timeout: 1 })
    expect(job.succeeded).toBe(false)
    const { 'record-value': value = '', ...outputs } = outputsOf(job)
    expect(outputs).toMatchObject({
      result: 'not-yet',
      'exit-code': '8',
      status: 'pending',
      verdict: 'fix',
      'record-host': '@',
    })
    expect(annotations(job)).toEqual([
      {
        command: 'error',
        properties: { title: `mailclaim: ${domain}` },
        data: expect.stringMatching(
          /^The TXT record isn't at \S+: expected .*, there are no TXT records\nhint: Add a TXT record in the zone .*$/,
        ),
      },
    ])
    expect(job.summary).toContain('- **Result:** not yet:')
    expect(job.summary).toContain(`- **Record:** TXT at \` ${domain} \` with the value \` ${value} \``)
    expect(job.summary).toContain(`## DNS check of \`${domain}\``)
    expect(job.summary).toContain(`host \`@\`, value \`${value}\``)
    expectNoSecret(job, repository)

    const calm = await repository.use({ domain, timeout: 1, 'fail-on': 'ended' })
    expect(calm.succeeded).toBe(true)
    expect(outputsOf(calm)).toEqual(outputsOf(job))
    expect(annotations(calm).map(({ command }) => command)).toEqual(['warning'])
  })

  test('a blocked claim has ended: exit code 9, with the reason', async () => {
    const repository = createRepository()
    const domain = nextDomain('blocked-grace')
    const job = await repository.use({ domain, publish: './publish.sh', 'fail-on': 'ended' })
    expect(job.succeeded).toBe(false)
    expect(outputsOf(job)).toMatchObject({
      result: 'ended',
      'exit-code': '9',
      status: 'blocked',
      reason: 'grace_period',
    })
    expect(annotations(job)).toMatchObject([
      { command: 'error', data: expect.stringContaining('grace period') },
    ])
    expect(job.summary).toContain('- **Result:** the claim is blocked, or ended unsuccessfully (exit code 9)')
    expect(job.summary).toContain('- **Status:** ` blocked: grace_period `')
    expect(job.summary).toContain('to wait in this action until the block lifts: options: --through-blocked')
    expectNoSecret(job, repository)

    const waiting = await repository.use({ domain, timeout: 1, options: '--through-blocked' })
    expect(annotations(waiting)).toMatchObject([
      { command: 'error', data: expect.stringMatching(/^the claim is blocked: grace_period\n/) },
    ])

    const calm = await repository.use({ domain, 'fail-on': 'not-yet' })
    expect(calm.succeeded).toBe(true)
    expect(outputsOf(calm)['result']).toBe('ended')
    expect(annotations(calm)).toMatchObject([{ command: 'warning' }])
  })

  test('a failed claim has no record anymore', async () => {
    const { use } = createRepository()
    const job = await use({ domain: nextDomain('failed'), publish: './publish.sh' })
    expect(job.succeeded).toBe(false)
    expect(outputsOf(job)).toMatchObject({
      result: 'ended',
      status: 'failed',
      reason: 'ownership_check_failed',
      'record-name': '',
      'record-value': '',
      verdict: '',
    })
  })

  test.each([
    ['the same job', false],
    ['another job on another machine', true],
  ])('a step of the user publishes between create and wait, in %s', async (_where, isSplit) => {
    const { world, ...options } = createRepository()
    const domain = nextDomain()
    const create: Step = { id: 'create', uses: './', with: { ...defaultsOf(world), domain, mode: 'create' } }
    const publish: Step = {
      id: 'publish',
      if: "steps.create.outputs.status == 'pending'",
      // The later steps of the job have the program too.
      run: `mailclaim --version
curl -sSf -o /dev/null -X PUT "$SANDBOX/_sandbox/dns/$NAME/TXT" --data "\\"$VALUE\\""`,
      env: {
        NAME: expression('steps.create.outputs.record-name'),
        VALUE: expression('steps.create.outputs.record-value'),
      },
    }
    const wait: Step = { id: 'claim', uses: './', with: { ...defaultsOf(world), domain, mode: 'wait' } }
    const [first, second] = isSplit
      ? [await runJob([create, publish], options), await runJob([wait], options)]
      : [undefined, await runJob([create, publish, wait], options)]
    const created = (first ?? second).steps['create']?.outputs
    expect(created).toMatchObject({
      result: 'not-yet',
      'exit-code': '8',
      verdict: 'fix',
      'record-zone': domain,
    })
    expect((first ?? second).succeeded).toBe(true)
    expect(annotations(first ?? second)).toEqual([])
    expect(second.succeeded).toBe(true)
    expect(outputsOf(second)).toMatchObject({ result: 'completed', 'domain-id': created?.['domain-id'] })
    expect(options.cache?.size).toBe(1)
  })

  test('a scheduled workflow continues its claim on new machines until it is completed, and then stays green', async () => {
    const repository = createRepository()
    const domain = nextDomain()
    const inputs = { domain, timeout: 1, 'fail-on': 'ended' }
    const ids = new Set<string | undefined>()
    const results: (string | undefined)[] = []
    for (const run of [1, 2, 3, 4]) {
      if (run === 3) await repository.world.control('POST', `claims/${domain}/publish`, {})
      const job = await repository.use({ ...inputs, timeout: run > 2 ? 60 : 1 })
      expect(job.succeeded).toBe(true)
      results.push(outputsOf(job)['result'])
      ids.add(outputsOf(job)['domain-id'])
    }
    expect(results).toEqual(['not-yet', 'not-yet', 'completed', 'completed'])
    expect(ids.size).toBe(1)

    const [id] = ids
    const byId = await repository.use({ ...inputs, 'domain-id': id ?? '', cache: false })
    expect(outputsOf(byId)).toMatchObject({ result: 'completed', 'domain-id': id })

    // Without either, nothing tells this domain from one that another claim got.
    const unknown = await repository.use({ ...inputs, cache: false })
    expect(unknown.succeeded).toBe(false)
    expect(outputsOf(unknown)).toMatchObject({ result: 'error', 'exit-code': '6', 'domain-id': '' })
  })

  test('wait and domain-id never start another claim', async () => {
    const repository = createRepository()
    const { world, use } = repository
    const claimCount = async () => {
      const { requests } = (await world.control('GET', 'state')) as {
        requests: { by_route: Record<string, number> }
      }
      return requests.by_route['POST /domains/claim']
    }
    const adviceFor = (inputs: object) =>
      `${'domain-id' in inputs ? 'remove the input domain-id and ' : ''}use mode: claim to start another`
    const domain = nextDomain()
    const other = nextDomain()
    const id = outputsOf(await use({ domain, mode: 'create' }))['domain-id'] ?? ''
    const otherId = outputsOf(await use({ domain: other, mode: 'create' }))['domain-id'] ?? ''
    const before = await claimCount()
    expect(before).toBeGreaterThan(0)

    const wrong = await use({ domain, 'domain-id': otherId })
    expect(outputsOf(wrong)).toMatchObject({
      result: 'error',
      'exit-code': '2',
      status: '',
      'domain-id': '',
    })
    const message = `domain-id: this is the claim of ${other}, not of ${domain}`
    expect(annotations(wrong)).toMatchObject([{ command: 'error', data: message }])
    const unknown = await use({ domain: nextDomain(), mode: 'wait' })
    expect(outputsOf(unknown)).toMatchObject({ result: 'error', 'exit-code': '5' })
    expect(unknown.summary).toContain('in this action: give the input domain-id of the earlier run')

    await world.control('POST', `claims/${domain}/outcome`, { outcome: 'cancel' })
    for (const inputs of [{ mode: 'wait' }, { 'domain-id': id }]) {
      const ended = await use({ domain, ...inputs })
      expect(outputsOf(ended)).toMatchObject({ result: 'ended', 'exit-code': '9', status: 'canceled' })
      expect(annotations(ended)).toMatchObject([
        { command: 'error', data: expect.stringContaining('canceled') },
      ])
      expect(ended.summary).toContain(`in this action: ${adviceFor(inputs)}`)
    }
    await world.control('POST', 'faults', {
      kind: 'status',
      status: 404,
      path: '/domains/*/claim',
      method: 'GET',
    })
    try {
      for (const inputs of [{ mode: 'wait' }, { mode: 'wait', 'domain-id': id }, { 'domain-id': id }]) {
        const gone = await use({ domain: other, ...inputs })
        expect(outputsOf(gone)).toMatchObject({ result: 'error', 'exit-code': '5' })
        expect(gone.summary).toContain(`in this action: ${adviceFor(inputs)}`)
        expect(gone.summary).not.toContain('give the input domain-id')
      }
    } finally {
      await world.control('DELETE', 'faults')
    }
    expect(await claimCount()).toBe(before)

    // What they advise works.
    const another = await use({ domain, timeout: 1 })
    expect(outputsOf(another)).toMatchObject({ result: 'not-yet', status: 'pending' })
    expect(outputsOf(another)['domain-id']).not.toBe(id)
  })

  test('a program that fails is an error, and the claim is kept for the next run', async () => {
    const repository = createRepository()
    program(repository.workspace, 'broken.sh', "echo '::error::pwned'; echo 'error: not ours'; exit 3")
    const domain = nextDomain()
    const job = await repository.use({ domain, publish: './broken.sh' })
    expect(job.succeeded).toBe(false)
    expect(outputsOf(job)).toMatchObject({ result: 'error', 'exit-code': '7', status: 'pending' })
    expect(outputsOf(job)['domain-id']).not.toBe('')
    expect(annotations(job)).toMatchObject([
      { command: 'error', data: expect.stringMatching(/^broken\.sh ended with exit code 3\nhint: /) },
    ])
    const next = await repository.use({ domain, publish: './publish.sh' })
    expect(outputsOf(next)).toMatchObject({ result: 'completed', 'domain-id': outputsOf(job)['domain-id'] })
  })

  test('warnings of mailclaim are annotations, and other options reach it', async () => {
    const repository = createRepository()
    program(repository.workspace, 'stay.sh', 'exit 1')
    const domain = nextDomain()
    const job = await repository.use({
      domain,
      publish: './publish.sh',
      unpublish: './stay.sh',
      options: '--region=eu-west-1\r\n\n--publish-timeout=9\n',
    })
    expect(job.succeeded).toBe(true)
    expect(annotations(job)).toMatchObject([
      { command: 'warning', data: expect.stringContaining("the record wasn't removed") },
    ])
    expect(readFileSync(join(repository.home, 'arguments'), 'utf8')).toContain(
      '--region=eu-west-1 --publish-timeout=9',
    )
  })

  test.each([
    ['--region us-east-1', 'joined by =, without a space: --region=us-east-1'],
    ['--quiet\r\n--json', 'not --json'],
  ])('the options %j are a mistake that the annotation names', async (options, why) => {
    const job = await createRepository().use({ domain: nextDomain(), options })
    expect(outputsOf(job)).toMatchObject({ result: 'error', 'exit-code': '2' })
    expect(annotations(job)).toMatchObject([{ command: 'error', data: expect.stringContaining(why) }])
  })

  describe('with hostile text', () => {
    const HOSTILE = [
      '%0A::error::pwned',
      '\n::error::pwned\n##[add-path]pwned\n::add-path::pwned',
      '$(touch hacked)`touch hacked`";touch hacked;\'',
      '\nEOF\nresult=completed\n',
      '--help',
      '| a | [click](https://evil.example) ![x](https://evil.example/x.png) <img src=x> @everyone ``` #1',
    ]

    function expectInert(job: Job, { workspace }: Repository): void {
      expect(existsSync(join(workspace, 'hacked'))).toBe(false)
      const names = new Set(job.commands.map(({ command }) => command))
      expect([...names].filter((name) => !['add-mask', 'error', 'warning'].includes(name))).toEqual([])
      for (const { data } of annotations(job)) expect(data).not.toMatch(/^pwned/)
      expect(Object.keys(outputsOf(job)).sort()).toEqual(Object.keys(action.outputs).sort())
    }

    /** What is left of Markdown without its code spans. */
    const outsideCode = (markdown: string) => markdown.replaceAll(/(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)/g, '')

    test.each(HOSTILE)('in the domain: %j', async (domain) => {
      const repository = createRepository()
      const job = await repository.use({ domain })
      expect(job.succeeded).toBe(false)
      expect(outputsOf(job)).toMatchObject({ result: 'error', 'exit-code': '2' })
      expectInert(job, repository)
      expect(outsideCode(job.summary)).not.toMatch(/pwned|evil|touch|<img|everyone/)
      // Only lines of ours stand outside of code spans.
      expect(job.summary.split('\n').filter((line) => line && !/^(## |- \*\*)/.test(line))).toEqual([])
    })

    test.each([HOSTILE.join(' '), '--help'])('in the other inputs: %j', async (text) => {
      const repository = createRepository()
      for (const name of [
        'mode',
        'domain-id',
        'publish',
        'timeout',
        'options',
        'fail-on',
        'base-url',
        'api-key',
      ]) {
        const job = await repository.use({
          domain: nextDomain(),
          timeout: 1,
          'fail-on': 'none',
          [name]: text,
        })
        expect(outputsOf(job)['result'], name).not.toBe('completed')
        expectInert(job, repository)
      }
    })

    test('in what the service and DNS say', async () => {
      const repository = createRepository()
      const { world } = repository
      const domain = nextDomain()
      const hostile = HOSTILE.join(' ')
      await world.control('PUT', `dns/${domain}/TXT`, { values: [hostile.slice(0, 250)] })
      await world.control('POST', 'faults', {
        kind: 'merge',
        path: '*',
        fields: {
          blocked_reason: hostile,
          status: 'blocked',
          record: { type: 'TXT', name: domain, value: hostile },
        },
      })
      try {
        const job = await repository.use({ domain, timeout: 1 })
        expect(outputsOf(job)).toMatchObject({ result: 'ended', 'exit-code': '9', status: 'blocked' })
        expectInert(job, repository)
        for (const value of Object.values(outputsOf(job))) expect(value).not.toContain('\n')
        expect(job.summary).toContain('evil.example')
        expect(outsideCode(job.summary)).not.toMatch(/pwned|evil|touch|<img|everyone/)
      } finally {
        await world.control('DELETE', 'faults')
      }
    })
  })

  test.each([
    [{ mode: 'delete' }, 'mode: claim, create or wait'],
    [{ mode: 'create', publish: './publish.sh' }, 'publish and unpublish: not with mode create'],
    [{ 'fail-on': 'never' }, 'fail-on: not-yet, ended, both, or none'],
    [{ 'api-key': '' }, 'api-key: missing; give it from a secret'],
  ])('the inputs %j are refused', async (inputs, message) => {
    const job = await createRepository().use({ domain: 'example.com', ...inputs })
    expect(job.succeeded).toBe(false)
    expect(outputsOf(job)).toMatchObject({ result: 'error', 'exit-code': '2' })
    expect(annotations(job)).toMatchObject([{ command: 'error', data: message }])
  })

  test('the key and the address can come from variables of the job', async () => {
    const repository = createRepository()
    const { api_key, base_url } = repository.world.service
    const job = await repository.use(
      { domain: nextDomain(), mode: 'create', 'api-key': '', 'base-url': '' },
      { MAILCLAIM_API_KEY: api_key, MAILCLAIM_BASE_URL: base_url },
    )
    expect(outputsOf(job)).toMatchObject({ status: 'pending' })
    expectNoSecret(job, repository)
  })

  describe('installs', () => {
    /** A repository whose npm notes what it got. */
    function withNpm(): Repository {
      const repository = createRepository()
      program(
        join(repository.home, 'bin'),
        'npm',
        `env > '${repository.home}/npm-environment'\nprintf '%s\\n' "$@" > '${repository.home}/npm-arguments'`,
      )
      return repository
    }
    const { version } = JSON.parse(readFileSync(join(ACTION_DIRECTORY, 'package.json'), 'utf8'))

    test.each([
      ['', version],
      ['1.2.3-rc.1', '1.2.3-rc.1'],
    ])('version "%s": mailclaim@%s of npm, without scripts and without the key', async (given, installed) => {
      const { use, home, world } = withNpm()
      await use({ domain: 'example.com', version: given }, { MAILCLAIM_API_KEY: world.service.api_key })
      const words = readFileSync(join(home, 'npm-arguments'), 'utf8').trim().split('\n')
      expect(words[0]).toBe('install')
      expect(words).toContain('--ignore-scripts')
      expect(words.at(-1)).toBe(`mailclaim@${installed}`)
      expect(readFileSync(join(home, 'npm-environment'), 'utf8')).not.toContain(world.service.api_key)
    })

    test('an installation that fails has an annotation and a result', async () => {
      const repository = createRepository()
      program(join(repository.home, 'bin'), 'npm', 'exit 1')
      const job = await repository.use({ domain: 'example.com', version: '9.9.9' })
      expect(job.succeeded).toBe(false)
      expect(annotations(job)).toMatchObject([
        { command: 'error', data: "npm couldn't install mailclaim@9.9.9: the log of this step says why" },
      ])
      expect(outputsOf(job)).toMatchObject({ result: 'error' })
    })

    test.each([
      'file:../evil',
      'git+https://evil.example',
      '--registry=x',
      '1.0.0 evil',
      '$(touch hacked)',
      '@x/y',
    ])('not the version "%s"', async (given) => {
      const { use, home } = withNpm()
      const job = await use({ domain: 'example.com', version: given })
      expect(job.succeeded).toBe(false)
      expect(annotations(job)).toMatchObject([{ command: 'error', data: 'version: give one such as 1.2.3' }])
      expect(outputsOf(job)).toMatchObject({ result: 'error', 'exit-code': '2' })
      expect(existsSync(join(home, 'npm-arguments'))).toBe(false)
    })

    test('not with a Node that is too old', async () => {
      const { use, home } = withNpm()
      program(join(home, 'bin'), 'node', 'exit 1')
      const job = await use({ domain: 'example.com' })
      expect(annotations(job)).toMatchObject([
        { command: 'error', data: expect.stringContaining('Node 20.19') },
      ])
      expect(existsSync(join(home, 'npm-arguments'))).toBe(false)
    })
  })

  describe('the documented workflows', () => {
    interface Workflow {
      readonly permissions: unknown
      readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>
    }
    const workflows = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)]
      .map(([, text = '']) => parse(text) as Workflow)
      .filter(({ jobs }) => jobs !== undefined)

    test('there are three of them, and they need no permissions', () => {
      expect(workflows.map(({ permissions }) => permissions)).toEqual(
        [{}, {}, {}].map(() => expect.anything()),
      )
    })

    test.each(workflows.map((workflow, at) => [at + 1, workflow] as const))(
      'number %i',
      async (_number, { jobs }) => {
        const { world, env, ...options } = createRepository()
        const domain = nextDomain()
        program(
          join(options.workspace),
          'add-txt-record',
          `SANDBOX=${world.service.base_url}
curl -sSf -o /dev/null -X PUT "$SANDBOX/_sandbox/dns/$1/TXT" --data "\\"$2\\""`,
        )
        for (const { steps } of Object.values(jobs)) {
          const own = steps.map((step) =>
            step.uses?.includes('/mailclaim@')
              ? {
                  ...step,
                  with: {
                    ...step.with,
                    domain,
                    ...(step.with?.['timeout'] === undefined ? {} : { timeout: 1 }),
                    'base-url': world.service.base_url,
                    version: 'checkout',
                  },
                }
              : step,
          )
          const secrets = { MAILCLAIM_API_KEY: world.service.api_key, DNS_TOKEN: 'token' }
          const run = () => runJob(own, { ...options, env, secrets })
          let job = await run()
          if (outputsOf(job)['result'] === 'not-yet') {
            expect(job.succeeded).toBe(true)
            await world.control('POST', `claims/${domain}/publish`, {})
            job = await run()
          }
          expect(job.succeeded, job.log).toBe(true)
          expect(outputsOf(job)['result']).toBe('completed')
        }
      },
    )
  })
})

describe('action.yml', () => {
  const { inputs, outputs, runs } = action
  const scripts = runs.steps.filter((step) => step.run !== undefined)

  test('no expression is a part of a script, and every input is a variable that no program of the user gets', () => {
    for (const { run, shell, env = {} } of scripts) {
      expect(run).not.toContain('${{')
      expect(shell).toBe('bash')
      for (const name of Object.keys(env)) expect(name).toMatch(/^MAILCLAIM_ACTION_/)
    }
    const read = scripts.flatMap(({ env = {} }) => Object.values(env))
    const elsewhere = ['cache']
    expect([...read, ...elsewhere.map((name) => expression(`inputs.${name}`))].sort()).toEqual(
      Object.keys(inputs)
        .map((name) => expression(`inputs.${name}`))
        .sort(),
    )
  })

  test('actions of others are pinned to a commit', () => {
    for (const { uses } of runs.steps)
      if (uses !== undefined) expect(uses).toMatch(/^actions\/cache\/(restore|save)@[0-9a-f]{40}$/)
  })

  test.each([
    [
      'Inputs',
      Object.entries(inputs).map(([name, { description, default: value }]) => [name, description, value]),
    ],
    ['Outputs', Object.entries(outputs).map(([name, { description }]) => [name, description])],
  ])('the page lists the %s as they are', (heading, entries) => {
    const [, table = ''] = new RegExp(`\n## ${heading}\n\n([^]*?)\n\n`).exec(page) ?? []
    expect(table.split('\n').slice(2)).toEqual(
      entries.map(
        ([name, description, value]) =>
          `| \`${name}\` | ${description} |${heading === 'Inputs' ? ` ${value === undefined ? '' : `\`${value}\``} |` : ''}`,
      ),
    )
  })

  test('the scripts are valid for bash, and each is used', () => {
    const names = ['claim.sh', 'install.sh', 'summary.sh', 'workflow-commands.sh']
    const used = [...scripts.map(({ run }) => run), ...names.map((name) => textOf(name))].join('\n')
    for (const name of names) expect(used).toMatch(new RegExp(`/(action/)?${name}"`))
  })
})

const textOf = (script: string) => readFileSync(join(ACTION_DIRECTORY, 'action', script), 'utf8')

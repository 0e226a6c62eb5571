import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { needs, which } from '../requirements.ts'
import { type ServedWorld, shareSandbox, writeScript } from '../stories/built-program.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Step {
  readonly id?: string
  readonly uses?: string
  readonly run?: string
  readonly env?: Readonly<Record<string, string>>
  readonly with?: Readonly<Record<string, string>>
}

const action = parse(readFileSync(join(ROOT, 'action.yml'), 'utf8')) as {
  inputs: Record<string, { default?: string }>
  outputs: Record<string, { value: string }>
  runs: { steps: Step[] }
}

/** Programs of a GitHub runner, besides Node, that the action uses. */
const TOOLS = [
  ...'bash cat chmod cp curl cut env grep gzip head ldd ln ls mkdir mktemp mv od'.split(' '),
  ...'readlink rm rmdir sed sh sha256sum shasum tail tar tee tr uname'.split(' '),
]

/** Parses GITHUB_OUTPUT: `name=value`, or `name<<delimiter` with lines up to the delimiter. */
function readOutputs(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/^([\w-]+)(?:=(.*)|<<(\S+)\n([\s\S]*?)\n\3)$/gm)].map(([, name = '', one, , lines]) => [
      name,
      one ?? lines ?? '',
    ]),
  )
}

/** Finds the workflow commands in a log; none between `::stop-commands::token` and `::token::`. */
function commandsIn(log: string): string[] {
  return [...log.replace(/^::stop-commands::(\w+)$[\s\S]*?^::\1::$/gm, '').matchAll(/^::.*$/gm)].map(
    ([line]) => line,
  )
}

describe.runIf(needs('posix', 'bash', 'curl'))('the action', () => {
  const serve = shareSandbox(['--auto-approve'])
  let registry = ''
  let count = 0

  beforeAll(async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'registry.mjs')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    registry = await new Promise((done) => createInterface({ input: child.stdout }).once('line', done))
    return () => child.kill()
  })

  /** Creates a job's machine with a command that publishes in the sandbox. The action's cache is kept between runs. */
  function createJob() {
    const world = serve()
    const temp = join(world.home, 'temp')
    const cached = join(world.home, 'cached')
    writeScript(
      world.home,
      'publish.sh',
      `env > '${world.home}/environment'; echo '::error::from the hook'
curl -sSf -o /dev/null -d '{}' '${world.service.base_url}/_sandbox/claims/'"$MAILCLAIM_RECORD_NAME/publish"`,
    )
    const run = (inputs: Record<string, string>, more: Record<string, string> = {}) => {
      rmSync(temp, { recursive: true, force: true })
      mkdirSync(temp)
      const given: Record<string, string> = {
        ...Object.fromEntries(Object.entries(action.inputs).map(([name, one]) => [name, one.default ?? ''])),
        'api-key': world.service.api_key,
        'base-url': world.service.base_url,
        ...inputs,
      }
      const inputIn = (text: string) =>
        text.replace(/\$\{\{ inputs\.([\w-]+)( \|\| env\.\w+)? \}\}/, (_, name) => given[name] ?? '')
      const { MAILCLAIM_RESOLVER = '', MAILCLAIM_AUTHORITATIVE_PORT = '' } = world.env
      let log = ''
      let status: number | null = 0
      for (const { id, run: script, env = {} } of action.runs.steps) {
        if (script === undefined) continue
        if (id === 'claim' && existsSync(cached)) {
          writeFileSync(join(temp, 'mailclaim/domain-id'), readFileSync(cached))
        }
        const ended = spawnSync(which('bash') ?? '', ['-e', '-c', script], {
          cwd: world.home,
          encoding: 'utf8',
          env: {
            ...{ PATH: world.env['PATH'], HOME: world.home, RUNNER_TEMP: temp, GITHUB_ACTION_PATH: ROOT },
            ...{ GITHUB_OUTPUT: join(temp, 'outputs'), MAILCLAIM_RESOLVER, MAILCLAIM_AUTHORITATIVE_PORT },
            ...{ npm_config_registry: registry, npm_config_fetch_retries: '0', ...more },
            ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, inputIn(value)])),
          },
        })
        log += ended.stdout + ended.stderr
        status = ended.status
        if (status !== 0) break
      }
      const { known = '', ...outputs } = readOutputs(readFileSync(join(temp, 'outputs'), 'utf8'))
      if (existsSync(known)) writeFileSync(cached, readFileSync(known))
      return {
        status,
        outputs,
        log,
        commands: commandsIn(log),
        kept: existsSync(cached) ? readFileSync(cached, 'utf8') : '',
      }
    }
    return { world, run, domain: `action${count++}.example` }
  }

  const secretsOutside = (log: string, { service }: ServedWorld) =>
    log.replace(`::add-mask::${service.api_key}\n`, '').includes(service.api_key)

  test('the GitHub action completes a claim with a publish command, and caches the domain id', () => {
    const { world, run, domain } = createJob()
    const { status, outputs, log, commands, kept } = run({ domain, publish: './publish.sh' })
    expect({ status, log }).toMatchObject({ status: 0 })
    expect(outputs).toEqual({
      result: 'completed',
      'exit-code': '0',
      status: 'completed',
      'domain-id': kept,
      'record-type': 'TXT',
      'record-name': domain,
      'record-value': expect.stringMatching(/^sandbox-domain-verification=\S+$/),
    })
    expect(Object.keys(outputs).toSorted()).toEqual(Object.keys(action.outputs).toSorted())
    // Output of other programs must not be a workflow command, and only mailclaim may get the API key.
    expect(commands).toEqual([`::add-mask::${world.service.api_key}`])
    expect(secretsOutside(log, world)).toBe(false)
    expect(readFileSync(join(world.home, 'environment'), 'utf8')).not.toMatch(/^MAILCLAIM_(?!RECORD_)/m)
  })

  test('the GitHub action fails while the record is not in DNS, and continues the same claim in the next run', () => {
    const { run, domain } = createJob()
    const first = run({ domain, timeout: '1', region: 'eu-west-1' })
    expect(first.status).toBe(8)
    expect(first.outputs).toMatchObject({ result: 'not-yet', 'exit-code': '8', status: 'pending' })
    expect(first.commands.at(-1)).toMatch(/^::error title=mailclaim::error: /)
    const second = run({ domain, publish: './publish.sh' })
    expect(second.outputs).toMatchObject({ result: 'completed', 'domain-id': first.outputs['domain-id'] })
  })

  test('for a superseded claim, the GitHub action exits 9 and outputs the domain-id of that claim', async () => {
    const { world, run, domain } = createJob()
    const first = run({ domain, timeout: '1' })
    await world.control('POST', `claims/${domain}/outcome`, { status: 'superseded' })
    const { status, outputs, commands } = run({ domain, timeout: '1' })
    expect({ status, outputs }).toMatchObject({
      status: 9,
      outputs: { result: 'superseded', 'domain-id': first.outputs['domain-id'] },
    })
    expect(commands.join('\n')).toContain(
      'if the domain is yours, remove this step, else delete the cache entry',
    )
  })

  const NO_RECORD = { 'record-type': '', 'record-name': '', 'record-value': '' }
  test.each([
    ['record value', { record: { type: 'TXT', name: 'DOMAIN', value: 'p=$(id)' } }, NO_RECORD],
    [
      'record name',
      { record: { type: 'TXT', name: 'victim.example', value: 'p=t' }, status: 'completed' },
      NO_RECORD,
    ],
    ['record type', { record: { type: 'MX', name: 'DOMAIN', value: 'p=t' }, status: 'completed' }, NO_RECORD],
    ['status', { status: 'odd\n$(id)' }, { status: '' }],
  ])('the GitHub action outputs no harmful or wrong %s from the service', async (_, fields, expected) => {
    const { world, run, domain } = createJob()
    const own = JSON.parse(JSON.stringify(fields).replace('DOMAIN', domain)) as object
    await world.control('POST', 'faults', { kind: 'merge', path: '/domains/*', fields: own })
    const { outputs } = run({ domain, timeout: '1' })
    await world.control('DELETE', 'faults')
    expect(outputs).toMatchObject(expected)
  })

  test('with an API key that the service rejects, the GitHub action exits 4 and caches no claim', () => {
    const { run, domain } = createJob()
    const { status, outputs, kept } = run({ domain, 'api-key': 'wrong', timeout: '1' })
    expect({ status, outputs, kept }).toMatchObject({
      status: 4,
      outputs: { result: 'error', 'exit-code': '4', 'domain-id': '', 'record-value': '' },
      kept: '',
    })
  })

  /** Returns the environment of a machine without Node, and of an archive whose Node is a script that starts the tests' Node. */
  async function withoutNode({ home }: ServedWorld) {
    const [PATH, archives] = [join(home, 'tools'), join(home, 'archives')]
    mkdirSync(PATH)
    for (const tool of TOOLS) {
      const path = which(tool)
      if (path !== undefined) symlinkSync(path, join(PATH, tool))
    }
    writeScript(home, 'node', `exec '${process.execPath}' "$@"`)
    const { writeArchive } = await import(join(ROOT, 'scripts/archive.mjs'))
    const { platform, arch } = process
    await writeArchive(
      { program: join(home, 'node'), license: join(ROOT, 'LICENSE'), platform, arch },
      archives,
    )
    return { PATH, INSTALL_FROM: archives }
  }

  test('without Node, the GitHub action runs mailclaim from a release archive, or exits 1 if SHA256SUMS is missing', async () => {
    const { world, run, domain } = createJob()
    const machine = await withoutNode(world)
    const { outputs, log } = run({ domain, publish: './publish.sh' }, machine)
    expect({ outputs, log }).toMatchObject({ outputs: { result: 'completed' } })

    rmSync(join(machine.INSTALL_FROM, 'SHA256SUMS'))
    const { status, commands } = run({ domain }, machine)
    expect({ status, commands }).toEqual({
      status: 1,
      commands: [
        expect.stringMatching(
          /^::error title=mailclaim::npm and Node .* or later .* are missing, .* can't get /,
        ),
      ],
    })
  })

  test('action.yml caches the file `domain-id`, with cache actions pinned to a commit', () => {
    const caches = action.runs.steps.filter(({ uses }) => uses?.startsWith('actions/cache/'))
    expect(caches).toHaveLength(2)
    for (const { uses = '', with: options = {} } of caches) {
      expect(uses).toMatch(/@[0-9a-f]{40}$/)
      expect(options['path']).toContain('steps.install.outputs.known')
    }
  })
})

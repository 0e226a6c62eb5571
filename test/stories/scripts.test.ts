import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { createWorld, install, type ServedWorld, shareSandbox } from './world.ts'

const newWorld = shareSandbox()
let world: ServedWorld

beforeEach(() => {
  world = newWorld()
  install(world)
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
})

/** A script in a real shell, in the world's home. */
function inShell(script: string, shell = 'bash', env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(shell, ['-c', script], {
    cwd: world.home,
    env: { ...world.env, ...env },
    encoding: 'utf8',
    input: '',
    timeout: 50_000,
  })
  return { code: status, stdout, stderr }
}

/** A name that no other test of this file uses: they share the service. */
let count = 0
const newDomain = (label = 'd') => `${label}.s${++count}.example`

describe.runIf(needs('bash', 'curl'))('a script can tell the exit codes apart', () => {
  const publish =
    'curl -sS -f -o /dev/null -X POST "$MAILCLAIM_BASE_URL/_sandbox/claims/$domain/publish" --data "{}"'

  test.each<[number, string, string]>([
    [0, 'done', 'mailclaim grants list'],
    [1, 'the settings cannot be written', 'MAILCLAIM_CONFIG_DIR=/dev/null/x mailclaim config set store file'],
    [2, 'a bad flag', 'mailclaim grants list --nothing'],
    [2, 'both cursors', 'mailclaim grants list --after a --before b'],
    [3, 'no base URL', 'unset MAILCLAIM_BASE_URL; mailclaim grants list'],
    [3, 'an unusable base URL', 'MAILCLAIM_BASE_URL=http://api.example.com mailclaim grants list'],
    [4, 'not signed in', 'unset MAILCLAIM_API_KEY; mailclaim grants list'],
    [4, 'a refused credential', 'MAILCLAIM_API_KEY=wrong mailclaim grants list'],
    [5, 'not found', 'mailclaim imports get 00000000-0000-4000-8000-000000000000'],
    [6, 'the service refuses', 'mailclaim claims create unclaimable.example'],
    [7, 'nobody answers', 'MAILCLAIM_BASE_URL=http://127.0.0.1:1 mailclaim grants list'],
    [8, 'not yet', 'mailclaim claims create "$domain" && mailclaim claims check "$domain"'],
    [
      8,
      'still in flight',
      'mailclaim claims create "$domain" && mailclaim claims watch "$domain" --timeout 1',
    ],
    [
      9,
      'a negative end',
      `mailclaim claims create "$domain" && ${publish} && mailclaim claims verify "$domain" --wait`,
    ],
  ])('%i: %s', (code, what, script) => {
    const domain = newDomain(what === 'a negative end' ? 'blocked' : 'd')
    const ended = inShell(script, 'bash', { domain })
    expect(ended).toMatchObject({ code })
    if (code === 0) expect(ended.stderr).not.toContain('error:')
    else expect(ended.stderr).toMatch(/^error: .+$/m)
    expect(ended.stderr).not.toMatch(/^ {4}at /m)
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends a watch with %i', async (signal, code) => {
    const domain = newDomain()
    expect((await world.run(['claims', 'create', domain])).code).toBe(0)
    const watch = world.start(['claims', 'watch', domain, '--format', 'jsonl'])
    await watch.seen(/"event":"status"/)
    watch.child.kill(signal)
    expect((await watch.ended).code).toBe(code)
  })
})

describe.runIf(needs('bash', 'curl'))('the script of docs/ci.md', () => {
  const page = readFileSync(new URL('../../docs/ci.md', import.meta.url), 'utf8')
  const script = /```sh\n(set -euo pipefail\n[^`]+)```/.exec(page)?.[1] ?? ''
  // What talks to the DNS provider.
  const provider = `add_txt_record() { curl -sS -f -o /dev/null -X PUT "$MAILCLAIM_BASE_URL/_sandbox/dns/$1/TXT" --data "{\\"value\\":\\"$2\\"}"; }`
  const written = (shell: string) =>
    `${provider}\n${script}`
      // POSIX shells have had pipefail only since 2024; dash of Debian has it not.
      .replace('set -euo pipefail', shell === 'dash' ? 'set -eu' : 'set -euo pipefail')
      .replace('domain=example.com', 'domain=$1')

  test.each(['bash', ...(needs('dash') ? ['dash'] : [])])('runs as written under %s', (shell) => {
    writeFileSync(join(world.home, 'claim.sh'), written(shell))
    const ended = inShell(`${shell} claim.sh ${newDomain()}`)
    expect(ended).toMatchObject({ code: 0, stdout: 'completed\n' })
  })

  test('runs twenty times at once', async () => {
    writeFileSync(join(world.home, 'claim.sh'), written('bash'))
    const runs = Array.from({ length: 20 }, () => {
      const domain = newDomain()
      // A folder each for the files that the script writes; the state is shared.
      const child = spawn('bash', ['-c', `mkdir ${domain} && cd ${domain} && bash ../claim.sh ${domain}`], {
        cwd: world.home,
        env: world.env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text) => (output += text))
      return new Promise<{ code: number | null; last: string | undefined; output: string }>((resolve) =>
        child.once('close', (code) => resolve({ code, last: output.trim().split('\n').at(-1), output })),
      )
    })
    const ended = await Promise.all(runs)
    expect(ended.filter(({ code }) => code !== 0).map(({ output }) => output)).toEqual([])
    expect(ended.filter(({ output }) => !/^completed$/m.test(output))).toEqual([])
    const { stdout } = await world.run(['claims', 'list', '--format', 'tsv'])
    expect(stdout.trim().split('\n')).toHaveLength(21)
  }, 120_000)
})

describe.runIf(needs('bash'))('an environment that is not what one is used to', () => {
  test('a reader that goes away ends the program quietly', () => {
    for (const command of [
      'imports list --all --format jsonl',
      'imports list --all',
      'grants list',
      '--help',
      'completion bash',
    ]) {
      const ended = inShell(`set -o pipefail; mailclaim ${command} | head -n 1`)
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      expect(ended.stdout.trim().split('\n')).toHaveLength(1)
    }
  })

  test('closed streams', () => {
    expect(inShell('mailclaim grants list <&- | wc -l').stdout.trim()).toMatch(/^\d+$/)
    expect(inShell('mailclaim grants list <&-').code).toBe(0)
    expect(inShell('mailclaim grants list 2>&-').code).toBe(0)
    expect(inShell('mailclaim grants list >&-')).toMatchObject({ code: 0, stderr: '' })
  })

  test.each([{ CI: 'true' }, { TERM: 'dumb' }, { NO_COLOR: '1' }, { TERM: '' }, { LANG: 'C', LC_ALL: 'C' }])(
    'data is the same with %o',
    (env) => {
      const plain = inShell('mailclaim grants list')
      expect(inShell('mailclaim grants list', 'bash', env as Record<string, string>)).toEqual(plain)
      expect(plain.stdout).not.toContain('\u001b')
    },
  )

  test('FORCE_COLOR colours what people read, and never what programs read', () => {
    const env = { FORCE_COLOR: '1' }
    expect(inShell('mailclaim grants list --format table', 'bash', env).stdout).toContain('\u001b[')
    expect(inShell('mailclaim grants list', 'bash', env).stdout).not.toContain('\u001b[')
    expect(inShell('mailclaim grants list --json', 'bash', env).stdout).not.toContain('\u001b[')
  })

  test('no home folder: help works, and what needs a folder says which variable to set', () => {
    const bare = createWorld()
    const { env } = bare
    const nowhere = { PATH: env['PATH'] ?? '', HOME: '', XDG_CONFIG_HOME: '', XDG_STATE_HOME: '' }
    const ask = (words: readonly string[]) =>
      spawnSync(process.execPath, [join(import.meta.dirname, '../../bin/mailclaim.js'), ...words], {
        env: nowhere,
        cwd: bare.home,
        encoding: 'utf8',
        input: '',
      })
    expect(ask(['--help']).status).toBe(0)
    expect(ask(['--version']).status).toBe(0)
    const listed = ask(['config', 'list'])
    expect(listed.status).toBe(1)
    expect(listed.stderr).toMatch(/set HOME, or MAILCLAIM_CONFIG_DIR/)
    expect(existsSync(join(bare.home, '.config'))).toBe(false)
    expect(existsSync(join(bare.home, 'mailclaim'))).toBe(false)
  })
})

test('doctor finds a set-up in order, and says what is not', async () => {
  await world.run(['config', 'set', 'store', 'file'])
  const well = await world.run(['doctor', '--json'])
  const statuses = (JSON.parse(well.stdout).data as { check: string; status: string }[]).map(
    ({ check, status }) => [check, status],
  )
  expect(Object.fromEntries(statuses)).toMatchObject({
    configuration: 'ok',
    folders: 'ok',
    'credential store': 'ok',
    session: 'ok',
    network: 'ok',
    clock: 'ok',
    'DNS resolvers': 'ok',
    'direct DNS': 'skipped',
  })
  expect(well.code).toBe(0)
  expect(well.stdout + well.stderr).not.toContain(world.service.api_key)
  const ill = await world.run(['doctor'], {
    env: { MAILCLAIM_API_KEY: undefined, MAILCLAIM_BASE_URL: 'http://127.0.0.1:1' },
  })
  expect(ill.code).toBe(4)
  expect(ill.stderr).toContain('error: 2 problems found: session, network')
})

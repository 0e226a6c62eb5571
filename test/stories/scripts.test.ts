import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import { posixQuote } from '../../src/shell-quote.ts'
import { needs } from '../requirements.ts'
import { install, type ServedWorld, shareSandbox } from './built-program.ts'

const serve = shareSandbox()

function scripted(): ServedWorld {
  const world = serve()
  install(world)
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  return world
}

function script(world: ServedWorld, text: string, shell = 'sh', env: Record<string, string> = {}) {
  return world.script(text, { shell, env })
}

describe.runIf(needs('posix'))('exit codes, as a script sees them', () => {
  const outcome = (domain: string, status: string) =>
    `curl -sf -X POST "$MAILCLAIM_BASE_URL/_sandbox/claims/${domain}/outcome" -d '{"status":"${status}"}' >&2`
  test.each([
    [0, 'done', 'mailclaim imports list --limit 1'],
    [1, 'a local failure', 'MAILCLAIM_CONFIG_DIR=/dev/null/no mailclaim config set store file'],
    [2, 'usage', 'mailclaim imports list --limit 0'],
    [3, 'not configured', 'MAILCLAIM_BASE_URL= mailclaim imports list'],
    [4, 'not signed in', 'MAILCLAIM_API_KEY= mailclaim imports list'],
    [5, 'not found', 'mailclaim claims get nothing.example'],
    [6, 'refused', 'mailclaim claims create own.example'],
    [7, 'no network', 'MAILCLAIM_BASE_URL=http://127.0.0.1:9 mailclaim claims create far.example'],
    [8, 'not yet', 'mailclaim claims create early.example; mailclaim claims check early.example'],
    [
      9,
      'a claim that failed',
      `mailclaim claims create bad.example; ${outcome('bad.example', 'failed')}; mailclaim claims watch bad.example`,
    ],
    [
      130,
      'Ctrl-C',
      'mailclaim claims create int.example; timeout --preserve-status -s INT 1 mailclaim claims watch int.example',
    ],
    [
      143,
      'SIGTERM',
      'mailclaim claims create term.example; timeout --preserve-status -s TERM 1 mailclaim claims watch term.example',
    ],
  ])('a script sees exit code %i for: %s', async (code, _what, line) => {
    // Capture the exit code with `|| code=$?`, because `set -e` would end the script.
    const text = `set -eu\n(\n${line}\n) && code=0 || code=$?\necho "code $code"`
    const ended = await script(scripted(), text)
    expect(ended.stdout.trimEnd().split('\n').at(-1), ended.stderr).toBe(`code ${code}`)
    if (code > 0) expect(ended.stderr).toMatch(/error: /)
  })
})

describe.runIf(needs('posix'))('the ends of a pipe', () => {
  test.each(['', '--all --format jsonl', '--json --all', '--format table'])(
    'imports list %s exits 0 without an error message after head -1 has closed the pipe',
    async (options) => {
      const ended = await script(
        scripted(),
        `set -o pipefail; mailclaim imports list ${options} | head -1 >/dev/null; echo "\${PIPESTATUS[0]}"`,
        'bash',
      )
      expect(ended.stdout).toBe('0\n')
      // Allow the hint at further items, and the notice of what the program waits for, which appears on a busy machine.
      expect(ended.stderr.replace(/^(hint: there are more:|Waiting for) .*\n/gm, '')).toBe('')
    },
  )

  test.each(['2> >(true)', '2>/dev/full'])(
    'mailclaim claims watch exits 8 at the timeout even if stderr fails: %s',
    async (log) => {
      const world = scripted()
      await world.run(['claims', 'create', 'unread.example'])
      const line = `mailclaim claims watch unread.example --timeout 1 ${log}; echo "code $?"`
      expect((await script(world, line, 'bash')).stdout).toMatch(/\ncode 8\n$/)
    },
  )

  test.each([
    ['stdin closed and no domain given', 'mailclaim claims get <&-', 2],
    ['stderr closed and a usage error', 'mailclaim imports list --limit 0 2>&-', 2],
    ['stderr on a full disk', 'mailclaim imports list --limit 1 2>/dev/full', 0],
    ['stdout on a full disk', 'mailclaim imports list --limit 1 >/dev/full', 1],
  ] as const)('with %s, the command line `%s` exits with code %i', async (_what, line, code) => {
    const ended = await script(scripted(), `${line}\necho "code $?" >>log; cat log`)
    expect(ended.stdout, ended.stderr).toMatch(new RegExp(`code ${code}\\n$`))
  })

  const inBackground = (streams: string) => (lines: readonly string[]) =>
    [...lines.map((line) => `{ ${line}; } ${streams} &`), 'wait'].join('\n')
  test.each([
    [
      'a stdin that is write-only, as nohup makes it, and a full stdout',
      inBackground('0>/dev/null >/dev/full 2>>log'),
    ],
    ['a stdin that is closed, and a closed stdout', inBackground('<&- >&- 2>>log')],
    [
      'a stdin whose terminal has hung up, and a full stderr',
      (lines: readonly string[]) => {
        const all = inBackground('<&0 >/dev/null 2>/dev/full')(lines)
        // The first `read` returns when the terminal has hung up; then run the commands.
        return `mkfifo done; timeout -k 1 50 script -qc ${posixQuote(`trap "" HUP; { read -r _; ${all}; echo >done; } <&0 &`)} /dev/null >log; read -r _ <done`
      },
    ],
  ])('every command with %s exits with a code below 10, and reports no bug', async (_what, inStreams) => {
    const world = scripted()
    const own: Record<string, readonly string[]> = {
      login: ['--no-browser --timeout 1 --store file', '--with-api-key --store file'],
      'claims create': ['--from -'],
      sandbox: ['--exit-with-stdin'],
    }
    const lines = await Promise.all(
      [...walkCommands(commandTree)].map(async ({ path, leaf }) => {
        const { arguments: taken = [], options = [] } = await leaf.load()
        const line = ['mailclaim', ...path, ...taken.map(() => 'one.example')].join(' ')
        const time = options.some(({ flags }) => flags.startsWith('--timeout')) ? '--timeout 1' : ''
        return (own[path.join(' ')] ?? [time]).map(
          (more) => `timeout 20 ${line} ${more}; echo "$? ${line}" >>ends`,
        )
      }),
    )
    await script(world, inStreams(lines.flat()), 'bash')
    const read = (name: string) => readFileSync(join(world.home, name), 'utf8')
    const ends = read('ends').trimEnd().split('\n')
    expect(ends.filter((end) => !/^\d /.test(end))).toEqual([])
    expect(ends).toHaveLength(lines.flat().length)
    expect(read('log')).not.toMatch(/bug|node:|^ +at /m)
  })
})

describe.runIf(needs('posix'))('environments', () => {
  test('FORCE_COLOR colors a table in a pipe, but never JSON or TSV', async () => {
    const world = scripted()
    const list = (format: string) =>
      script(world, `mailclaim imports list --format ${format}`, 'sh', { FORCE_COLOR: '1' })
    expect((await list('table')).stdout).toContain('\u001b[')
    for (const format of ['json', 'jsonl', 'tsv'])
      expect((await list(format)).stdout, format).not.toContain('\u001b')
  })

  test('with a read-only HOME, `imports list` and `auth token` succeed, and `config set` fails with the path in the error', async () => {
    const world = scripted()
    // /sys is read-only even for root.
    const at = (line: string) =>
      script(world, `unset MAILCLAIM_CONFIG_DIR MAILCLAIM_STATE_DIR\n${line}`, 'sh', { HOME: '/sys' })
    expect((await at('mailclaim imports list --limit 1')).code).toBe(0)
    expect((await at('mailclaim auth token')).stdout.trim()).toBe(world.service.api_key)
    const ended = await at('mailclaim config set base-url https://mail.example')
    expect(ended.code).toBeGreaterThan(0)
    expect(ended.stderr).toMatch(/^error: [^\n]*\/sys\/[^\n]*\n(hint: [^\n]+\n)?$/)
  })
})

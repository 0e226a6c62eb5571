import { describe, expect, test } from 'vitest'
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
  // `|| code=$?` keeps the code under `set -e`.
  const cases: readonly (readonly [number, string, string])[] = [
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
      `mailclaim claims create failed.example
       curl -sf -X POST "$MAILCLAIM_BASE_URL/_sandbox/claims/failed.example/outcome" -d '{"status":"failed"}' >&2
       mailclaim claims watch failed.example`,
    ],
    [
      130,
      'Ctrl-C',
      'mailclaim claims create int.example; timeout -s INT 1 mailclaim claims watch int.example',
    ],
    [
      143,
      'SIGTERM',
      'mailclaim claims create term.example; timeout -s TERM 1 mailclaim claims watch term.example',
    ],
  ]

  test.each(cases)('a script sees exit code %i for: %s', async (code, _what, line) => {
    const world = scripted()
    // `timeout` has a code of its own unless it is told to pass on the command's.
    const text = line.replace('timeout -s', 'timeout --preserve-status -s')
    for (const shell of ['sh', 'bash']) {
      const opening = shell === 'bash' ? 'set -euo pipefail' : 'set -eu'
      const ended = await script(
        world,
        `${opening}\n(\n${text}\n) && code=0 || code=$?\necho "code $code"`,
        shell,
      )
      expect(ended.stdout.trimEnd().split('\n').at(-1), ended.stderr).toBe(`code ${code}`)
      if (code > 0) expect(ended.stderr).toMatch(/error: /)
    }
  })

  test('a script with set -euo pipefail stops at the first failure, even inside a pipe', async () => {
    const world = scripted()
    const ended = await script(
      world,
      `set -euo pipefail
       ids=$(mailclaim imports list --limit 3 --format tsv --fields id | tail -n +2)
       echo "$ids" | wc -l
       mailclaim imports get no-such-import --json | cat
       echo 'not reached'`,
      'bash',
    )
    expect(ended).toMatchObject({ code: 5, stdout: expect.stringMatching(/^\s*3\n$/) })
  })

  test('twenty concurrent scripts, each with its own claim, lose nothing', async () => {
    const world = scripted()
    const ended = await script(
      world,
      `set -euo pipefail
       pids=()
       for n in $(seq 20); do
         (mailclaim claims create "p$n.example" --json | grep -q pending) & pids+=($!)
       done
       for pid in "\${pids[@]}"; do wait "$pid"; done
       mailclaim claims list --fields name | tail -n +2 | sort -u | wc -l`,
      'bash',
    )
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stdout.trim()).toBe('20')
  })
})

describe.runIf(needs('posix'))('the ends of a pipe', () => {
  test.each(['', '--all', '--all --format jsonl', '--json --all', '--format table', '--format csv'])(
    'imports list %s | head -1 ends silently',
    async (options) => {
      const world = scripted()
      const ended = await script(
        world,
        `set -o pipefail; mailclaim imports list ${options} | head -1 >/dev/null; echo "\${PIPESTATUS[0]}"`,
        'bash',
      )
      expect(ended.stdout).toBe('0\n')
      expect(ended.stderr.replace(/^hint: there are more: .*\n$/, '')).toBe('')
    },
  )

  test('a watch ends silently when its reader exits', async () => {
    const world = scripted()
    await world.run(['claims', 'create', 'gone.example'])
    await world.control('POST', 'claims/gone.example/publish', {})
    const ended = await script(
      world,
      `mailclaim claim gone.example --format jsonl | head -1; echo "\${PIPESTATUS[0]}"`,
      'bash',
    )
    expect(ended.stdout.trimEnd().split('\n').at(-1)).toBe('0')
    expect(ended.stderr).not.toMatch(/EPIPE|bug/)
  })

  test.each(['2> >(true)', '2>/dev/full'])(
    'a watch that loses its log (%s) before its end does not succeed',
    async (log) => {
      const world = scripted()
      await world.run(['claims', 'create', 'unread.example'])
      const ended = await script(
        world,
        `mailclaim claims watch unread.example --interval 0.2 --timeout 1 ${log}; echo "code $?"`,
        'bash',
      )
      expect(ended.stdout).toMatch(/^name\t.*\nunread\.example\tpending\t.*\ncode 8\n$/)
    },
  )

  test.each([
    ['stdin closed', 'mailclaim imports list --limit 1 <&-', 0],
    ['stdin closed where a key is to be read', 'mailclaim login --with-api-key --store file <&-', 'not 0'],
    ['stdin closed where a claim is left out', 'mailclaim claims get <&-', 2],
    ['stdin empty', 'mailclaim imports list --limit 1 </dev/null', 0],
    ['stderr closed', 'mailclaim imports list --limit 1 2>&-', 0],
    ['stderr closed and an error', 'mailclaim imports list --limit 0 2>&-', 2],
    ['stderr full, and a hint to give', 'mailclaim imports list --limit 1 2>/dev/full', 0],
    ['stderr full and an error', 'mailclaim imports list --limit 0 2>/dev/full', 2],
    ['stdout closed', 'mailclaim imports list --limit 1 >&-', 'any'],
    ['stdout full', 'mailclaim imports list --limit 1 >/dev/full', 'not 0'],
    ['everything closed', 'mailclaim imports list --limit 1 <&- >&- 2>&-', 'any'],
  ] as const)('a command works as documented with %s', async (_what, line, code) => {
    const world = scripted()
    const ended = await script(world, `${line}\necho "code $?" >>log; cat log`)
    const seen = Number(/code (\d+)/.exec(ended.stdout)?.[1])
    if (code === 'not 0') expect(seen).toBeGreaterThan(0)
    // Some shells cannot even tell a program that its output is closed; it must not hang or die of a signal.
    else if (code === 'any') expect(seen).toBeLessThan(10)
    else expect(seen, ended.stderr).toBe(code)
    expect(ended.stderr).not.toMatch(/bug|node:|\n +at /)
  })
})

describe.runIf(needs('posix'))('environments', () => {
  test.each<[string, Record<string, string>]>([
    ['TERM=dumb', { TERM: 'dumb' }],
    ['CI=true', { CI: 'true' }],
    ['NO_COLOR', { NO_COLOR: '1' }],
    ['an unknown locale', { LANG: 'xx_YY', LC_ALL: 'xx_YY' }],
  ])('a claim completes with %s, and the pipe has no escape sequence', async (_what, env) => {
    const world = scripted()
    const domain = `env${Object.keys(env)[0]?.toLowerCase().replace('_', '')}.example`
    await world.run(['claims', 'create', domain])
    await world.control('POST', `claims/${domain}/publish`, {})
    const ended = await script(world, `mailclaim claim ${domain}`, 'sh', env)
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stdout + ended.stderr).not.toContain('\u001b')
    expect(ended.stderr).toMatch(/Completed: the domain is yours/)
  })

  test('FORCE_COLOR colors a table in a pipe, and NO_COLOR does not change the data', async () => {
    const world = scripted()
    const forced = await script(world, 'mailclaim imports list --format table', 'sh', { FORCE_COLOR: '1' })
    expect(forced.stdout).toContain('\u001b[')
    for (const format of ['json', 'jsonl', 'tsv', 'csv']) {
      const ended = await script(world, `mailclaim imports list --format ${format}`, 'sh', {
        FORCE_COLOR: '1',
      })
      expect(ended.stdout, format).not.toContain('\u001b')
    }
  })

  test('a command works without HOME and any directory setting', async () => {
    const world = scripted()
    const ended = await script(
      world,
      `unset HOME MAILCLAIM_CONFIG_DIR MAILCLAIM_STATE_DIR XDG_CONFIG_HOME XDG_STATE_HOME
       mailclaim imports list --limit 1 --fields status && mailclaim --version`,
    )
    expect(ended.code, ended.stderr).toBe(0)
  })

  test('a read-only HOME fails only commands that write there, and the error names the path', async () => {
    const world = scripted()
    // Read-only for everybody, the superuser included.
    const at = (line: string) =>
      script(world, `unset MAILCLAIM_CONFIG_DIR MAILCLAIM_STATE_DIR\n${line}`, 'sh', { HOME: '/sys' })
    expect((await at('mailclaim imports list --limit 1')).code).toBe(0)
    expect((await at('mailclaim auth token')).stdout.trim()).toBe(world.service.api_key)
    for (const line of [
      'mailclaim login --store file --no-browser',
      'mailclaim config set base-url https://mail.example',
    ]) {
      const ended = await at(line)
      expect(ended.code, line).toBeGreaterThan(0)
      expect(ended.stderr, line).toMatch(/^error: [^\n]*\/sys\/[^\n]*\n(hint: [^\n]+\n)?$/)
      expect(ended.stderr, line).not.toMatch(/this is a bug|Open this address/)
    }
  })
})

describe('a pipeline that replaces the TXT set of a domain', () => {
  test('keeps SPF, values of several strings, bytes that are not ASCII, and the TTL', async () => {
    const world = scripted()
    const dns = `"$MAILCLAIM_BASE_URL/_sandbox/dns/kept.example/TXT"`
    const ended = await script(
      world,
      `set -eu
       mailclaim claims create kept.example > claim.tsv
       curl -sSf -X PUT ${dns} --data '{"records":[["v=spf1 -all"],["one é","two"]],"ttl":77}' > put.json
       mailclaim claims record kept.example --provider route53`,
    )
    expect(ended.code, ended.stderr).toBe(0)
    const [change] = JSON.parse(ended.stdout).Changes
    expect(change).toEqual({
      Action: 'UPSERT',
      ResourceRecordSet: {
        Name: 'kept.example.',
        Type: 'TXT',
        TTL: 77,
        ResourceRecords: [
          { Value: '"v=spf1 -all"' },
          { Value: '"one \\303\\251" "two"' },
          { Value: expect.stringMatching(/^"[\x21-\x7e]+"$/) },
        ],
      },
    })
  })

  test('ends with exit 8 and prints no change if the name servers do not answer properly', async () => {
    const world = scripted()
    const ended = await script(
      world,
      `set -eu
       mailclaim claims create unseen.example > claim.tsv
       curl -sSf -X PUT "$MAILCLAIM_BASE_URL/_sandbox/dns/unseen.example/TXT" --data '"v=spf1 -all"' > put.json
       curl -sSf -X POST "$MAILCLAIM_BASE_URL/_sandbox/claims/unseen.example/publish" --data '{"mistake":"refused"}' > put.json
       mailclaim claims record unseen.example --provider route53`,
    )
    expect(ended).toMatchObject({ code: 8, stdout: '' })
    expect(ended.stderr).toContain('no name server of unseen.example gave an authoritative answer')
  })
})

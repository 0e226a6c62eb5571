import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { MISTAKES } from '../../src/sandbox/mistakes.ts'
import { needs } from '../requirements.ts'
import {
  createServedWorld,
  install,
  interruptGroup,
  program,
  type ServedWorld,
  shareSandbox,
} from './built-program.ts'
import { checkWithFaults } from './many-faults.ts'
import { openTerminal } from './terminal.ts'

const newWorld = shareSandbox()

/** A world with a key, and domains that no other test has. */
let worlds = 0
function keyed(): ServedWorld & {
  list(name: string, lines: readonly string[]): string
  domains(count: number): string[]
} {
  const world = newWorld()
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  worlds += 1
  const prefix = `w${worlds}`
  return {
    ...world,
    list(name, lines) {
      const path = join(world.home, name)
      writeFileSync(path, `${lines.join('\n')}\n`)
      return path
    },
    domains: (count) => Array.from({ length: count }, (_, n) => `d${n}.${prefix}-${n % 5}.com`),
  }
}

const linesOf = (text: string) => text.trimEnd().split('\n')
const jsonLines = (text: string) => linesOf(text).map((line) => JSON.parse(line) as Record<string, unknown>)

/** All that a report of one domain says to do. */
function fixesOf(report: Record<string, unknown>): string[] {
  const findings = report['findings'] as { severity: string; fix: string }[]
  return findings.flatMap(({ severity, fix }) => (severity === 'info' ? [] : [fix]))
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
const plain = (html: string) =>
  html.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_all, name) => ENTITIES[name] ?? '')

describe('several domains', () => {
  test('a list is claimed, published, checked, verified and watched, and a second run does nothing again', async () => {
    const world = keyed()
    const domains = world.domains(12)
    const list = world.list('domains.txt', domains)
    const created = await world.run(['claims', 'create', '--from', list, '--format', 'jsonl'])
    expect(created.code, created.stderr).toBe(0)
    expect(
      jsonLines(created.stdout)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(domains.toSorted())

    const { stderr } = await world.run(['claims', 'create', '--from', list, '--format', 'tsv'])
    expect(stderr).toContain('12 domains: open before 12')

    const early = await world.run(['claims', 'verify', '--all', '--format', 'jsonl'])
    expect(early.code).toBe(8)
    expect(jsonLines(early.stdout).map(({ event }) => event)).toEqual(domains.map(() => 'stopped'))

    await world.publish(domains)
    const checked = await world.run(['claims', 'check', ...domains, '--json'])
    expect(checked.code, checked.stderr).toBe(0)
    const document = JSON.parse(checked.stdout) as {
      object: string
      has_more: boolean
      data: { verdict: string }[]
    }
    expect(document).toMatchObject({ object: 'list', has_more: false })
    expect(document.data.map(({ verdict }) => verdict)).toEqual(domains.map(() => 'ready'))

    const verified = await world.run(['claims', 'verify', '--all', '--wait', '--format', 'jsonl'])
    expect(verified.code, verified.stderr).toBe(0)
    const ends = jsonLines(verified.stdout) as { event: string; claim: { status: string } }[]
    expect(new Set(ends.map(({ event, claim }) => `${event} ${claim.status}`))).toEqual(
      new Set(['done completed']),
    )
    expect(ends).toHaveLength(12)
    expect((await world.run(['claims', 'watch', '--from', list, '--format', 'tsv'])).stderr).toContain(
      '12 domains: completed 12',
    )
    expect((await world.run(['claims', 'check', '--all', '--format', 'tsv'])).stderr).toContain('0 domains')
  })

  test('claim takes several: it says which records to add, and finishes when they are there', async () => {
    const world = keyed()
    const domains = world.domains(3)
    const running = world.start(['claim', ...domains, '--fields', 'status'])
    for (const domain of domains)
      await running.seen(new RegExp(`add to DNS: ${domain} TXT sandbox-domain-verification=`))
    await world.publish(domains)
    const { code, stdout, stderr } = await running.ended
    expect(code, stderr).toBe(0)
    expect(linesOf(stdout)).toEqual(['status', 'completed', 'completed', 'completed'])
  })

  test.runIf(needs('tmux'))('claim prints a record in one piece on a narrow terminal, too', async () => {
    const world = keyed()
    const terminal = openTerminal(world, `mailclaim claim ${world.domains(2).join(' ')} --timeout 2`, {
      columns: 40,
      rows: 40,
    })
    expect(await terminal.exit()).toBe(8)
    for (const domain of world.domains(2))
      expect(terminal.lines().join('\n')).toMatch(
        new RegExp(`add to DNS: ${domain} TXT sandbox-domain-verification=\\S{32}$`, 'm'),
      )
  })

  test('claim says which record to add only if it is not in DNS already', async () => {
    const world = keyed()
    const [there = '', missing = ''] = world.domains(2)
    await world.run(['claims', 'create', there, missing, '--quiet'])
    await world.control('POST', `claims/${there}/publish`, {})
    const { code, stderr } = await world.run(['claim', there, missing, '--timeout', '4', '--format', 'tsv'])
    expect(code).toBe(8)
    expect(stderr.match(/add to DNS: \S+/g)).toEqual([`add to DNS: ${missing}`])
  })

  test('a bad value in a list is told by the name of its column', async () => {
    const world = keyed()
    const [domain = ''] = world.domains(1)
    const header = 'domain,open_tracking,custom_return_path,region'
    const list = world.list('odd.csv', [header, `${domain},maybe,,`, `${domain},,a b,`, `${domain},,,mars`])
    const { stderr } = await world.run(['claims', 'create', '--from', list])
    expect(stderr).toContain(':2: open_tracking: "maybe" is neither true nor false')
    expect(stderr).toContain(':3: custom_return_path: "a b" is not a DNS label')
    expect(stderr).toContain(':4: region: "mars" is not one of')
  })

  test('a bad line stops nothing, and the most severe end decides the exit code', async () => {
    const world = keyed()
    const [good = '', missing = ''] = world.domains(2)
    const lines = ['# ours', good, 'https://x.com/', '', `unclaimable.${missing}`, missing, 'a..b', '"open']
    const list = world.list('mixed.csv', lines)
    const created = await world.run(['claims', 'create', '--from', list, '--format', 'tsv'])
    expect(created.code).toBe(6)
    for (const line of [3, 7, 8]) expect(created.stderr).toMatch(new RegExp(`^${list}:${line}: `, 'm'))
    expect(linesOf(created.stdout)).toHaveLength(4)
    expect(created.stderr).toContain('3 domains: ')
    expect(created.stderr).toContain(
      "error: 1 of 3 domains doesn't have a claim; 3 lines of the list can't be used",
    )

    await world.control('POST', `claims/${good}/publish`, {})
    const onlyBad = world.list('bad.csv', [good, 'not a domain'])
    expect((await world.run(['claims', 'check', '--from', onlyBad])).code).toBe(2)
    // A mistake on the command line stops everything.
    const typed = await world.run(['claims', 'check', good, 'not a domain'])
    expect(typed).toMatchObject({ code: 2, stdout: '' })
    expect(typed.stderr).toContain('error: "not a domain" has a space in it\n')
    const asJson = await world.run(['claims', 'check', '--from', onlyBad, '--json'])
    const [warning = '', error = '', ...rest] = asJson.stderr.split('\n')
    expect({ warning, rest }).toEqual({
      warning: expect.stringMatching(/^warning: .*bad\.csv:2: /),
      rest: [''],
    })
    expect(JSON.parse(error)).toMatchObject({
      error: { message: "1 line of the list can't be used" },
      unusable: [{ where: `${onlyBad}:2`, why: expect.stringContaining('has a space in it') }],
    })
    const quiet = await world.run(['claims', 'check', '--from', onlyBad, '--quiet', '--format', 'jsonl'])
    expect(JSON.parse(quiet.stderr)).toMatchObject({
      error: { exit: 2, hint: expect.stringContaining(`${onlyBad}:2: `) },
    })
  })

  test('without a credential, the run ends at once', async () => {
    const world = keyed()
    delete world.env['MAILCLAIM_API_KEY']
    const { code, stderr } = await world.run(['claims', 'create', ...world.domains(30)])
    expect(code).toBe(4)
    expect(stderr).toMatch(
      /^error: profile default is not signed in \(0 done, 30 not finished\)\nhint: .*\nthen run the same command/,
    )
  })

  test('an empty list is a usage error, and --all without open claims is nothing to do', async () => {
    const world = keyed()
    const list = world.list('empty.txt', ['# nothing yet'])
    for (const command of ['check', 'create', 'record']) {
      const { code, stderr } = await world.run(['claims', command, '--from', list])
      expect([code, stderr]).toEqual([2, expect.stringContaining('error: --from: the list has no domain')])
    }
    const all = await world.run(['claims', 'check', '--all', '--format', 'tsv'])
    expect([all.code, all.stderr]).toEqual([
      0,
      expect.stringContaining(
        `no open claim at ${world.env['MAILCLAIM_BASE_URL']} is known in profile default\n`,
      ),
    ])
  })

  test('--all fails if the known claims are at another service, and says where they are', async () => {
    const world = keyed()
    const known = world.env['MAILCLAIM_BASE_URL']
    await world.run(['claims', 'create', ...world.domains(3), '--quiet'])
    for (const command of ['check', 'record', 'watch', 'verify']) {
      const words = ['claims', command, '--all', '--base-url', 'http://127.0.0.1:9', '--format', 'jsonl']
      const { code, stdout, stderr } = await world.run(words)
      expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
      expect(JSON.parse(stderr).error).toMatchObject({
        code: 'claim_unknown',
        message: `no open claim at http://127.0.0.1:9 is known in profile default; 3 are at ${known}`,
        hint: `for the 3 open claims at ${known}: mailclaim claims ${command} --all --format jsonl --base-url ${known}`,
      })
    }
    const forPeople = await world.run(['claims', 'verify', '--all', '--base-url', 'http://127.0.0.1:9'])
    expect(forPeople).toMatchObject({ code: 5, stderr: expect.stringContaining(`--base-url ${known}\n`) })
  })

  test('claims that ended are not promised to go on, and one that a newer claim replaced stays as it is', async () => {
    const world = keyed()
    const [domain = ''] = world.domains(1)
    const domains = [`expired.${domain}`, `superseded.${domain}`]
    await world.run(['claims', 'create', ...domains, '--quiet'])
    await world.publish(domains)
    const first = await world.run(['claim', ...domains, '--no-check', '--timeout', '15', '--format', 'jsonl'])
    expect(first.code, first.stderr).toBe(9)
    expect(first.stderr).not.toContain('for the rest')
    expect(first.stderr).toContain(
      '1 ended or is gone: running this again starts new claims with new records',
    )
    const again = await world.run(['claim', ...domains, '--no-check', '--timeout', '15', '--format', 'jsonl'])
    const idOf = (stdout: string, at: number) =>
      jsonLines(stdout)
        .map(({ claim }) => claim as { name: string; domain_id: string })
        .find(({ name }) => name === domains[at])?.domain_id
    expect(idOf(again.stdout, 0)).not.toBe(idOf(first.stdout, 0))
    expect(idOf(again.stdout, 1)).toBe(idOf(first.stdout, 1))
  })

  test('--fail-fast stops at the first failure', async () => {
    const world = keyed()
    const domains = world.domains(20)
    const words = [
      'claims',
      'create',
      `own.${domains[0]}`,
      ...domains,
      '--jobs',
      '1',
      '--fail-fast',
      '--format',
      'jsonl',
    ]
    const { code, stdout, stderr } = await world.run(words)
    expect(code).toBe(6)
    expect(JSON.parse(linesOf(stderr).at(-1) ?? '')).toMatchObject({
      error: {
        message: "1 of 21 domains doesn't have a claim; stopped early: 0 done, 1 failed, 20 not finished",
      },
    })
    expect(jsonLines(stdout)).toMatchObject([{ name: `own.${domains[0]}`, error: { exit: 6 } }])
  })

  test('--fail-fast says that the rest was left out after a line that cannot be used, too', async () => {
    const world = keyed()
    const list = world.list('list.txt', ['not a name', ...world.domains(3)])
    const { code, stdout, stderr } = await world.run(['claims', 'create', '--from', list, '--fail-fast'])
    expect({ code, stdout }).toMatchObject({ code: 2 })
    expect(stderr).toContain("1 line of the list can't be used; stopped early: 0 done, 3 not finished")
  })

  test('markdown is one report by cause', async () => {
    const world = keyed()
    const domains = world.domains(6)
    await world.run(['claims', 'create', ...domains, '--quiet'])
    await world.publish(domains.slice(0, 4))
    const { code, stdout } = await world.run(['claims', 'check', '--all', '--format', 'markdown'])
    expect(code).toBe(8)
    expect(stdout).toContain('## 6 domains: claims check\n\n- **Result:** to be fixed 2, ready 4\n')
    expect(stdout).toMatch(
      /^\| 2 \| record missing \| `ns\*\.sandbox-dns\.test` \| Add a TXT record in the zone ZONE: host HOST, value VALUE \|$/m,
    )
    for (const domain of domains.slice(4)) expect(stdout).toContain(`\`${domain}\``)
  })

  test('the fix of each group in a report is that of each of its domains, for every mistake and in any order', async () => {
    const world = keyed()
    const places = MISTAKES.flatMap(({ id }, n) =>
      [`m${n}-apex.com`, `mail.m${n}-sub.com`, `a.b.m${n}-deep.com`].map((domain) => ({
        domain,
        mistake: id,
      })),
    )
    const domains = places.map(({ domain }) => domain)
    await world.run(['claims', 'create', ...domains, '--quiet'])
    for (const { id: mistake } of MISTAKES)
      await world.publish(
        places.flatMap((place) => (place.mistake === mistake ? [place.domain] : [])),
        mistake,
      )
    const check = async (order: readonly string[], format: string) =>
      (await world.run(['claims', 'check', ...order, '--format', format, '--quiet'])).stdout
    const alone = jsonLines(await check(domains, 'jsonl')).flatMap((report) =>
      fixesOf(report).map((fix) => `${report['name']}: ${fix}`),
    )
    for (const order of [domains, domains.toReversed()]) {
      const page = await check(order, 'html')
      const groups = [
        ...page.matchAll(/<h2 id="cause-\d+">(.*?)<p class="todo">(.*?)<\/p>\n(.*?)<\/section>/gs),
      ]
      const seen = groups.flatMap(([, message = '', fix = '', members = '']) => {
        const textsIn = (markup: string, pattern: RegExp) =>
          [...markup.matchAll(pattern)].map(([, text = '']) => plain(text))
        const titles = textsIn(members, /<th scope="col">(.*?)<\/th>/g)
        const words =
          `${message} ${fix}`.match(/\b(?:ZONE|PARENT|HOST|VALUE|FOUND|TARGET|SERVER|TIME)\b/g) ?? []
        expect(titles, message).toEqual(expect.arrayContaining(words))
        return textsIn(members, /<(?:li|tr)>(<(?:code|th scope="row").*?)<\/(?:li|tr)>/g).map((row) => {
          const cells = textsIn(row, /<code>(.*?)<\/code>|–/g)
          const standsFor = Object.fromEntries(titles.map((title, index) => [title, cells[index]]))
          const own: Record<string, string | undefined> = { DOMAIN: cells[0], ...standsFor }
          return `${cells[0]}: ${plain(fix).replaceAll(/\b[A-Z]+\b/g, (word) => own[word] ?? word)}`
        })
      })
      expect(seen.toSorted()).toEqual(alone.toSorted())
    }
  }, 120_000)

  test('a mistake shows while claim still waits, and at its end', async () => {
    const world = keyed()
    const domains = world.domains(3)
    await world.run(['claims', 'create', ...domains, '--quiet'])
    await world.publish(domains, 'quotes')
    const running = world.start(['claim', ...domains, '--format', 'tsv'], { group: true })
    await Promise.all(domains.map((domain) => running.seen(new RegExp(`add to DNS: ${domain} `))))
    interruptGroup(running)
    const { code, stderr } = await running.ended
    expect(code).toBe(130)
    expect(stderr).toContain('0 domains; in progress 3: waiting for DNS 3\n')
    expect(stderr).toMatch(/^ {2}3 domains at \S+: quotation marks in the value \(so far\) \(/m)
    expect(stderr).toContain('interrupted after 0 domains, with 3 not done')
  })

  test.each([
    ['claim', ['--timeout', '2']],
    ['claims verify', ['--wait', '--timeout', '2']],
  ])(
    '%s says why the record could not be seen, although the service is asked all the same',
    async (name, more) => {
      const world = keyed()
      const domains = world.domains(2)
      await world.run(['claims', 'create', ...domains, '--quiet'])
      await world.publish(domains, 'silent')
      const args = [...name.split(' '), ...domains, ...more, '--interval', '1']
      const lines = await world.run([...args, '--format', 'jsonl'])
      const [{ error }] = jsonLines(lines.stdout) as unknown as [{ error: { exit: number; hint: string } }]
      expect(error.exit, lines.stderr).toBe(8)
      expect(error.hint).toMatch(/DNS: [^\n]*\n.*don't answer/s)
      const { stderr } = await world.run([...args, '--format', 'tsv'])
      expect(stderr).toMatch(/2 domains at .*: .*(?:\n.*)*fix: .*don't answer/)
    },
  )

  test('in a pipeline of bash with pipefail, each step sees the failure of another', async () => {
    const world = keyed()
    install(world)
    const domains = world.domains(5)
    const list = world.list('domains.txt', domains)
    const steps = `set -euo pipefail
cut -d, -f1 '${list}' | mailclaim claims create --from - --format tsv --fields name,record.value --quiet | tail -n +2 | sort > records.tsv
test "$(wc -l < records.tsv)" -eq 5
tr '\\t' ',' < records.tsv | mailclaim claims check --from - --format jsonl --quiet > reports.jsonl || echo "check: $?"
mailclaim claims check --from '${list}' --format tsv --quiet | head -1
mailclaim claims check --from '${list}' --format tsv --quiet | sort > sorted.tsv
echo unreached`
    const { code, stdout } = await world.script(`cd "$HOME"; ${steps}`)
    expect(stdout).toContain('check: 8\n')
    expect(stdout).not.toContain('unreached')
    expect(code).toBe(8)
  })

  test('Ctrl-C ends within a second, loses nothing, and says how to go on', async () => {
    const world = keyed()
    const domains = world.domains(200)
    const list = world.list('domains.txt', domains)
    await world.control('POST', 'faults', { kind: 'delay', before_ms: 500, path: '/domains/claim' })
    const running = world.start(['claims', 'create', '--from', list, '--format', 'jsonl'], { group: true })
    await running.seen(/"name":/)
    const at = performance.now()
    interruptGroup(running)
    const { code, stdout, stderr } = await running.ended
    await world.control('DELETE', 'faults')
    expect(performance.now() - at).toBeLessThan(1500)
    expect(code).toBe(130)
    expect(stderr).toContain('to continue, run the same command again: what is done is not done again')
    const done = jsonLines(stdout).length
    const rest = await world.run(['claims', 'create', '--from', list, '--fields', 'name'])
    expect(rest.code).toBe(0)
    const before = Number(/open before (\d+)/.exec(rest.stderr)?.[1])
    // A request that was on its way may have arrived.
    expect(before).toBeGreaterThanOrEqual(done)
    expect(before).toBeLessThanOrEqual(done + 16)
    expect(linesOf(rest.stdout)).toHaveLength(201)
  })

  test('Ctrl-C ends a run that waits for more lines, too', async () => {
    const world = keyed()
    const running = world.start(['claims', 'check', '--from', '-', '--format', 'jsonl'], {
      group: true,
      stdin: 'open',
    })
    running.type(`${world.domains(1)[0]}\n`)
    await running.seen(/"name":/)
    const at = performance.now()
    interruptGroup(running)
    expect((await running.ended).code).toBe(130)
    expect(performance.now() - at).toBeLessThan(1500)
  })

  test('few open files are enough', async () => {
    const world = keyed()
    install(world)
    const domains = world.domains(60)
    const list = world.list('domains.txt', domains)
    await world.run(['claims', 'create', '--from', list, '--quiet', '--format', 'tsv'])
    const { code, stdout } = await world.script(
      `ulimit -n 256; mailclaim claims check --from '${list}' --jobs 60 --format jsonl --quiet`,
    )
    expect(code).toBe(8)
    const codes = jsonLines(stdout).map(({ findings }) => (findings as { code: string }[])[0]?.code)
    expect(new Set(codes)).toEqual(new Set(['missing']))
    expect(codes).toHaveLength(60)
  })

  test('every planted fault is named, and the summary counts right', async () => {
    await checkWithFaults(await createServedWorld(['--auto-publish']), { domains: 60, zones: 4, each: 2 })
  })
})

test('killed again and again, a run creates each domain exactly once', async () => {
  const world = keyed()
  const domains = world.domains(60)
  const list = world.list('domains.txt', domains)
  const words = ['claims', 'create', '--from', list, '--format', 'jsonl', '--jobs', '8']
  type State = { claims: { name: string; domain_id: string }[] }
  const before = (await world.control('GET', 'state')) as State
  for (let kill = 0; kill < 10; kill += 1) {
    const running = world.start(words)
    const exit = await Promise.race([
      running.ended,
      new Promise((resolve) => setTimeout(() => resolve('late'), 80 + kill * 25 + Math.random() * 40)),
    ])
    if (exit !== 'late') break
    running.child.kill('SIGKILL')
    await running.ended
  }
  const { code, stdout, stderr } = await world.run(words)
  expect(code, stderr).toBe(0)
  expect(
    jsonLines(stdout)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(domains.toSorted())
  const after = (await world.control('GET', 'state')) as State
  expect(after.claims.length - before.claims.length).toBe(60)
  const created = after.claims.filter(({ name }) => domains.includes(name))
  expect(new Set(jsonLines(stdout).map(({ domain_id }) => domain_id))).toEqual(
    new Set(created.map(({ domain_id }) => domain_id)),
  )
})

describe('publishing', () => {
  /** A program of the user's that tells the sandbox, with a line of its own. */
  function publishers(world: ServedWorld): string {
    install(world)
    program(
      join(world.home, 'bin'),
      'publish',
      `echo "at $MAILCLAIM_RECORD_ZONE"
case "$MAILCLAIM_RECORD_NAME" in d2.*) exit 3;; esac
exec curl -sS -f -o /dev/null -X PUT "${world.service.base_url}/_sandbox/dns/$MAILCLAIM_RECORD_NAME/TXT" --data "\\"$MAILCLAIM_RECORD_VALUE\\""`,
    )
    return join(world.home, 'bin', 'publish')
  }

  test('a program publishes the record of each domain, and one that fails stops no other', async () => {
    const world = keyed()
    const command = publishers(world)
    const domains = world.domains(4)
    await world.run(['claims', 'create', ...domains, '--quiet'])
    const first = await world.run(['claims', 'publish', '--all', '--with', command, '--format', 'jsonl'])
    expect(first.code).toBe(7)
    expect(
      jsonLines(first.stdout)
        .map(({ name, ran, error }) => [name, ran, (error as { code: string } | undefined)?.code])
        .toSorted(),
    ).toEqual(domains.map((name, n) => (n === 2 ? [name, true, 'publish_failed'] : [name, true, undefined])))
    for (const [n, domain] of domains.entries())
      expect(first.stderr).toMatch(new RegExp(`^${domain}: publish: at w\\d+-${n}\\.com$`, 'm'))
    const again = await world.run(['claims', 'publish', '--all', '--with', command, '--format', 'tsv'])
    expect(again.stderr).toContain('nothing to do 3')
  })

  test('claim publishes for several, too', async () => {
    const world = keyed()
    const command = publishers(world)
    const domains = world.domains(2)
    const { code, stdout, stderr } = await world.run([
      'claim',
      ...domains,
      '--publish',
      command,
      '--format',
      'jsonl',
    ])
    expect(code, stderr).toBe(0)
    expect(jsonLines(stdout).map(({ event }) => event)).toEqual(['completed', 'completed'])
    expect(stderr).not.toContain('add to DNS')
  })
})

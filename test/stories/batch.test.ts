import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { install, interruptGroup, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const newWorld = shareSandbox()

/** Number of worlds so far, which makes each world's domains unique in the shared sandbox. */
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

test.runIf(needs('tmux'))('mailclaim claim prints TXT values without line breaks at 40 columns', async () => {
  const world = keyed()
  const terminal = openTerminal(world, `mailclaim claim ${world.domains(2).join(' ')} --timeout 2`, {
    columns: 40,
    rows: 40,
  })
  expect(await terminal.exit()).toBe(8)
  for (const domain of world.domains(2))
    expect(terminal.lines().join('\n')).toMatch(
      new RegExp(`add to DNS: ${domain} TXT\\s+sandbox-domain-verification=\\S{32}$`, 'm'),
    )
})

test('mailclaim claim for several domains prints the TXT record only of domains that lack it in DNS', async () => {
  const world = keyed()
  const [there = '', missing = ''] = world.domains(2)
  await world.run(['claims', 'create', there, missing, '--quiet'])
  await world.control('POST', `claims/${there}/publish`, {})
  const { code, stderr } = await world.run(['claim', there, missing, '--timeout', '4', '--format', 'tsv'])
  expect(code).toBe(8)
  expect(stderr.match(/add to DNS: \S+/g)).toEqual([`add to DNS: ${missing}`])
})

test('mailclaim claims create for 50 domains without a credential exits 4', async () => {
  const world = keyed()
  const list = world.list('domains.txt', world.domains(50))
  const { code, stderr } = await world.run(['claims', 'create', '--from', list], {
    env: { MAILCLAIM_API_KEY: '' },
  })
  expect(code).toBe(4)
  expect(stderr).toContain('not signed in')
})

test('Ctrl-C ends mailclaim claims create for 100 domains within 1.5 seconds, and loses no claim', async () => {
  const world = keyed()
  const domains = world.domains(100)
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
  expect(stderr).toContain('nothing is lost; to continue, run the same command again')
  const done = jsonLines(stdout).length
  const rest = await world.run(['claims', 'create', '--from', list, '--fields', 'name'])
  expect(rest.code).toBe(0)
  const before = Number(/open before (\d+)/.exec(rest.stderr)?.[1])
  // Up to 16 requests were in flight at the interrupt, and the service may have processed them.
  expect(before).toBeGreaterThanOrEqual(done)
  expect(before).toBeLessThanOrEqual(done + 16)
  expect(linesOf(rest.stdout)).toHaveLength(101)
})

test('Ctrl-C ends mailclaim claims check --from - while it waits for more input', async () => {
  const world = keyed()
  const running = world.start(['claims', 'check', '--from', '-', '--format', 'jsonl'], {
    group: true,
    stdin: 'open',
  })
  // Write more than a pipe holds: when the write has finished, the program is reading.
  await new Promise((resolve) => running.child.stdin?.write('# a comment\n'.repeat(100_000), resolve))
  const at = performance.now()
  interruptGroup(running)
  expect((await running.ended).code).toBe(130)
  expect(performance.now() - at).toBeLessThan(1500)
})

test('mailclaim claims check --jobs 60 reports the missing record of each of 60 domains, with a limit of 256 open files', async () => {
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

test('mailclaim claims create for 60 domains, killed several times and repeated, creates each claim exactly once', async () => {
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

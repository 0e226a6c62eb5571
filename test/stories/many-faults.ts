import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { ServedWorld } from './built-program.ts'

/** What the sandbox plants, and the finding that names it. */
const FAULTS: Readonly<Record<string, string>> = {
  missing: 'missing',
  doubled_name: 'doubled_name',
  www: 'other_name',
  quotes: 'quoted',
  truncated: 'truncated',
  lower_case: 'case_changed',
  stale_token: 'stale_token',
  token_only: 'prefix_or_token_only',
  cname: 'cname_at_name',
  split_records: 'split_records',
}

interface Size {
  readonly domains: number
  /** The healthy domains are in this many zones. */
  readonly zones: number
  /** Domains with each of the ten faults, each in a zone of its own. */
  readonly each: number
}

/** Claims domains, plants faults, and checks all: each fault has to be named, and nothing said about the others. */
export async function checkWithFaults(world: ServedWorld, { domains, zones, each }: Size): Promise<void> {
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  const faulty = new Map<string, string>(
    Object.keys(FAULTS).flatMap((fault) =>
      Array.from({ length: each }, (_, n) => [`d.${fault.replaceAll('_', '-')}-${n}.net`, fault] as const),
    ),
  )
  const healthy = Array.from({ length: domains - faulty.size }, (_, n) => `d${n}.zone${n % zones}.com`)
  const all = [...healthy, ...faulty.keys()].toSorted(() => Math.random() - 0.5)
  const list = join(world.home, 'all.txt')
  writeFileSync(list, all.join('\n'))
  const created = await world.run(['claims', 'create', '--from', list, '--format', 'tsv'])
  expect(created.code, created.stderr).toBe(0)
  for (const mistake of Object.keys(FAULTS)) {
    const at = [...faulty].filter(([, fault]) => fault === mistake).map(([domain]) => domain)
    await world.publish(at, mistake)
  }
  const { code, stdout, stderr } = await world.run(['claims', 'check', '--from', list, '--format', 'jsonl'])
  expect(code, stderr).toBe(8)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'domains_failed' } })
  const found = new Map(
    stdout
      .trimEnd()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            name: string
            verdict: string
            findings: { code: string; severity: string }[]
          },
      )
      .map(({ name, verdict, findings }) => [
        name,
        [verdict, findings.find(({ severity }) => severity === 'error')?.code],
      ]),
  )
  expect(found).toEqual(
    new Map(
      all.map((domain) => {
        const fault = faulty.get(domain)
        return [domain, fault === undefined ? ['ready', undefined] : ['fix', FAULTS[fault]]]
      }),
    ),
  )
  const summary = (await world.run(['claims', 'check', '--from', list, '--format', 'tsv'])).stderr
  expect(summary).toContain(`domains: ${domains} (fix ${faulty.size}, ready ${healthy.length})\n`)
  expect(summary.match(new RegExp(`^ {2}\\w+: ${each} \\(`, 'gm'))).toHaveLength(Object.keys(FAULTS).length)
}

import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import * as ledger from '../../src/claims/ledger.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const claim = (name: string, domain_id: string, more: object = {}) =>
  ({ object: 'domain_claim', name, domain_id, status: 'pending', ...more }) as DomainClaim

/** The ledger as another process has it, which hasn't read anything yet. */
async function anotherProcess(): Promise<Ledger> {
  vi.resetModules()
  return import('../../src/claims/ledger.ts')
}

type Ledger = typeof import('../../src/claims/ledger.ts')

async function createLedger(baseUrl?: string) {
  const context = createFakeContext()
  const settings = await fakeSettings(context, baseUrl === undefined ? {} : { baseUrl })
  const directory = join(context.directories.state, 'claims', 'default')
  const damaged: string[] = []
  const onDamaged = async (error: Error) => void damaged.push(error.message)
  const within = ({ forgetClaims, keyOf, knownDomains, readLedger, recordClaim }: Ledger) => ({
    record: async (...claims: DomainClaim[]) => {
      for (const each of claims) expect(await recordClaim(each, context, settings)).toBe(true)
    },
    /** The ids of the claims that a domain name or placeholder domain id stands for; of all without one. */
    ids: async (about?: string) =>
      (await readLedger(context, settings, onDamaged, about)).map((entry) => entry.claim.domain_id),
    domains: async (prefix: string, most = 1000) =>
      (await knownDomains(prefix, most, context, settings)).map(([name]) => name),
    forget: async (about: string) =>
      forgetClaims((await readLedger(context, settings, onDamaged, about)).map(keyOf), context, settings),
  })
  const index = join(directory, 'index')
  return {
    ...within(ledger),
    context,
    directory,
    damaged,
    index,
    within,
    months: () => readdirSync(index).filter((name) => name.endsWith('.tsv')),
  }
}

/** What all of these begin with. */
function sharedBy(names: readonly string[]): string {
  const [first = ''] = names
  let length = first.length
  while (!names.every((name) => name.startsWith(first.slice(0, length)))) length--
  return first.slice(0, length)
}

/** Damages the file of every claim, so that opening it is noticed. */
function damageAll(directory: string) {
  for (const name of readdirSync(directory).filter((each) => each.endsWith('.json')))
    writeFileSync(join(directory, name), '{')
}

describe('finding a claim in a large ledger', () => {
  it('a claim is found by its id without a look at any other file', async () => {
    const { record, ids, directory, index, damaged } = await createLedger()
    await record(claim('one.example', 'd1'))
    damageAll(directory)
    await record(claim('two.example', 'd2'))
    rmSync(index, { recursive: true })
    expect(await ids('d2')).toEqual(['d2'])
    expect(damaged).toEqual([])
  })

  it('the claims of a domain are found without a look at those of others', async () => {
    const { record, ids, directory, damaged } = await createLedger()
    await record(claim('one.example', 'd1'))
    await ids('any.example')
    damageAll(directory)
    await record(claim('two.example', 'd2'), claim('TWO.example', 'd3'))
    expect(new Set(await ids('two.example'))).toEqual(new Set(['d2', 'd3']))
    expect(damaged).toEqual([])
    expect(await ids('one.example')).toEqual([])
    expect(damaged).toHaveLength(1)
  })

  it('a ledger without an index gets one with the first question for a domain, and only then', async () => {
    const { record, ids, domains, directory, index, damaged } = await createLedger()
    await record(claim('one.example', 'd1'), claim('two.example', 'd2'))
    rmSync(index, { recursive: true })
    expect(await ids('two.example')).toEqual(['d2'])
    damageAll(directory)
    expect(await ids('other.example')).toEqual([])
    expect(await domains('other')).toEqual([])
    expect(damaged).toEqual([])
  })

  it('without a usable index everything is still found', async () => {
    const { record, ids, domains, index } = await createLedger()
    await record(claim('one.example', 'd1'))
    rmSync(index, { recursive: true })
    writeFileSync(index, 'a file where the directory should be')
    expect(await ids('one.example')).toEqual(['d1'])
    expect(await domains('o')).toEqual(['one.example'])
    expect(await ids()).toEqual(['d1'])
  })

  it('a line that was cut off and one of a claim that was never written do no harm', async () => {
    const { record, ids, domains, index, months } = await createLedger()
    await record(claim('one.example', 'd1'))
    await ids('one.example')
    const [month = ''] = months()
    const text = readFileSync(join(index, month), 'utf8').trim()
    const other = `${'0'.repeat(32)}${text.slice(32).replace('one.', 'two.')}`
    appendFileSync(join(index, month), `${other}\n${other.slice(0, -4)}`)
    await record(claim('three.example', 'd3'))
    expect(await ids('one.example')).toEqual(['d1'])
    expect(await ids('two.example')).toEqual([])
    expect(await ids('three.example')).toEqual(['d3'])
    expect((await domains('')).sort()).toEqual(['one.example', 'three.example'])
    expect(await ids()).toHaveLength(2)
  })

  it('a list also finds the claims that the index lacks, and adds them to it', async () => {
    const one = await createLedger()
    const two = await createLedger()
    await one.record(claim('one.example', 'd1'))
    await two.record(claim('two.example', 'd2'))
    await two.ids('two.example')
    const [file = ''] = readdirSync(one.directory).filter((name) => name.endsWith('.json'))
    renameSync(join(one.directory, file), join(two.directory, file))
    expect(await two.ids('one.example')).toEqual([])
    expect(new Set(await two.ids())).toEqual(new Set(['d1', 'd2']))
    expect(await two.ids('one.example')).toEqual(['d1'])
  })

  it('a past month is removed once all of its claims are forgotten', async () => {
    const { context, record, ids, forget, index, months } = await createLedger()
    await record(claim('one.example', 'd1'), claim('two.example', 'd2'))
    context.clock.advance(40 * 24 * 3600 * 1000)
    await record(claim('three.example', 'd3'))
    await ids('three.example')
    await forget('one.example')
    expect(months()).toEqual(['2026-11.tsv', '2026-12.tsv'])
    await forget('two.example')
    expect(months()).toEqual(['2026-12.tsv'])
    await forget('three.example')
    expect(months()).toEqual(['2026-12.tsv'])
    expect(statSync(join(index, '2026-12.tsv')).size).toBeGreaterThan(0)
    expect(await ids()).toEqual([])
  })

  it('names from outside cannot forge a line', async () => {
    const { record, ids, domains } = await createLedger()
    const hostile = ['a\n.example', 'b\t"c".example', '"\n', '\ud800', 'é\u2028.example', '\\"', '']
    await record(claim('one.example', 'd0'))
    for (const [at, name] of hostile.entries()) await record(claim(name, `h${at}`))
    for (const [at, name] of hostile.entries()) expect(await ids(name), name).toEqual([`h${at}`])
    expect(await domains('')).toEqual(['one.example'])
  })
})

describe('a process that asks for many domains', () => {
  it('reads each line of the index once', async () => {
    const { record, ids, index, months } = await createLedger()
    for (let at = 0; at < 20; at++) await record(claim(`n${at}.example`, `d${at}`))
    expect(await ids('n0.example')).toEqual(['d0'])
    const path = join(index, months()[0] ?? '')
    writeFileSync(path, ' '.repeat(statSync(path).size), { flag: 'r+' })
    for (let at = 0; at < 20; at++) expect(await ids(`n${at}.example`)).toEqual([`d${at}`])
    expect(await ids('other.example')).toEqual([])
  })

  it.each([1, 20])('finds what another one has added, after %i questions', async (questions) => {
    const { record, ids, domains, within } = await createLedger()
    const other = within(await anotherProcess())
    await record(claim('one.example', 'd1'))
    for (let at = 0; at < questions; at++) expect(await ids('one.example')).toEqual(['d1'])
    await other.record(claim('two.example', 'd2'), claim('one.example', 'd3'))
    expect(await ids('two.example')).toEqual(['d2'])
    expect((await ids('one.example')).sort()).toEqual(['d1', 'd3'])
    expect(await domains('t')).toEqual(['two.example'])
    expect(await other.ids('one.example')).toHaveLength(2)
  })

  it('finds a claim whose line was half written when it looked', async () => {
    const { record, ids, index, months } = await createLedger()
    await record(claim('one.example', 'd1'), claim('two.example', 'd2'))
    const path = join(index, months()[0] ?? '')
    const text = readFileSync(path, 'latin1')
    const half = text.indexOf('two.')
    writeFileSync(path, text.slice(0, half))
    expect(await ids('one.example')).toEqual(['d1'])
    appendFileSync(path, text.slice(half))
    expect(await ids('two.example')).toEqual(['d2'])
  })

  it('reads an index again that something has replaced', async () => {
    const { record, ids, index, months } = await createLedger()
    await record(claim('one.example', 'd1'), claim('two.example', 'd2'))
    expect(await ids('one.example')).toEqual(['d1'])
    const path = join(index, months()[0] ?? '')
    const text = readFileSync(path, 'latin1')
    writeFileSync(`${path}.new`, `${text.replaceAll('"one.', '"won.')}${text.replaceAll('"two.', '"own.')}`)
    renameSync(`${path}.new`, path)
    expect(await ids('one.example')).toEqual(['d1'])
    renameSync(path, `${path}.old`)
    expect(await ids('one.example')).toEqual([])
  })

  it('leaves to others what it found, if the index is gone', async () => {
    const { record, ids, index, within } = await createLedger()
    await record(claim('one.example', 'd1'))
    expect(await ids('one.example')).toEqual(['d1'])
    rmSync(index, { recursive: true })
    expect(await ids('one.example')).toEqual(['d1'])
    expect(await within(await anotherProcess()).ids('one.example')).toEqual(['d1'])
  })
})

describe('the domains that a shell completes', () => {
  it('of any number of domains, the ones that are offered begin with no more than what all share', async () => {
    const label = fc.stringMatching(/^[ab]{1,4}$/)
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(label, { minLength: 1, maxLength: 8 }), async (labels) => {
        const { record, domains, forget } = await createLedger()
        for (const one of [...labels, 'b-forgotten']) await record(claim(`${one}.example`, one))
        await forget('b-forgotten')
        for (const prefix of ['', 'a', 'b', 'ab']) {
          const all = labels.map((one) => `${one}.example`).filter((name) => name.startsWith(prefix))
          const offered = await domains(prefix, 2)
          expect(all).toEqual(expect.arrayContaining(offered))
          expect(offered.slice(0, 2)).toEqual(all.slice(-2).reverse())
          expect(sharedBy(offered)).toBe(sharedBy(all))
        }
      }),
      { numRuns: 30 },
    )
  })

  it('of too many domains there are the newest, and those that keep the common beginning right', async () => {
    const { record, domains } = await createLedger()
    const names = ['b1', 'a', 'c', 'b2', 'b3', 'b4'].map((name) => `x${name}.example`)
    for (const name of names) await record(claim(name, name))
    expect(await domains('x', 3)).toEqual(['xb4.example', 'xb3.example', 'xb2.example', 'xa.example'])
    expect(await domains('xb', 3)).toEqual(['xb4.example', 'xb3.example', 'xb2.example'])
  })

  it('a hundred domains and more are offered without opening their claims', async () => {
    const { record, domains, directory } = await createLedger()
    for (let at = 0; at < 101; at++) await record(claim(`n${at}.example`, `d${at}`))
    expect(await domains('n')).toHaveLength(101)
    damageAll(directory)
    expect(await domains('n')).toHaveLength(101)
    expect(await domains('n1')).toEqual([])
  })
})

describe('whatever happens to a ledger', () => {
  const name = fc.constantFrom('a.example', 'ab.example', 'b.example', 'xn--bcher-kva.example')
  const id = fc.constantFrom('d1', 'd2', 'd3', 'a.example', 'x'.repeat(40))
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('record' as const), name, id }),
    fc.record({ kind: fc.constant('forget' as const), id }),
    fc.record({ kind: fc.constant('later' as const), days: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ kind: fc.constant('no index' as const) }),
    fc.record({ kind: fc.constant('cut off' as const), length: fc.nat(90) }),
    fc.record({ kind: fc.constant('list' as const) }),
  )

  it('its claims are found by id, by name, by the beginning of a name, and in a list, by any process', async () => {
    const other = await anotherProcess()
    const steps = fc.array(fc.tuple(operation, fc.boolean()), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (operations, looker) => {
        const { context, index, within } = await createLedger()
        const processes = [within(ledger), within(other)] as const
        const expected = new Map<string, string>()
        for (const [each, second] of operations) {
          const { record, ids, forget } = processes[second ? 1 : 0]
          if (each.kind === 'record') {
            // The service never changes the name of a claim.
            const known = expected.get(each.id) ?? each.name
            expected.set(each.id, known)
            await record(claim(known, each.id))
          } else if (each.kind === 'forget') {
            if (!expected.delete(each.id)) continue
            await forget(each.id)
          } else if (each.kind === 'later') context.clock.advance(each.days * 24 * 3600 * 1000)
          else if (each.kind === 'no index') rmSync(index, { recursive: true, force: true })
          else if (each.kind === 'list') await ids()
          else {
            mkdirSync(index, { recursive: true, mode: 0o700 })
            const line = `${'f'.repeat(32)}\t1763640000000\thttp://127.0.0.1:1\t"cut-off.example"`
            appendFileSync(join(index, '2026-11.tsv'), line.slice(0, each.length))
          }
        }
        const { ids, domains } = processes[looker ? 1 : 0]
        const names = new Set(expected.values())
        for (const one of ['a.example', 'ab.example', 'b.example', 'xn--bcher-kva.example']) {
          if (expected.has(one)) continue
          const own = [...expected].filter(([, value]) => value === one).map(([key]) => key)
          expect((await ids(one)).sort(), one).toEqual(own.sort())
        }
        for (const [key] of expected) expect(await ids(key)).toEqual([key])
        for (const prefix of ['', 'a', 'a.', 'xn'])
          expect((await domains(prefix)).sort(), prefix).toEqual(
            [...names].filter((one) => one.startsWith(prefix)).sort(),
          )
        expect((await ids()).sort()).toEqual([...expected.keys()].sort())
      }),
      { numRuns: 200 },
    )
  })
})

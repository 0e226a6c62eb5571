import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readLedger, recordClaim } from '../../src/claims/ledger.ts'
import { resolveClaim } from '../../src/claims/resolve.ts'
import { Exit } from '../../src/errors.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import {
  createFakeContext,
  type FakeContext,
  type FakeContextOptions,
  fakeSettings,
} from '../fake-context.ts'
import { needs } from '../requirements.ts'

const claim = (name: string, domain_id: string, more: object = {}) =>
  ({ object: 'domain_claim', name, domain_id, status: 'pending', ...more }) as DomainClaim

async function world(options: FakeContextOptions = {}) {
  const context = createFakeContext(options)
  const settings = await fakeSettings(context)
  const read = async (of = settings) => {
    const damaged: string[] = []
    const entries = await readLedger(context, of, async (error) => void damaged.push(error.message))
    return { names: entries.map((entry) => entry.claim.name), entries, damaged }
  }
  return { context, settings, read, directory: join(context.directories.state, 'claims', 'default') }
}

const remember = async (
  context: FakeContext,
  settings: Awaited<ReturnType<typeof fakeSettings>>,
  ...claims: DomainClaim[]
) => {
  for (const each of claims) {
    context.clock.advance(1000)
    await recordClaim(each, context, settings)
  }
}

describe('the ledger', () => {
  it('the ledger is empty at first', async () => {
    const { read } = await world()
    expect(await read()).toMatchObject({ names: [], damaged: [] })
  })

  it('the ledger keeps the latest version of each claim, unknown fields included, newest first', async () => {
    const { context, settings, read } = await world()
    await remember(context, settings, claim('one.example', 'd1'), claim('two.example', 'd2'))
    await remember(context, settings, claim('one.example', 'd1', { status: 'completed', owner: 'Zoë' }))
    const { names, entries } = await read()
    expect(names).toEqual(['two.example', 'one.example'])
    expect(entries[1]?.claim).toMatchObject({ status: 'completed', owner: 'Zoë' })
  })

  it.each(['bücher.example', 'BÜCHER.example', 'xn--bcher-kva.example.', 'XN--BCHER-KVA.example'])(
    'a claim is found by its domain, however the service spells that: %s',
    async (spelling) => {
      const { context, settings } = await world()
      await remember(context, settings, claim('one.example', 'd0'), claim(spelling, 'd1'))
      for (const typed of ['bücher.example', 'xn--bcher-kva.example', 'Bücher.example.'])
        expect(await resolveClaim(typed, context, settings)).toMatchObject({ domainId: 'd1' })
    },
  )

  it('a claim too large to be read back is not saved, and that is said', async () => {
    const { context, settings, read } = await world()
    const large = claim('one.example', 'd1', { note: 'x'.repeat(1024 * 1024) })
    expect(await recordClaim(large, context, settings)).toBe(false)
    expect(context.stderr.text).toMatch(
      /^warning: couldn't save the claim on this machine: it has \d+ characters\n$/,
    )
    expect(await read()).toMatchObject({ names: [], damaged: [] })
  })

  it('the order of the claims stays the same whichever is looked at', async () => {
    const { context, settings, read } = await world()
    const one = claim('one.example', 'd1', { created_at: '2026-11-19 10:00:00+00' })
    const two = claim('two.example', 'd2', { created_at: '2026-11-20 10:00:00+00' })
    for (const seen of [[one, two], [one], [two], [two, one]]) {
      await remember(context, settings, ...seen)
      expect((await read()).names).toEqual(['two.example', 'one.example'])
    }
  })

  it('a ledger that cannot be written causes a warning only', async () => {
    const { context, settings } = await world()
    mkdirSync(context.directories.state, { recursive: true })
    writeFileSync(join(context.directories.state, 'claims'), 'a file where the directory should be')
    await remember(context, settings, claim('one.example', 'd1'))
    expect(context.stderr.text).toContain("warning: couldn't save the claim on this machine")
  })

  it.runIf(needs('posix'))('only the owner can read the ledger', async () => {
    const { context, settings, read, directory } = await world()
    await remember(context, settings, claim('one.example', 'd1'))
    await read()
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    const modes = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => {
      const found = statSync(join(directory, name))
      return found.mode & (found.isDirectory() ? 0o077 : 0o177)
    })
    // The claim, and the index with a month's file and the one that says that it is complete.
    expect(modes).toEqual([0, 0, 0, 0])
  })

  it('the ledger keeps services and profiles apart', async () => {
    const { context, settings, read } = await world()
    await remember(context, settings, claim('one.example', 'd1'))
    expect((await read(await fakeSettings(context, { baseUrl: 'http://127.0.0.1:2' }))).names).toEqual([])
    expect((await read(await fakeSettings(context, { profile: 'other' }))).names).toEqual([])
    expect((await read()).names).toEqual(['one.example'])
  })

  it('fifty concurrent writers lose nothing', async () => {
    const { context, settings, read } = await world()
    await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        recordClaim(claim(`n${at % 25}.example`, `d${at % 25}`), context, settings),
      ),
    )
    const { names, damaged } = await read()
    expect(new Set(names).size).toBe(25)
    expect(names).toHaveLength(25)
    expect(damaged).toEqual([])
  })

  it('the ledger ignores a claim without an id', async () => {
    const { context, settings, read } = await world()
    await recordClaim({ ...claim('one.example', 'd1'), domain_id: null } as DomainClaim, context, settings)
    expect((await read()).names).toEqual([])
  })

  it('a damaged file is reported, skipped and left in place', async () => {
    const { context, settings, read, directory } = await world()
    await remember(context, settings, claim('one.example', 'd1'))
    mkdirSync(directory, { recursive: true })
    const broken = ['{', '[]', '{"version":2}', '{"version":1,"issuer":"x","seen_at":"y","claim":{}}']
    broken.forEach((text, at) => {
      writeFileSync(join(directory, `${String(at).repeat(32)}.json`), text)
    })
    const { names, damaged } = await read()
    expect(names).toEqual(['one.example'])
    expect(damaged).toHaveLength(broken.length)
    expect(readdirSync(directory).filter((name) => name.endsWith('.json'))).toHaveLength(broken.length + 1)
  })
})

describe('resolving a claim', () => {
  it('a claim is found by name, in any case and in Unicode, or by id', async () => {
    const { context, settings } = await world()
    await remember(context, settings, claim('xn--bcher-kva.example', 'd1'), claim('two.example', 'd2'))
    for (const [said, domainId] of [
      ['two.example', 'd2'],
      ['TWO.Example.', 'd2'],
      ['bücher.example', 'd1'],
      ['d1', 'd1'],
    ] as const)
      expect((await resolveClaim(said, context, settings)).domainId, said).toBe(domainId)
  })

  it('a name stands for its newest claim', async () => {
    const { context, settings } = await world()
    await remember(context, settings, claim('one.example', 'old'), claim('one.example', 'new'))
    expect((await resolveClaim('one.example', context, settings)).domainId).toBe('new')
  })

  describe('a name stands for its newest open claim,', () => {
    const at = (day: number, more: object = {}) => ({
      created_at: `2026-11-${day} 10:00:00.5+00`,
      expires_at: `2026-11-${day + 7} 10:00:00.5+00`,
      ...more,
    })
    const old = claim('one.example', 'old', at(18, { status: 'superseded' }))
    const open = claim('one.example', 'open', at(19))
    const resolved = async (...claims: DomainClaim[]) => {
      const { context, settings } = await world()
      await remember(context, settings, ...claims)
      return (await resolveClaim('one.example', context, settings)).domainId
    }

    it('whichever was looked at last', async () => {
      expect(await resolved(open, old)).toBe('open')
      expect(await resolved(old, open, claim('one.example', 'older', at(17)))).toBe('open')
    })

    it('even if a newer one is over', async () => {
      expect(await resolved(open, claim('one.example', 'new', at(20, { status: 'canceled' })))).toBe('open')
    })

    it('and one that has expired by the clock is over', async () => {
      const stale = claim(
        'one.example',
        'stale',
        at(10, { created_at: '2026-11-20 11:00:00+00', expires_at: '2026-11-20 11:30:00+00' }),
      )
      expect(await resolved(open, stale)).toBe('open')
    })

    it('or for its newest claim if all are over', async () => {
      expect(await resolved(claim('one.example', 'new', at(20, { status: 'failed' })), old)).toBe('new')
    })
  })

  it('an unknown id is taken as it is', async () => {
    const { context, settings } = await world()
    const id = '7b1f0f1e-7777-7777-7777-777777777777'
    expect(await resolveClaim(id, context, settings)).toEqual({ domainId: id, entry: undefined })
    expect(await resolveClaim('7b1f0f1e-77', context, settings)).toEqual({
      domainId: '7b1f0f1e-77',
      entry: undefined,
      notFoundHint: expect.stringContaining('not the id of a claim'),
    })
  })

  it.each([
    ['unknown.example', Exit.notFound],
    ['a/../b', Exit.usage],
    ['', Exit.usage],
    [undefined, Exit.usage],
  ])('resolving %s is an error', async (said, exit) => {
    const { context, settings } = await world()
    await expect(resolveClaim(said, context, settings)).rejects.toMatchObject({
      exit,
      hint: expect.any(String),
    })
  })

  it('a domain without a known claim has several next steps', async () => {
    const { context, settings } = await world()
    await expect(resolveClaim('customer.example', context, settings)).rejects.toMatchObject({
      code: 'claim_unknown',
      hint: 'if the claim was created elsewhere, give its placeholder domain id once; to start one: mailclaim claim customer.example; to see what is in DNS: mailclaim claims check customer.example',
    })
  })

  it('on a terminal the person picks a claim, with names sanitized', async () => {
    const { context, settings } = await world({
      terminal: { columns: 80 },
      prompts: {
        select: async ({ choices }) => {
          expect(choices.map(({ name }) => name)).toEqual([
            'two\\u{1b}.example  pending',
            'one.example  pending',
          ])
          const [, second] = choices
          if (second === undefined) throw new Error('no second choice')
          return second.value
        },
      },
    })
    await remember(context, settings, claim('one.example', 'd1'), claim('two\u001b.example', 'd2'))
    expect((await resolveClaim(undefined, context, settings)).domainId).toBe('d1')
  })
})

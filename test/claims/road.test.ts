import { describe, expect, it } from 'vitest'
import { recordClaim } from '../../src/claims/ledger.ts'
import { type RoadEvent, type RoadOptions, travel } from '../../src/claims/road.ts'
import type { HttpResponse } from '../../src/context.ts'
import { Exit } from '../../src/errors.ts'
import { createServiceClient } from '../../src/service/client.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'

const claim = (fields: Partial<Record<keyof DomainClaim, unknown>> = {}) =>
  ({
    name: 'example.com',
    domain_id: 'd1',
    status: 'pending',
    record: { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' },
    ...fields,
  }) as DomainClaim

interface Service {
  /** Answers to GET, in turn; the last one repeats. */
  readonly states?: readonly (DomainClaim | undefined)[]
  readonly created?: DomainClaim
  readonly createdStatus?: 200 | 201
}

/** Walks the road at a service that answers like this, DNS left out, and gives the stations and the requests. */
async function walk(service: Service, options: Partial<RoadOptions> = {}, known?: DomainClaim) {
  const { states = [claim({ status: 'completed' })], created = claim(), createdStatus = 201 } = service
  let turn = 0
  const asked: string[] = []
  const context = createFakeContext({
    environment: { apiKey: 'key_0123456789' },
    respond: ({ method, url }): HttpResponse => {
      asked.push(`${method} ${url.pathname}`)
      if (url.pathname === '/domains/claim') return jsonResponse(createdStatus, created)
      if (method === 'POST') return jsonResponse(200, claim())
      const state = states[Math.min(turn++, states.length - 1)]
      return state === undefined ? jsonResponse(404, { message: 'gone' }) : jsonResponse(200, state)
    },
  })
  const settings = await fakeSettings(context)
  if (known !== undefined) await recordClaim(known, context, settings)
  const client = createServiceClient({
    context,
    settings,
    authorizer: {
      credential: async () => ({ kind: 'api_key', value: 'key_0123456789' }),
      refused: async () => undefined,
    },
  })
  const events: RoadEvent[] = []
  const run = travel(
    { name: 'example.com' },
    { timeoutMs: 60_000, throughBlocked: false, check: false, ...options },
    client,
    context,
    settings,
  )
  let end: unknown
  try {
    for (;;) {
      const step = await run.next()
      if (step.done) {
        end = step.value
        break
      }
      events.push(step.value)
    }
  } catch (error) {
    end = error
  }
  return { stations: events.map(({ event }) => event), events, end, asked }
}

describe('the road of a claim', () => {
  it('creates, asks for verification, and follows it to its end', async () => {
    const { stations, end, asked } = await walk({
      states: [claim({ status: 'verified' }), claim({ status: 'completed' })],
    })
    expect(stations).toEqual(['created', 'record', 'verification', 'waiting', 'completed'])
    expect(end).toMatchObject({ status: 'completed' })
    expect(asked).toEqual([
      'POST /domains/claim',
      'POST /domains/d1/claim/verify',
      'GET /domains/d1/claim',
      'GET /domains/d1/claim',
    ])
  })

  it('takes up the claim that the ledger knows', async () => {
    const { events, asked } = await walk({ states: [claim(), claim({ status: 'completed' })] }, {}, claim())
    expect(events[0]?.message).toMatch(/^taken up again/)
    expect(asked).not.toContain('POST /domains/claim')
  })

  it.each(['expired', 'failed', 'superseded', 'canceled'])(
    'begins anew where the known claim is %s',
    async (status) => {
      const { events, asked } = await walk(
        { states: [claim({ status }), claim({ status: 'completed' })] },
        {},
        claim(),
      )
      expect(events[0]?.message).toBe('a new claim')
      expect(asked).toContain('POST /domains/claim')
    },
  )

  it('begins anew where the service has lost the known claim', async () => {
    const { end, asked } = await walk({ states: [undefined, claim({ status: 'completed' })] }, {}, claim())
    expect(asked.slice(0, 2)).toEqual(['GET /domains/d1/claim', 'POST /domains/claim'])
    expect(end).toMatchObject({ status: 'completed' })
  })

  it('is short where the claim is completed already', async () => {
    const { stations, asked } = await walk({}, {}, claim())
    expect(stations).toEqual(['created', 'completed'])
    expect(asked).toEqual(['GET /domains/d1/claim'])
  })

  it('asks for no verification where the service has accepted the record', async () => {
    const verified = claim({ status: 'verified' })
    const { stations, asked } = await walk(
      { states: [verified, verified, claim({ status: 'completed' })] },
      {},
      claim(),
    )
    expect(stations).toEqual(['created', 'record', 'dns', 'verification', 'waiting', 'completed'])
    expect(asked.filter((request) => request.startsWith('POST'))).toEqual([])
  })

  it('says that the service handed out a pending claim', async () => {
    expect((await walk({ createdStatus: 200 })).events[0]?.message).toBe('it was already being claimed')
  })

  it('stops at a block: exit 9; or waits it out', async () => {
    const blocked = claim({ status: 'blocked', blocked_reason: 'grace_period' })
    expect((await walk({ states: [blocked] })).end).toMatchObject({
      code: 'claim_blocked',
      exit: Exit.negativeEnd,
    })
    const waited = await walk({ states: [blocked, claim({ status: 'completed' })] }, { throughBlocked: true })
    expect(waited.stations).toContain('waiting')
    expect(waited.end).toMatchObject({ status: 'completed' })
  })

  it.each(['failed', 'expired'])('ends with exit 9 when the claim is %s', async (status) => {
    expect((await walk({ states: [claim({ status })] })).end).toMatchObject({ exit: Exit.negativeEnd })
  })

  it('ends with exit 8 when its time is over', async () => {
    expect((await walk({ states: [claim()] }, { timeoutMs: 5000 })).end).toMatchObject({ exit: Exit.notYet })
  })

  it('cannot be walked without a placeholder domain id', async () => {
    expect((await walk({ created: claim({ domain_id: null }) })).end).toMatchObject({
      code: 'domain_id_missing',
    })
  })
})

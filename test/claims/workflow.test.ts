import { describe, expect, it } from 'vitest'
import { recordClaim } from '../../src/claims/ledger.ts'
import { runWorkflow, type WorkflowEvent, type WorkflowOptions } from '../../src/claims/workflow.ts'
import { type DnsNetwork, DnsTransportError, type HttpResponse } from '../../src/context.ts'
import { Exit } from '../../src/errors.ts'
import { createServiceClient } from '../../src/service/client.ts'
import type { ClaimRequest, DomainClaim } from '../../src/service/types.ts'
import { createIo } from '../../src/terminal/io.ts'
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
  /** The responses to GET, in turn; the last one repeats. */
  readonly states?: readonly (DomainClaim | undefined)[]
  readonly created?: DomainClaim
  readonly createdStatus?: 200 | 201
  /** The response to the first request to verify. */
  readonly verified?: HttpResponse
}

/** Runs the workflow, without DNS, at a service with these responses, and returns the events and the requests. */
async function run(
  service: Service,
  options: Partial<WorkflowOptions> = {},
  known: DomainClaim | readonly DomainClaim[] = [],
  request: Partial<ClaimRequest> = {},
  dns: Partial<DnsNetwork> = {},
) {
  const { states = [claim({ status: 'completed' })], created = claim(), createdStatus = 201 } = service
  let turn = 0
  const asked: string[] = []
  const context = createFakeContext({
    environment: { apiKey: 'key_0123456789' },
    respond: ({ method, url }): HttpResponse => {
      asked.push(`${method} ${url.pathname}`)
      if (url.pathname === '/domains/claim') return jsonResponse(createdStatus, created)
      const isFirst = asked.filter((request) => request.endsWith('/verify')).length === 1
      if (method === 'POST') return (isFirst && service.verified) || jsonResponse(200, claim())
      const state = states[Math.min(turn++, states.length - 1)]
      return state === undefined ? jsonResponse(404, { message: 'gone' }) : jsonResponse(200, state)
    },
  })
  Object.assign(context.dns, dns)
  const settings = await fakeSettings(context)
  for (const one of [known].flat()) {
    context.clock.advance(1000)
    await recordClaim(one, context, settings)
  }
  const client = createServiceClient(createIo(context, settings), {
    credential: async () => ({ kind: 'api_key', value: 'key_0123456789' }),
    refused: async () => undefined,
  })
  const events: WorkflowEvent[] = []
  const workflow = runWorkflow(
    { name: 'example.com', ...request },
    { timeoutMs: 60_000, throughBlocked: false, check: false, latest: async (seen) => seen, ...options },
    client,
    context,
    settings,
  )
  let end: unknown
  try {
    let step = await workflow.next()
    while (!step.done) {
      events.push(step.value)
      step = await workflow.next()
    }
    end = step.value
  } catch (error) {
    end = error
  }
  return { steps: events.map(({ event }) => event), events, end, asked }
}

describe('the workflow', () => {
  it('the workflow creates a claim, requests verification and follows it to its end', async () => {
    const { steps, end, asked } = await run({
      states: [claim({ status: 'verified' }), claim({ status: 'completed' })],
    })
    expect(steps).toEqual(['created', 'record', 'verification', 'waiting', 'completed'])
    expect(end).toEqual({ claim: expect.objectContaining({ status: 'completed' }) })
    expect(asked).toEqual([
      'POST /domains/claim',
      'POST /domains/d1/claim/verify',
      'GET /domains/d1/claim',
      'GET /domains/d1/claim',
    ])
  })

  it('the workflow asks for verification without DNS only if this domain was asked for', async () => {
    const silent = () => Promise.reject(new DnsTransportError('timeout', 'no answer'))
    const dns = {
      udp: silent,
      tcp: silent,
      systemResolvers: async () => [{ address: '192.0.2.53', port: 53 }],
    }
    const asked = await run({}, { check: true }, [], {}, dns)
    expect(asked.steps).toEqual(['created', 'record', 'warning', 'verification', 'completed'])
    const leftOut = await run({}, { check: true }, [], {}, { ...dns, wasLeftOut: () => true })
    expect(new Set(leftOut.steps)).toEqual(new Set(['created', 'record', 'waiting']))
    expect(leftOut.end).toMatchObject({ missing: { step: 'dns' } })
    expect(leftOut.asked).toEqual(['POST /domains/claim'])
  })

  it('the workflow resumes the claim in the ledger', async () => {
    const { events, asked } = await run({ states: [claim(), claim({ status: 'completed' })] }, {}, claim())
    expect(events[0]?.message).toMatch(/^resumed: /)
    expect(asked).not.toContain('POST /domains/claim')
  })

  it('the workflow names the options that have no effect on the claim it resumes', async () => {
    const options = { region: 'eu-west-1', open_tracking: false, tracking_subdomain: 't' } as const
    const states = [claim({ region: 'eu-west-1', status: 'completed' })]
    const { events, asked } = await run({ states }, {}, claim(), options)
    expect(asked).toEqual(['GET /domains/d1/claim'])
    expect(events[1]).toMatchObject({
      event: 'warning',
      message:
        '--no-open-tracking, --tracking-subdomain have no effect on a claim that already exists: it keeps what it was created with; to start another, with its own TXT record, use these options with: mailclaim claims create example.com',
    })
    const unknownRegion = await run({}, {}, claim(), { region: 'eu-west-1' })
    expect(unknownRegion.events[1]?.message).toContain('--region has no effect')
    const pending = await run({ createdStatus: 200 }, {}, [], { click_tracking: true })
    expect(pending.events[1]?.message).toContain('--click-tracking has no effect')
    const fresh = await run({}, {}, [], { click_tracking: true })
    expect(fresh.steps).not.toContain('warning')
  })

  describe('with several claims of the domain', () => {
    const old = claim({ domain_id: 'old', status: 'superseded', created_at: '2026-11-18 10:00:00+00' })
    const live = claim({ domain_id: 'live', region: 'eu-west-1', created_at: '2026-11-19 10:00:00+00' })

    it('the workflow resumes the live one, whatever its region and whichever was looked at last', async () => {
      for (const known of [
        [live, old],
        [old, live],
      ]) {
        const { asked, end } = await run({}, {}, known)
        expect(asked).toEqual(['GET /domains/live/claim'])
        expect(end).toMatchObject({ claim: { status: 'completed' } })
      }
    })

    it('the workflow resumes the one in the region that is asked for', async () => {
      const other = claim({ domain_id: 'other', region: 'us-east-1', created_at: '2026-11-20 10:00:00+00' })
      expect((await run({}, {}, [live, other], { region: 'eu-west-1' })).asked[0]).toBe(
        'GET /domains/live/claim',
      )
      expect((await run({}, {}, [live, other])).asked[0]).toBe('GET /domains/other/claim')
    })

    it('the workflow warns when it makes one next to the live one of another region', async () => {
      const { events, asked } = await run({}, {}, [old, live], { region: 'us-east-1' })
      expect(asked[0]).toBe('POST /domains/claim')
      expect(events.slice(0, 2)).toMatchObject([
        { event: 'created', message: 'a new claim' },
        {
          event: 'warning',
          message:
            'example.com already had an open claim (region eu-west-1, created 2026-11-19 10:00:00+00): the service may end it in favor of this new one, which needs its own TXT record',
        },
      ])
    })
  })

  it.each(['expired', 'failed', 'canceled'])(
    'the workflow starts a new claim if the known one is %s',
    async (status) => {
      const dead = { type: 'TXT', name: 'example.com', value: 'prefix=dead', ttl: 'Auto' }
      const { events, asked } = await run(
        { states: [claim({ status, record: dead }), claim({ status: 'completed' })] },
        {},
        claim(),
      )
      expect(events[0]).toMatchObject({
        message: `a new claim: the earlier one ended (${status}), so nobody checks its TXT value anymore: replace or remove "prefix=dead"`,
        earlier: { status, record: dead },
      })
      expect(asked).toContain('POST /domains/claim')
    },
  )

  it('the workflow starts no claim in place of a newer one, until a new one was made on purpose', async () => {
    const replaced = claim({ status: 'superseded', region: 'eu-west-1' })
    const { steps, end, asked } = await run({ states: [replaced] }, {}, claim())
    expect(steps).toEqual(['ended'])
    expect(end).toMatchObject({
      claim: { status: 'superseded' },
      error: {
        code: 'claim_superseded',
        exit: Exit.negativeEnd,
        hint: expect.stringMatching(/which ends the newer one: mailclaim claims create example\.com$/),
      },
    })
    expect(asked).toEqual(['GET /domains/d1/claim'])
    const another = claim({ domain_id: 'd2', created_at: '2026-11-20 10:00:00+00' })
    const created = await run({}, {}, [replaced, another])
    expect(created.asked).toEqual(['GET /domains/d2/claim'])
    expect(created.end).toMatchObject({ claim: { status: 'completed' } })
  })

  it('runs that differ in the region do not replace the claims of each other in turn', async () => {
    const replaced = claim({ status: 'superseded', region: 'eu-west-1' })
    const newer = claim({ domain_id: 'd2', region: 'us-east-1', created_at: '2026-11-20 10:00:00+00' })
    const { end, asked } = await run({ states: [replaced] }, {}, [replaced, newer], { region: 'eu-west-1' })
    expect(end).toMatchObject({ error: { code: 'claim_superseded' } })
    expect(asked).toEqual(['GET /domains/d1/claim'])
  })

  it('the workflow starts a new claim if the service no longer has the known one', async () => {
    const { end, asked } = await run({ states: [undefined, claim({ status: 'completed' })] }, {}, claim())
    expect(asked.slice(0, 2)).toEqual(['GET /domains/d1/claim', 'POST /domains/claim'])
    expect(end).toEqual({ claim: expect.objectContaining({ status: 'completed' }) })
  })

  it('the workflow that only resumes starts no claim in place of one that is no longer known', async () => {
    const { end, asked } = await run({}, { resumeOnly: true })
    expect(end).toMatchObject({
      code: 'claim_unknown',
      exit: Exit.notFound,
      hint: 'to start another: mailclaim claim example.com',
    })
    expect(asked).toEqual([])
  })

  it('the workflow ends at once if the claim is completed', async () => {
    const { steps, asked } = await run({}, {}, claim())
    expect(steps).toEqual(['created', 'completed'])
    expect(asked).toEqual(['GET /domains/d1/claim'])
  })

  it('the workflow requests no verification if the service has accepted the record', async () => {
    const verified = claim({ status: 'verified' })
    const { steps, asked } = await run(
      { states: [verified, verified, claim({ status: 'completed' })] },
      {},
      claim(),
    )
    expect(steps).toEqual(['created', 'record', 'dns', 'verification', 'waiting', 'completed'])
    expect(asked.filter((request) => request.startsWith('POST'))).toEqual([])
  })

  it('the workflow reports that the claim was already pending', async () => {
    expect((await run({ createdStatus: 200 })).events[0]?.message).toBe('the claim was already pending')
  })

  it('the workflow ends with exit 9 at a block, unless --through-blocked', async () => {
    const blocked = claim({ status: 'blocked', blocked_reason: 'grace_period' })
    const stopped = await run({ states: [blocked] })
    expect(stopped.end).toMatchObject({ error: { code: 'claim_blocked', exit: Exit.negativeEnd } })
    expect(stopped.events.at(-1)).toMatchObject({ event: 'ended', claim: { status: 'blocked' } })
    const waited = await run({ states: [blocked, claim({ status: 'completed' })] }, { throughBlocked: true })
    expect(waited.steps).toContain('waiting')
    expect(waited.end).toMatchObject({ claim: { status: 'completed' } })
  })

  it.each(['failed', 'expired'])('the workflow ends with exit 9 when the claim is %s', async (status) => {
    expect((await run({ states: [claim({ status })] })).end).toMatchObject({
      error: { exit: Exit.negativeEnd },
    })
  })

  it('the workflow times out with exit 8', async () => {
    const { end, events } = await run({ states: [claim()] }, { timeoutMs: 5000 })
    expect(end).toMatchObject({
      claim: { status: 'pending' },
      error: {
        code: 'claim_in_flight',
        exit: Exit.notYet,
        hint: 'the claim continues; to keep watching: mailclaim claims watch example.com',
      },
      missing: { step: 'completed' },
    })
    expect(events.at(-1)?.message).toBe('waiting for the service to check the TXT record')
  })

  it('the time of the workflow includes what the service asks to wait before it verifies', async () => {
    const { end, asked } = await run(
      { verified: jsonResponse(503, {}, { 'retry-after': '50' }) },
      { timeoutMs: 40_000 },
    )
    expect(asked).toEqual(['POST /domains/claim', 'POST /domains/d1/claim/verify'])
    expect(end).toMatchObject({
      error: { code: 'claim_in_flight', exit: Exit.notYet, retryAfterMs: 50_000 },
      missing: { step: 'verification' },
    })
  })

  it('the workflow survives a failure of the service when it asks to verify', async () => {
    const { steps, asked } = await run({
      verified: jsonResponse(500, {}),
      states: [claim(), claim({ status: 'completed' })],
    })
    expect(steps).toEqual(['created', 'record', 'warning', 'verification', 'completed'])
    expect(asked.filter((request) => request === 'POST /domains/claim')).toHaveLength(1)
  })

  it('the workflow fails without a placeholder domain id', async () => {
    expect((await run({ created: claim({ domain_id: null }) })).end).toMatchObject({
      code: 'domain_id_missing',
    })
  })
})

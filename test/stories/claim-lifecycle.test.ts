import { describe, expect, test } from 'vitest'
import { jsonLines } from '../claims/world.ts'
import { needs } from '../requirements.ts'
import { type Running, type ServedWorld, shareSandbox } from './built-program.ts'

const serve = shareSandbox()

function keyed(): ServedWorld {
  const world = serve()
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  return world
}

const claimsOf = async (world: ServedWorld, name: string) => {
  const { claims } = (await world.control('GET', 'state')) as { claims: { name: string; status: string }[] }
  return claims.filter((claim) => claim.name === name)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 30))
}

describe.runIf(needs('posix'))('claim', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGKILL', 'SIGKILL'],
  ] as const)(
    'mailclaim claim, stopped by %s at four different events and started again, completes the same claim',
    async (signal, code) => {
      const world = keyed()
      // Block the claim, so that it can't complete before the signal arrives in the last step.
      const domain = `blocked.${signal.toLowerCase()}.example`
      const start = () => world.start(['claim', domain, '--format', 'jsonl', '--through-blocked'])
      const stop = async (running: Running, station: RegExp) => {
        await running.seen(station)
        running.child.kill(signal)
        const ended = await running.ended
        expect(ended.code, ended.stderr).toBe(code)
        return jsonLines(ended.stdout)
      }

      const created = await stop(start(), /"event":"created"/)
      expect(created[0]).toMatchObject({ event: 'created', claim: { status: 'pending' } })
      const waiting = await stop(start(), /"event":"waiting"/)
      expect(waiting.map(({ event }) => event)).toEqual(['created', 'record', 'waiting'])
      await world.control('POST', `claims/${domain}/publish`, {})
      const asked = await stop(start(), /"event":"verification"/)
      expect(asked.map(({ event }) => event).slice(0, 4)).toEqual([
        'created',
        'record',
        'dns',
        'verification',
      ])
      await until(async () => (await claimsOf(world, domain))[0]?.status === 'blocked')
      const blocked = await stop(start(), /"event":"status"/)
      expect(blocked.map(({ event }) => event)).toEqual(['created', 'record', 'status'])

      const last = start()
      await last.seen(/"event":"status"/)
      await world.control('POST', `claims/${domain}/outcome`, { status: 'verified' })
      const ended = await last.ended
      expect(ended.code, ended.stderr).toBe(0)
      expect(jsonLines(ended.stdout).at(-1)).toMatchObject({
        event: 'done',
        claim: { status: 'completed' },
      })
      expect(await claimsOf(world, domain)).toHaveLength(1)
      for (const { at } of jsonLines(ended.stdout)) expect(Number.isNaN(Date.parse(at))).toBe(false)
    },
  )
})

import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { needs } from '../requirements.ts'
import { createServedWorld, PROGRAM } from './built-program.ts'

describe.runIf(needs('faketime'))('a wall clock that is moved, in a real process', () => {
  it.each(['+5h', '-5h', '+70 days'])(
    'if the wall clock is moved by %s, the access token stays in use and nothing is renewed',
    async (span) => {
      const world = await createServedWorld()
      expect(await world.login()).toMatchObject({ code: 0 })
      const token = (await world.run(['auth', 'token'])).stdout
      const options = { env: world.env, encoding: 'utf8' } as const
      const moved = execFileSync(
        'faketime',
        ['-f', span, process.execPath, PROGRAM, 'auth', 'token'],
        options,
      )
      expect(moved).toBe(token)
      expect(await world.control('GET', 'state')).toMatchObject({ refreshes: 0, reuse_detections: 0 })
    },
  )
})

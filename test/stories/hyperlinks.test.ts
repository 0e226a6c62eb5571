import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { shareSandbox } from './built-program.ts'

const LINK = /\x1b\]8;id=mailclaim;(http:\/\/127[!-~]+)\x1b\\(http:\S+?)\x1b\]8;;\x1b\\/

describe.runIf(needs('script'))('the address of a sign-in', () => {
  const serve = shareSandbox(['--auto-approve'])
  const words = ['login', '--store', 'file', '--no-browser']

  test('is a hyperlink in a terminal that has them, with color or without', async () => {
    const running = serve().start(words, { terminal: true, env: { FORCE_HYPERLINK: '1', NO_COLOR: '1' } })
    const [, target = '', shown] = await running.seen(LINK)
    expect(shown).toBe(target)
    await fetch(target)
    expect((await running.ended).code).toBe(0)
  })

  test.each([
    ['in a terminal that may not have them', { terminal: true, env: {} }],
    ['in CI', { terminal: true, env: { FORCE_HYPERLINK: '1', CI: 'true' } }],
    ['in a file', { env: { FORCE_HYPERLINK: '1' } }],
  ])('is plain text %s', async (_where, options) => {
    const running = serve().start(words, options)
    const [address] = await running.seen(/http:\/\/\S+\/oauth\/authorize\?\S+/)
    await fetch(address)
    const { stdout, stderr } = await running.ended
    expect(stdout + stderr).not.toContain('\x1b]8')
  })
})

import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createVirtualClock } from '../../dns/virtual-clock.ts'
import { createFakeClock, createFakeContext } from '../../fake-context.ts'
import { createFakeService } from '../fake-service.ts'

/** Runs a command about the claim of example.com, whose zone has this name server. */
async function type(line: string, nameserver: string) {
  const clock = createVirtualClock()
  const context = createFakeContext({
    clock: { ...createFakeClock(), ...clock },
    dns: createFakeDns(
      smallWorld(() => [], nameserver),
      clock,
    ),
    environment: {
      settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' },
      apiKey: 'key',
      noColor: true,
      term: 'dumb',
    },
    respond: createFakeService(),
    terminal: { columns: 200 },
  })
  await run(line.split(' '), context)
  return `${context.stdout.text}${context.stderr.text}`
}

const CLAIM = 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'
const COMMANDS = [
  'claims create example.com',
  `claims record ${CLAIM}`,
  'claims check example.com --value prefix=token',
  'claim example.com --timeout 1',
]

describe.each(COMMANDS)('mailclaim %s', (line) => {
  test('names the DNS host, with the address of its page', async () => {
    const text = await type(line, 'ns1.hover.com')
    expect(text).toMatch(/Hover/)
    expect(text).toContain('https://www.hover.com/control_panel/domain/example.com/dns')
  })

  test('says nothing of a DNS host that it does not know', async () => {
    const text = await type(line, 'ns.example.com')
    expect(text).toContain('example.com')
    expect(text).not.toMatch(/DNS host|https:\/\/www|undefined/)
  })
})

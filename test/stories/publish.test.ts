import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startUpdatableServer, type UpdatableServer } from '../dns/servers/updatable-server.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { createWorld, program, type World } from './built-program.ts'

const SPF = 'v=spf1 include:_spf.example.net ~all'

describe.runIf(needs('knotd', 'nsupdate', 'posix'))('with a real name server', () => {
  let knot: UpdatableServer
  beforeAll(async () => {
    knot = await startUpdatableServer({ 'shop.example': [`@ TXT "${SPF}"`] })
    return () => knot.stop()
  })

  async function createPublisher(): Promise<World> {
    const sandbox = await sandboxForTest({
      verifierPort: knot.port,
      checkSeconds: 0.05,
      transferSeconds: 0.05,
    })
    const world = createWorld()
    Object.assign(world.env, {
      MAILCLAIM_BASE_URL: sandbox.baseUrl,
      MAILCLAIM_API_KEY: sandbox.apiKey,
      MAILCLAIM_RESOLVER: `127.0.0.1:${knot.port}`,
      MAILCLAIM_AUTHORITATIVE_PORT: String(knot.port),
    })
    return world
  }

  test('try', async () => {
    const world = await createPublisher()
    program(
      world.home,
      'publish.sh',
      `set -eu
case $MAILCLAIM_RECORD_ACTION in publish) verb=add ;; *) verb=delete ;; esac
env | grep MAILCLAIM
nsupdate -k ${knot.keyFile} <<END
server 127.0.0.1 ${knot.port}
zone $MAILCLAIM_RECORD_ZONE.
update $verb $MAILCLAIM_RECORD_NAME. $MAILCLAIM_RECORD_TTL TXT $MAILCLAIM_RECORD_RDATA
send
END`,
    )
    const ended = await world.run([
      'claim',
      'shop.example',
      '--publish',
      './publish.sh',
      '--unpublish',
      './publish.sh',
      '--timeout',
      '60',
    ])
    console.log(ended, await knot.txt('shop.example'))
    expect(ended.code).toBe(0)
  })
})

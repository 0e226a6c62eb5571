import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startUpdatableServer } from './dns/servers/updatable-server.ts'
import { needs } from './requirements.ts'
import { createWorld, writeScript } from './stories/built-program.ts'

const page = readFileSync(new URL('../docs/publish.md', import.meta.url), 'utf8')

/** Returns the recipe in docs/publish.md below the heading that begins with this text. */
function recipe(heading: string): string {
  const [, section = ''] = page.split(`\n### ${heading}`)
  return (
    /```sh [^\n]*\n(#!\/bin\/sh\n[\s\S]*?)\n```/.exec(section)?.[1] ?? expect.fail(`no recipe for ${heading}`)
  )
}

const VALUE = `prefix=$(touch hacked) "x" 'y' ;z`
const RDATA = `"prefix=$(touch hacked) \\"x\\" 'y' ;z"`
const SET = `"v=spf1 -all"\n"one, two"\n${RDATA}`
const RECORD = {
  MAILCLAIM_RECORD_NAME: '_mc.example.com',
  MAILCLAIM_RECORD_HOST: '_mc',
  MAILCLAIM_RECORD_ZONE: 'example.com',
  MAILCLAIM_RECORD_TYPE: 'TXT',
  MAILCLAIM_RECORD_VALUE: VALUE,
  MAILCLAIM_RECORD_RDATA: RDATA,
  MAILCLAIM_RECORD_TTL: '300',
  MAILCLAIM_RECORD_OLD_VALUES: 'v=spf1 -all\none, two',
  MAILCLAIM_RECORD_SET: SET,
}

/** Runs a recipe with a fake of its tool, which records the arguments and prints `answer` as JSON. */
async function run(tool: string, answer: unknown = null, variables: Record<string, string> = {}) {
  const world = createWorld()
  writeScript(
    world.home,
    tool,
    `for word; do printf '%s\\0' "$word"; done >> calls; printf '\\1' >> calls; printf '%s' "$ANSWER"; exit "$STATUS"`,
  )
  writeFileSync(join(world.home, 'publish.sh'), recipe(tool), { mode: 0o755 })
  Object.assign(world.env, RECORD, {
    PATH: `${world.home}:${world.env['PATH']}`,
    ANSWER: JSON.stringify(answer),
    STATUS: '0',
    AWS_HOSTED_ZONE_ID: 'Z1',
    GCLOUD_ZONE: 'zone-1',
    AZURE_RESOURCE_GROUP: 'dns group',
    ...variables,
  })
  const ended = await world.script('./publish.sh')
  expect(existsSync(join(world.home, 'hacked'))).toBe(false)
  const calls = existsSync(join(world.home, 'calls')) ? readFileSync(join(world.home, 'calls'), 'utf8') : ''
  return {
    ...ended,
    calls: calls
      .split('\u0001')
      .slice(0, -1)
      .map((call) => call.split('\0').slice(0, -1)),
  }
}

describe.runIf(needs('posix', 'bash', 'jq'))('the publishing recipes in the documents', () => {
  test('the publish recipe for aws sends the complete TXT RRset, but nothing if a value has non-ASCII bytes', async () => {
    const { calls, code, stderr } = await run('aws')
    expect(code, stderr).toBe(0)
    const place = ['--hosted-zone-id', 'Z1', '--change-batch']
    expect(calls[0]?.slice(0, -1)).toEqual(['route53', 'change-resource-record-sets', ...place])
    expect(JSON.parse(calls[0]?.at(-1) ?? '').Changes).toEqual([
      {
        Action: 'UPSERT',
        ResourceRecordSet: {
          Name: '_mc.example.com.',
          Type: 'TXT',
          TTL: 300,
          ResourceRecords: SET.split('\n').map((value) => ({ Value: value })),
        },
      },
    ])
    const odd = await run('aws', null, { MAILCLAIM_RECORD_SET: '"gr\\195\\188n"' })
    expect(odd).toMatchObject({ calls: [], code: 1 })
  })

  test.each([
    ['with', 'update', {}, SET],
    ['without', 'create', { MAILCLAIM_RECORD_OLD_VALUES: '', MAILCLAIM_RECORD_SET: RDATA }, RDATA],
  ] as const)('for a name %s TXT records, the gcloud recipe runs %s', async (_with, verb, variables, set) => {
    const { calls } = await run('gcloud', null, variables)
    const options = ['--zone=zone-1', '--type=TXT', '--ttl=300', `--rrdatas=^\n^${set}`]
    expect(calls).toEqual([['dns', 'record-sets', verb, '_mc.example.com.', ...options]])
  })

  test('the publish recipe for az adds the value to the TXT RRset', async () => {
    const place = ['--resource-group', 'dns group', '--zone-name=example.com', '--record-set-name=_mc']
    expect((await run('az')).calls).toEqual([
      ['network', 'dns', 'record-set', 'txt', 'add-record', ...place, `--value=${VALUE}`],
    ])
  })

  const place = '--zone example.com --name _mc.example.com --type TXT'
  const flarectl = [...place.split(' '), `--content=${RDATA}`]
  const doctl = ['--record-name', '_mc', `--record-data=${VALUE}`, '--record-ttl', '300']
  test.each([
    ['flarectl', 'adds', [{ Content: '"v=spf1 -all"' }], ['dns', 'create', ...flarectl, '--ttl', '1']],
    ['flarectl', 'does not add', [{ Content: RDATA }], undefined],
    [
      'doctl',
      'adds',
      [{ type: 'TXT', name: '@', data: VALUE }],
      ['compute', 'domain', 'records', 'create', 'example.com', '--record-type', 'TXT', ...doctl],
    ],
    ['doctl', 'does not add', [{ type: 'TXT', name: '_mc', data: VALUE }], undefined],
  ])('the publish recipe for %s %s the record if the zone contains %j', async (tool, _does, found, call) => {
    const { calls, code, stderr } = await run(tool, found)
    expect(code, stderr).toBe(0)
    expect(calls.slice(1)).toEqual(call === undefined ? [] : [call])
  })

  test('the publish recipe for hcloud adds the record', async () => {
    expect((await run('hcloud')).calls).toEqual([
      ['zone', 'add-records', '--record', RDATA, 'example.com', '_mc', 'TXT'],
    ])
  })

  test.each(['aws', 'gcloud', 'az', 'flarectl', 'doctl', 'hcloud'])(
    "the publish recipe for %s exits with the tool's exit code",
    async (tool) => {
      expect((await run(tool, null, { STATUS: '4' })).code).toBe(4)
    },
  )
})

test.runIf(needs('knotd', 'nsupdate', 'posix'))(
  'the publish recipe for nsupdate adds the value at a Knot server, and keeps the other values',
  async () => {
    const knot = await startUpdatableServer({ 'example.com': ['_mc TXT "v=spf1 -all"'] })
    try {
      const world = createWorld()
      writeFileSync(join(world.home, 'publish.sh'), recipe('nsupdate'), { mode: 0o755 })
      const server = { NSUPDATE_KEY: knot.keyFile, NSUPDATE_SERVER: `127.0.0.1 ${knot.port}` }
      const { code, stderr } = await world.script('./publish.sh', { env: { ...RECORD, ...server } })
      expect(code, stderr).toBe(0)
      expect(await knot.txt('_mc.example.com')).toEqual([VALUE, 'v=spf1 -all'])
    } finally {
      await knot.stop()
    }
  },
)

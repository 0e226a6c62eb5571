import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createWorld, type Ended, type ServedWorld, shareSandbox } from './built-program.ts'

const serve = shareSandbox()

function keyed(): ServedWorld {
  const world = serve()
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  return world
}

/** One line that says what is wrong, at most one more with what to do, and nothing where data would be. */
function expectOneError(ended: Ended, code: number, message: RegExp): void {
  expect(ended.code, ended.stderr).toBe(code)
  expect(ended.stdout).toBe('')
  expect(ended.stderr).toMatch(/^error: [^\n]+\n(hint: [^\n]+\n)?$/)
  expect(ended.stderr).toMatch(message)
}

describe('a mistake on the command line is one clear error, and nothing is sent', () => {
  const ID = '7b1f0f1e-0000-4000-8000-000000000001'
  test.each<[exit: number, message: RegExp, line: string]>([
    [2, /--after and --before can't be used together/, `imports list --after ${ID} --before ${ID}`],
    [2, /--after and --before can't be used together/, `grants list --after ${ID} --before ${ID}`],
    [2, /--all and --limit can't be used together/, 'imports list --all --limit 5'],
    [2, /--limit: "0" is not a whole number/, 'imports list --limit 0'],
    [2, /--limit/, 'imports list --limit -1'],
    [2, /--limit: "-1" is not/, 'imports list --limit=-1'],
    [2, /--limit: "1\.5" is not/, 'grants list --limit 1.5'],
    [2, /--limit: "10abc" is not/, 'imports list --limit 10abc'],
    [2, /--limit: "1e2" is not/, 'imports list --limit 1e2'],
    [2, /--limit/, 'imports list --limit'],
    [2, /--after is empty/, 'imports list --after='],
    [2, /--status: .*queued, in_progress, completed, failed/, 'imports list --status done'],
    [2, /--state: .*active, revoked/, 'grants list --state gone'],
    [2, /--format: "yaml" is not one of/, 'imports list --format yaml'],
    [2, /is not one of[\s\S]*did you mean --format markdown\?/, 'claims check --format md'],
    [2, /is not one of[\s\S]*did you mean --format json\?/, 'imports list --format JSON'],
    [2, /is not one of[\s\S]*did you mean --provider route53\?/, 'claims record d --provider route35'],
    [2, /is not a setting[\s\S]*did you mean base-url\?/, 'config set basurl x'],
    [2, /is not a setting[\s\S]*did you mean http-timeout\?/, 'config get http_timeuot'],
    [2, /is not a setting[\s\S]*the settings are base-url,/, 'config set color x'],
    [2, /unknown option '--html'[\s\S]*did you mean --format html\?/, 'claims check --html'],
    [2, /unknown option '--csv'[\s\S]*did you mean --format csv\?/, 'imports list --csv'],
    [2, /"a=b" is not a domain[\s\S]*did you mean --value a=b\?/, 'claims check example.com a=b'],
    [2, /is not a domain[\s\S]*did you mean --with \.\/p\.sh\?/, 'claims publish example.com ./p.sh'],
    [2, /is not a domain[\s\S]*did you mean --publish \.\/p\.sh\?/, 'claim example.com ./p.sh'],
    [2, /--fields/, 'imports list --fields id,,status'],
    [2, /--region: .*us-east-1/, 'claims create example.com --region mars-1'],
    [
      2,
      /--custom-return-path: "a b" is not a DNS label/,
      'claims create example.com --custom-return-path=a%20b',
    ],
    [2, /name/, 'claims create localhost'],
    [2, /./, 'claims create exa%20mple.com'],
    [2, /./, 'claims create -- -bad-.example.com'],
    [2, /./, 'claims create a..example.com'],
    [2, /./, `claims create ${'a'.repeat(64)}.example.com`],
    [2, /./, `claims create ${'abcdefg.'.repeat(32)}example.com`],
    [2, /./, 'claims create https://example.com/path'],
    [2, /./, 'claims create me@example.com'],
    [2, /./, 'claims create 192.0.2.1'],
    [2, /missing/, 'claims create'],
    [2, /too many arguments/, 'claims get one.example two.example'],
    [2, /unknown option/, 'claims create one.example --regoin eu-west-1'],
    [2, /unknown command/, 'claim-all'],
    [2, /--name needs --value/, 'claims check --name example.com'],
    [2, /--interval/, 'claims watch example.com --interval soon'],
    [2, /--http-timeout/, 'imports list --http-timeout 0'],
    [2, /--resolver/, 'claims check --name example.com --value a=b --resolver nowhere'],
    [2, /--resolver/, 'claims check --name example.com --value a=b --resolver 127.0.0.1:99999'],
    [5, /no claim for unknown\.example is known/, 'claims get unknown.example'],
    [5, /no claim for unknown\.example is known/, 'claims watch unknown.example'],
    [2, /is a web address, not a domain name/, 'claims get a/../b'],
  ])('exit %i with the message %s: mailclaim %s', async (code, message, line) => {
    const world = createWorld()
    // A service that would be reached is not there at all: whatever is sent fails with exit 7.
    Object.assign(world.env, {
      MAILCLAIM_BASE_URL: 'http://127.0.0.1:9',
      MAILCLAIM_API_KEY: 'key_0123456789',
    })
    const words = line.split(' ').map((word) => word.replaceAll('%20', ' '))
    expectOneError(await world.run(words), code, message)
    const json = await world.run([...words.slice(0, 2), '--json', ...words.slice(2)])
    if (line.includes('--format')) return
    expect(json.code).toBe(code)
    expect(json.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { exit: code, message: expect.any(String) } })
  })
})

describe('the address of the service', () => {
  test.each<[exit: number, message: RegExp, env: Record<string, string>]>([
    [
      3,
      /the address of the service is not configured\nhint: .*mailclaim login --base-url URL --client-id ID/,
      { MAILCLAIM_BASE_URL: '' },
    ],
    [3, /is not encrypted/, { MAILCLAIM_BASE_URL: 'http://mail.example' }],
    [3, /is not encrypted/, { MAILCLAIM_BASE_URL: 'http://127.0.0.1.mail.example' }],
    [3, /base URL.*\nhint: did you mean https:\/\/mail\.example\?/, { MAILCLAIM_BASE_URL: 'mail.example' }],
    [3, /base URL/, { MAILCLAIM_BASE_URL: 'ftp://mail.example' }],
    [3, /base URL/, { MAILCLAIM_BASE_URL: 'https://user:secret@mail.example' }],
    [4, /not signed in/, { MAILCLAIM_API_KEY: '' }],
    [7, /refused|cannot be reached/, { MAILCLAIM_BASE_URL: 'http://127.0.0.1:9' }],
  ])('an unusable address of the service is exit %i with the message %s', async (code, message, env) => {
    const world = keyed()
    Object.assign(world.env, env)
    for (const line of ['imports list', 'grants list', 'claims create example.com']) {
      const ended = await world.run(line.split(' '))
      expectOneError(ended, code, message)
      expect(ended.stderr).not.toContain('secret@')
    }
  })

  test('a login without a client id fails before a browser is opened', async () => {
    const world = serve()
    expectOneError(
      await world.run(['login', '--no-browser', '--store', 'file'], { env: { MAILCLAIM_CLIENT_ID: '' } }),
      3,
      /client id is not configured/,
    )
  })

  test('not found and not allowed have their own exit codes', async () => {
    const world = keyed()
    const id = '00000000-0000-4000-8000-000000000000'
    expectOneError(await world.run(['imports', 'get', id]), 5, /not found/)
    expectOneError(await world.run(['imports', 'watch', id]), 5, /not found/)
    expectOneError(await world.run(['claims', 'get', id]), 5, /not found/)
    expectOneError(await world.run(['claims', 'verify', id]), 5, /not found/)
    expectOneError(await world.run(['claims', 'create', 'own.example']), 6, /already belongs to your team/)
    expectOneError(await world.run(['imports', 'list', '--after', id]), 6, /error/)
    world.env['MAILCLAIM_API_KEY'] = 'sandbox_key_of_somebody_else'
    expectOneError(await world.run(['imports', 'list']), 4, /MAILCLAIM_API_KEY|API key/)
  })
})

describe('an unexpected response of the service', () => {
  let respond: (response: ServerResponse, path: string) => void = () => {}
  const server = createServer((request, response) => respond(response, request.url ?? ''))
  beforeAll(() => new Promise<void>((done) => server.listen(0, '127.0.0.1', done)))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  function answering(answer: typeof respond) {
    respond = answer
    const world = createWorld()
    Object.assign(world.env, {
      MAILCLAIM_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      MAILCLAIM_API_KEY: 'key_0123456789',
    })
    onTestFinished(() => {
      respond = () => {}
    })
    return world
  }

  const page =
    '<html><head><title>502</title><style>b{}</style></head><body><h1>Bad \u001b[31mGateway</h1></body></html>'
  test.each<[what: string, exit: number, message: RegExp, answer: (response: ServerResponse) => void]>([
    ['200 that is not JSON', 7, /not JSON: hello/, (response) => void response.end('hello')],
    [
      '200 with HTML',
      7,
      /not JSON: 502 Bad/,
      (response) => void response.setHeader('content-type', 'text/html').end(page),
    ],
    ['an empty 200', 7, /it is empty/, (response) => void response.end()],
    ['a JSON array', 7, /expected a JSON object, got an array/, (response) => void response.end('[]')],
    ['null', 7, /expected a JSON object, got null/, (response) => void response.end('null')],
    [
      'HTML 502',
      7,
      /the service failed \(502\): 502 Bad/,
      (response) => void response.writeHead(502).end(page),
    ],
    ['an empty 404', 5, /not found/, (response) => void response.writeHead(404).end()],
    ['an empty 400', 6, /refused the request \(400\)/, (response) => void response.writeHead(400).end()],
    [
      'a redirect',
      7,
      /redirected \(302\) to https:\/\/evil\.example/,
      (response) => void response.writeHead(302, { location: 'https://evil.example/' }).end(),
    ],
    ['a connection that is cut', 7, /./, (response) => void response.destroy()],
  ])('a service that answers with %s is exit %i', async (_what, code, message, answer) => {
    const world = answering(answer)
    const ended = await world.run(['imports', 'list', '--http-timeout', '2'])
    expectOneError(ended, code, message)
    expect(ended.stderr).not.toContain('\u001b')
    const created = await world.run(['claims', 'create', 'example.com', '--http-timeout', '2'])
    expectOneError(created, code, message)
  })

  const CLAIM = {
    object: 'domain_claim',
    id: 'c1',
    name: 'example.com',
    status: 'pending',
    domain_id: 'd1',
    region: null,
    record: { type: 'TXT', name: 'example.com', value: 'a=b', ttl: 'Auto', priority: 7 },
    blocked_reason: null,
    failure_reason: null,
    created_at: '2026-11-20 12:00:00.1+00',
    expires_at: '2099-11-27 12:00:00.1+00',
    owner: { team: 'Zoë \u202e\u001b]0;x\u0007', since: 2020 },
  }
  const ITEM = {
    object: 'contact_import',
    id: 'i1',
    status: 'paused',
    counts: { total: 3, bounced: 1 },
    zeta: [1, { deep: true }],
  }

  test('fields that the service adds are printed unchanged and in their order', async () => {
    const envelope = { object: 'list', has_more: false, data: [ITEM], total_count: 1 }
    const world = answering(
      (response, path) =>
        void response.end(
          JSON.stringify(path.startsWith('/domains') ? CLAIM : path.includes('/i1') ? ITEM : envelope),
        ),
    )
    const text = async (line: string) => {
      const ended = await world.run(line.split(' '))
      expect(ended.code, ended.stderr).toBe(0)
      // Whatever the service sends, no byte of it can steer a terminal.
      expect(ended.stdout.replaceAll('\r\n', '\n')).not.toMatch(
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/,
      )
      return ended.stdout
    }
    const same = (json: string, value: unknown) =>
      expect(JSON.stringify(JSON.parse(json))).toBe(JSON.stringify(value))
    same(await text('claims create example.com --json'), CLAIM)
    same(await text('claims get d1 --json'), CLAIM)
    same(await text('claims get example.com --format jsonl'), CLAIM)
    same(await text('claims list --format jsonl'), CLAIM)
    same(await text('claims record d1 --json'), CLAIM.record)
    same(await text('imports get i1 --json'), ITEM)
    same(await text('imports list --format jsonl'), ITEM)
    expect(JSON.parse(await text('imports list --json'))).toMatchObject(envelope)
    expect(await text('claims get d1 --fields owner.since,name')).toBe(
      'owner.since\tname\n2020\texample.com\n',
    )
    expect(await text('claims get d1 --format csv --fields owner.team')).toContain('Zo')
    expect(await text('claims get d1 --format table')).toContain('Owner')
  })
})

describe('what is piped', () => {
  test('piped output has no escape sequence, whatever asks for color; --json parses; TSV has a header and full values', async () => {
    const world = keyed()
    await world.run(['claims', 'create', 'piped.example'])
    const id =
      (await world.run(['imports', 'list', '--limit', '1', '--fields', 'id'])).stdout.split('\n')[1] ?? ''
    for (const line of [
      'grants list',
      'imports list --limit 3',
      `imports get ${id}`,
      'claims list',
      'claims list --refresh',
      'claims get piped.example',
      'claims create piped.example',
      'claims record piped.example',
      'claims check piped.example',
      'auth list',
      'auth status',
      'config list',
    ]) {
      const words = line.split(' ')
      const [plain, table, json, lines] = await Promise.all([
        world.run(words, { env: { TERM: 'xterm-256color', COLORTERM: 'truecolor' } }),
        world.run([...words, '--format', 'table']),
        world.run([...words, '--json']),
        world.run([...words, '--format', 'jsonl']),
      ])
      for (const { stdout, stderr } of [plain, table, json, lines])
        expect(stdout + stderr, line).not.toContain('\u001b')
      const [header = '', ...records] = plain.stdout.slice(0, -1).split('\n')
      expect(records.length, line).toBeGreaterThan(0)
      for (const record of records) expect(record.split('\t'), line).toHaveLength(header.split('\t').length)
      expect(() => JSON.parse(json.stdout), line).not.toThrow()
      for (const each of lines.stdout.trimEnd().split('\n'))
        expect(() => JSON.parse(each), line).not.toThrow()
    }
  })
})

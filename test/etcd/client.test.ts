import { describe, expect, it } from 'vitest'
import { type Context, type HttpRequest, TransportError } from '../../src/context.ts'
import { EtcdClient, encode, Unanswered } from '../../src/credentials/etcd/client.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

/** A member that gives these bodies with status 200, the last one again and again. */
function clientOf(...bodies: string[]) {
  const { clock, random, interrupts } = createFakeContext()
  let asked = 0
  const http = {
    send: async () => ({
      status: 200,
      headers: {},
      body: (async function* () {
        yield Buffer.from(bodies[Math.min(asked++, bodies.length - 1)] ?? '')
      })(),
    }),
  } as unknown as Context['http']
  const access = { members: [new URL('https://etcd.example')], tls: {}, user: undefined }
  return new EtcdClient({ clock, random, interrupts, http }, access)
}

const header = { cluster_id: '14841639068965178418', revision: '7' }
const base = { cluster: header.cluster_id, revision: '6', base64: 'eA==' }
const EMPTY = JSON.stringify({ header })

describe('an answer with status 200', () => {
  it.each(['', '<html>Welcome</html>', '{}', '[]', '{"header":{}}', JSON.stringify({ header, count: '1' })])(
    'that is not from etcd does not say that the key is gone: %s',
    async (body) => {
      await expect(clientOf(body).read('/a', () => false)).rejects.toMatchObject({
        code: 'store_unavailable',
      })
      await expect(clientOf(body).replace('/a', base, 'x')).rejects.toMatchObject({
        code: 'store_unavailable',
      })
    },
  )

  it('of a failed transaction has to say what is at the key', async () => {
    await expect(clientOf(EMPTY).replace('/a', base, 'x')).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    const failed = JSON.stringify({ header, responses: [{ response_range: { header } }] })
    expect(await clientOf(failed).replace('/a', base, 'x')).toMatchObject({
      succeeded: false,
      found: undefined,
    })
  })

  it('of etcd is used after one that is not', async () => {
    expect(await clientOf('<html>', EMPTY).read('/a', () => false)).toMatchObject({
      revision: '7',
      found: undefined,
    })
  })
})

describe('a member that', () => {
  const told = (send: () => Promise<object>) => {
    const { clock, random, interrupts } = createFakeContext()
    const http = { send } as unknown as Context['http']
    const access = { members: [new URL('https://a.example')], tls: {}, user: undefined }
    return new EtcdClient({ clock, random, interrupts, http }, access)
  }

  it('is out of space is not said to be unreachable, and not asked again', async () => {
    const message = 'etcdserver: mvcc: database space exceeded'
    let asked = 0
    const client = told(async () => {
      if (++asked === 1) return jsonResponse(200, { header })
      return jsonResponse(429, { error: message, message, code: 8 })
    })
    await client.read('/a', () => false)
    await expect(client.replace('/a', base, 'x')).rejects.toMatchObject({
      code: 'store_unavailable',
      exit: 7,
      message: 'etcd refused to write: database space exceeded (a.example)',
      hint: expect.stringMatching(/compact .* defrag .* alarm disarm/),
    })
    expect(asked).toBe(2)
  })

  it('has said why it is of no use is not overruled by a try that was cut short', async () => {
    const { clock, random, interrupts } = createFakeContext()
    const send = async ({ url, timeoutMs }: HttpRequest) => {
      clock.advance(url.hostname === 'a.example' ? 10 : timeoutMs)
      if (url.hostname === 'a.example')
        throw new TransportError('certificate', 'no', 'the certificate of the service is not trusted')
      throw new TransportError('timeout', 'maybe', `no complete response within ${timeoutMs} ms`)
    }
    const members = [new URL('https://a.example'), new URL('https://b.example')]
    const http = { send } as unknown as Context['http']
    const client = new EtcdClient({ clock, random, interrupts, http }, { members, tls: {}, user: undefined })
    await expect(client.read('/a', () => false)).rejects.toMatchObject({
      message: expect.stringMatching(/\(a\.example: the certificate of the member is not trusted\)$/),
    })
  })

  it('has an expired certificate is named, not taken for the service, and not asked again', async () => {
    let asked = 0
    const client = told(async () => {
      asked++
      throw new TransportError('certificate', 'no', 'the certificate of the service has expired')
    })
    await expect(client.read('/a', () => false)).rejects.toMatchObject({
      code: 'store_not_configured',
      exit: 3,
      hint: expect.stringContaining('check --store-ca and --store-cert'),
      message: expect.stringContaining('(a.example: the certificate of the member has expired)'),
    })
    expect(asked).toBe(1)
    expect(await client.status()).toMatchObject([
      { lacksTrust: true, problem: 'the certificate of the member has expired' },
    ])
  })

  it('does not accept the client certificate is asked again as long as another one may come back', async () => {
    const { clock, random, interrupts } = createFakeContext()
    let asked = 0
    const send = async ({ url }: HttpRequest) => {
      if (url.hostname === 'a.example')
        throw new TransportError('certificate', 'maybe', 'the service asks for a client certificate')
      if (++asked < 3) throw new TransportError('connect', 'no', 'connection refused')
      return jsonResponse(200, { header })
    }
    const members = [new URL('https://a.example'), new URL('https://b.example')]
    const http = { send } as unknown as Context['http']
    const client = new EtcdClient({ clock, random, interrupts, http }, { members, tls: {}, user: undefined })
    expect(await client.read('/a', () => false)).toMatchObject({ revision: '7', found: undefined })
  })

  it('does not accept the client certificate once a write was sent leaves the outcome of the write open', async () => {
    let asked = 0
    const client = told(async () => {
      if (++asked === 1) return jsonResponse(200, { header })
      if (asked === 2) throw new TransportError('reset', 'maybe', 'the connection was closed')
      throw new TransportError('certificate', 'maybe', 'the service asks for a client certificate')
    })
    await client.read('/a', () => false)
    await expect(client.replace('/a', base, 'x')).rejects.toBeInstanceOf(Unanswered)
  })
})

describe('a value', () => {
  function clientWith(value: string) {
    const sizes: number[] = []
    const kept = new Map([[encode('/a'), { value: encode(value), revision: 1, version: 1 }]])
    const etcd = createMemoryEtcd('1', { kept, revision: 1 })
    const { clock, random, interrupts } = createFakeContext()
    const send = async (request: HttpRequest) => {
      sizes.push((request.body ?? '').length)
      return etcd(request)
    }
    const http = { send } as unknown as Context['http']
    const access = { members: [new URL('https://a.example')], tls: {}, user: undefined }
    return { client: new EtcdClient({ clock, random, interrupts, http }, access), sizes }
  }
  const baseOf = ({ cluster, found }: Awaited<ReturnType<EtcdClient['read']>>) => ({
    cluster,
    revision: found?.revision ?? '0',
    base64: found?.base64,
  })

  it('of any size that etcd takes can be read, and replaced by a transaction that etcd takes', async () => {
    const { client, sizes } = clientWith('x'.repeat(1.5 * 1024 * 1024))
    const found = await client.read('/a', () => false)
    expect(await client.replace('/a', baseOf(found), 'new')).toMatchObject({ succeeded: true })
    expect(Math.max(...sizes)).toBeLessThan(1024 * 1024)
  })

  it('that is larger is not taken for a lack of majority', async () => {
    const { client } = clientWith('x'.repeat(4 * 1024 * 1024))
    await expect(client.read('/a', () => false)).rejects.toMatchObject({
      code: 'store_value_unusable',
      message: 'what is in etcd is too large: more than 4096 KiB',
    })
  })

  it('that could be written, but not read or replaced again, is not written', async () => {
    const { client, sizes } = clientWith('x')
    const found = await client.read('/a', () => false)
    const sent = sizes.length
    await expect(client.replace('/a', baseOf(found), 'x'.repeat(1024 * 1024))).rejects.toMatchObject({
      code: 'store_value_unusable',
      message: 'the session is too large: more than 512 KiB',
    })
    expect(sizes).toHaveLength(sent)
  })
})

describe('a write', () => {
  it('that was sent without an answer may be applied, whatever the next answer is', async () => {
    const { clock, random, interrupts } = createFakeContext()
    const answers = [
      () => jsonResponse(200, { header }),
      () => {
        throw new TransportError('reset', 'maybe', 'closed')
      },
      () => jsonResponse(429, { message: 'etcdserver: mvcc: database space exceeded', code: 8 }),
    ]
    const http = { send: async () => answers.shift()?.() } as unknown as Context['http']
    const access = { members: [new URL('https://a.example')], tls: {}, user: undefined }
    const client = new EtcdClient({ clock, random, interrupts, http }, access)
    await client.read('/a', () => false)
    await expect(client.replace('/a', base, 'x')).rejects.toBeInstanceOf(Unanswered)
  })
})

describe('two clusters behind the addresses', () => {
  /** A client of one address or two, and what each cluster has, which counts as far in both. */
  async function clusters(hosts: readonly string[], isWritten: boolean) {
    const members = { x: createMemoryEtcd('11'), y: createMemoryEtcd('22') }
    const { clock, random, interrupts } = createFakeContext()
    const clientOfHosts = (
      answer: (request: HttpRequest) => ReturnType<typeof members.x>,
      urls = hosts,
      user?: { name: string; password: string },
    ) =>
      new EtcdClient(
        {
          clock,
          random: { ...random, fraction: () => 0 },
          interrupts,
          http: { send: async (request: HttpRequest) => answer(request) } as unknown as Context['http'],
        },
        { members: urls.map((host) => new URL(`https://${host}`)), tls: {}, user },
      )
    const own = {
      x: clientOfHosts((request) => members.x(request), ['x']),
      y: clientOfHosts((request) => members.y(request), ['y']),
    }
    for (const name of ['x', 'y'] as const) {
      const { cluster } = await own[name].read('/a', () => false)
      if (isWritten) await own[name].replace('/a', { cluster, revision: '0', base64: undefined }, name)
    }
    return { members, clientOfHosts, own }
  }
  const baseOf = ({ cluster, found }: Awaited<ReturnType<EtcdClient['read']>>) => ({
    cluster,
    revision: found?.revision ?? '0',
    base64: found?.base64,
  })

  it.each([true, false])(
    'a replacement goes to none but the one that was read (with a value: %s)',
    async (isWritten) => {
      const { members, clientOfHosts, own } = await clusters(['x', 'y'], isWritten)
      let isRead = false
      const client = clientOfHosts((request) => {
        if (request.url.host === 'y') {
          if (!isRead) throw new TransportError('connect', 'no', 'refused')
          return members.y(request)
        }
        if (request.url.pathname === '/v3/kv/txn') throw new TransportError('reset', 'maybe', 'closed')
        return members.x(request)
      })
      const read = await client.read('/a', () => false)
      isRead = true
      expect(read.cluster).toBe('11')
      await expect(client.replace('/a', baseOf(read), 'new')).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('another cluster of etcd answered'),
      })
      expect((await own.y.read('/a', () => false)).found?.text).toBe(isWritten ? 'y' : undefined)
    },
  )

  it('a replacement that reaches the other one through the same address changes nothing there', async () => {
    const { members, clientOfHosts, own } = await clusters(['lb'], true)
    const client = clientOfHosts((request) =>
      request.url.pathname === '/v3/kv/txn' ? members.y(request) : members.x(request),
    )
    await expect(
      client.replace('/a', baseOf(await client.read('/a', () => false)), 'new'),
    ).rejects.toMatchObject({
      code: 'store_unavailable',
    })
    expect((await own.y.read('/a', () => false)).found?.text).toBe('y')
  })

  it.each(['x', 'y'])(
    'are told apart before it is believed that nothing is there: %s is asked',
    async (own) => {
      const { members, clientOfHosts } = await clusters(['x', 'y'], false)
      const client = clientOfHosts(
        (request) => members[request.url.host as 'x' | 'y'](request),
        own === 'x' ? ['x', 'y'] : ['y', 'x'],
      )
      await expect(client.read('/a', () => false)).rejects.toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: `another cluster of etcd answered at https://${own === 'x' ? 'y' : 'x'}`,
      })
    },
  )

  it('are told apart by their logins, because one does not take the token of the other', async () => {
    const { members, clientOfHosts } = await clusters(['x', 'y'], false)
    const user = { name: 'a', password: 'b' }
    const client = clientOfHosts(
      (request) => {
        const host = request.url.host as 'x' | 'y'
        const { authorization } = request.headers as Record<string, string>
        if (request.url.pathname === '/v3/auth/authenticate')
          return jsonResponse(200, {
            header: { cluster_id: host === 'x' ? '11' : '22', revision: '1' },
            token: host,
          })
        if (authorization !== host)
          return jsonResponse(401, { message: 'etcdserver: invalid auth token', code: 16 })
        return members[host](request)
      },
      ['x', 'y'],
      user,
    )
    const elsewhere = { message: 'another cluster of etcd answered at https://y' }
    await expect(client.read('/a', () => false)).rejects.toMatchObject(elsewhere)
    expect(await client.status()).toMatchObject([
      { isElsewhere: false },
      { isElsewhere: true, problem: 'it belongs to another cluster' },
    ])
  })

  it('of which one is the odd address: the one that fewer members have', async () => {
    const { members, clientOfHosts } = await clusters(['x', 'y'], false)
    const client = clientOfHosts(
      (request) => members[request.url.host === 'x' ? 'x' : 'y'](request),
      ['x', 'y', 'z'],
    )
    await expect(client.read('/a', () => false)).rejects.toMatchObject({
      message: expect.stringMatching(/ at https:\/\/x$/),
    })
  })

  it('need not be told apart if the other addresses are silent: nothing is there', async () => {
    const { members, clientOfHosts } = await clusters(['x', 'y'], false)
    const client = clientOfHosts((request) => {
      if (request.url.host !== 'x') throw new TransportError('connect', 'no', 'refused')
      return members.x(request)
    })
    expect((await client.read('/a', () => false)).found).toBeUndefined()
  })

  it.each([true, false])(
    'stay apart: the other one is never read after the first (with a value: %s)',
    async (isWritten) => {
      const { members, clientOfHosts } = await clusters(['x', 'y'], isWritten)
      let isGone = false
      const client = clientOfHosts((request) => {
        const host = request.url.host as 'x' | 'y'
        if ((host === 'y') !== isGone) throw new TransportError('connect', 'no', 'refused')
        return members[host](request)
      })
      expect(await client.read('/a', () => false)).toMatchObject({ cluster: '11' })
      isGone = true
      await expect(client.read('/a', () => false)).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('another cluster of etcd answered'),
      })
    },
  )

  it('have a token each, and asking the other one for its token does not keep the own one from being asked', async () => {
    const { members, clientOfHosts } = await clusters(['x', 'y'], true)
    const given = { x: 0, y: 0 }
    let writes = 0
    const client = clientOfHosts(
      (request) => {
        const host = request.url.host as 'x' | 'y'
        const { authorization } = request.headers as Record<string, string>
        if (request.url.pathname === '/v3/auth/authenticate')
          return jsonResponse(200, {
            header: { cluster_id: host === 'x' ? '11' : '22', revision: '1' },
            token: `${host}${++given[host]}`,
          })
        // It was restarted, and has forgotten its tokens.
        if (request.url.pathname === '/v3/kv/txn' && ++writes === 1) given.x++
        if (authorization !== `${host}${given[host]}`)
          return jsonResponse(401, { message: 'etcdserver: invalid auth token', code: 16 })
        return members[host](request)
      },
      ['x', 'y'],
      { name: 'a', password: 'b' },
    )
    const read = await client.read('/a', () => false)
    expect(await client.replace('/a', baseOf(read), 'new')).toMatchObject({
      succeeded: true,
      // The refusal was an answer.
      isRepeated: false,
    })
  })

  it('costs no request as long as the member that was read answers', async () => {
    const { members, clientOfHosts } = await clusters(['x', 'y'], true)
    const asked: string[] = []
    const client = clientOfHosts((request) => {
      asked.push(`${request.url.host}${request.url.pathname}`)
      return members.x(request)
    })
    expect(await client.replace('/a', baseOf(await client.read('/a', () => false)), 'new')).toMatchObject({
      succeeded: true,
    })
    expect(asked).toEqual(['x/v3/kv/range', 'x/v3/kv/txn'])
  })
})

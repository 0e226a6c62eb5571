// A service and a DNS server in memory, which respond so fast that nearly all of the measured time is the program's.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { decode, encode } from 'dns-packet'

const VALUE = 'prefix=token'
const HOST = 'ns1.dns.test'
const AUTHORITATIVE = 0x400
const [RECURSION_DESIRED, RECURSION_AVAILABLE] = [0x100, 0x80]

/** Starts a service whose claims complete when verification is requested, and a DNS server. @returns `env` for the client, and `close` */
export async function startMemoryService() {
  const claims = new Map()
  const create = (name) => {
    const id = `d0a10000-0000-4000-8000-${String(claims.size).padStart(12, '0')}`
    const record = { type: 'TXT', name, value: VALUE, ttl: 'Auto' }
    const times = { created_at: new Date().toISOString(), expires_at: '2100-01-01T00:00:00Z' }
    const claim = { object: 'domain_claim', name, status: 'pending', domain_id: id, record, ...times }
    claims.set(id, claim)
    return claim
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const [, , id, , action] = request.url.split('/')
    const claim = id === 'claim' ? create(JSON.parse(body).name) : claims.get(id)
    if (action === 'verify') claim.status = 'completed'
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(claim))
  })
  const dns = createSocket('udp4')
  dns.on('message', (query, from) => dns.send(answer(query), from.port, from.address))
  dns.bind(0, '127.0.0.1')
  server.listen(0, '127.0.0.1')
  await Promise.all([once(dns, 'listening'), once(server, 'listening')])
  const dnsPort = String(dns.address().port)
  return {
    env: {
      MAILCLAIM_BASE_URL: `http://127.0.0.1:${server.address().port}`,
      MAILCLAIM_API_KEY: 'key',
      MAILCLAIM_RESOLVER: `127.0.0.1:${dnsPort}`,
      MAILCLAIM_AUTHORITATIVE_PORT: dnsPort,
    },
    close() {
      server.close()
      server.closeAllConnections()
      dns.close()
    },
  }
}

/** Encodes the response to a DNS query: a zone is the last two labels of a name, and each name in it has a TXT record with `VALUE`. */
function answer(query) {
  const { id, flags, questions } = decode(query)
  const [{ name, type }] = questions
  const zone = name.split('.').slice(-2).join('.')
  const soa = {
    mname: HOST,
    rname: 'root.dns.test',
    serial: 1,
    refresh: 7200,
    retry: 900,
    expire: 86400,
    minimum: 60,
  }
  const data = {
    ...(name === HOST && { A: '127.0.0.1' }),
    ...(name === zone && { NS: HOST, SOA: soa }),
    ...(name.includes('.') && { TXT: [VALUE] }),
  }
  const isRecursive = (flags & RECURSION_DESIRED) !== 0
  return encode({
    type: 'response',
    id,
    flags: AUTHORITATIVE | (isRecursive ? RECURSION_DESIRED | RECURSION_AVAILABLE : 0),
    questions,
    answers: data[type] === undefined ? [] : [{ type, name, ttl: 3600, data: data[type] }],
    authorities: data[type] === undefined ? [{ type: 'SOA', name: zone, ttl: 3600, data: soa }] : [],
    additionals: type === 'NS' ? [{ type: 'A', name: HOST, ttl: 3600, data: '127.0.0.1' }] : [],
  })
}

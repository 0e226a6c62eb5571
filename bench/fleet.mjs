// What it costs to keep the session in etcd: one member on the loopback, behind a relay that delays every answer.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { compare, median, row } from './measure.mjs'

const version = process.versions.node
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const WHAT = '`auth token` with the session in etcd, round trips to etcd'
/** Far more than the rest of a command varies by. */
const DELAY_MS = 200
const USER = { name: 'root', password: 'only-for-the-benchmark' }

async function freePort() {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

/** A member with users; undefined if etcd isn't installed. */
async function startEtcd(directory) {
  const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`)
  const words = ['--data-dir', join(directory, 'etcd'), '--name', 'a', '--initial-cluster', `a=${peer}`]
  words.push('--listen-client-urls', client, '--advertise-client-urls', client)
  words.push('--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--bcrypt-cost', '4')
  const child = spawn('etcd', words, { stdio: 'ignore' })
  const missing = once(child, 'error').then(([error]) => error.code === 'ENOENT')
  const post = (path, body) => fetch(`${client}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })
  for (;;) {
    const found = await Promise.race([missing, post('auth/user/add', USER).catch(() => pause(50))])
    if (found === true) return undefined
    if (found?.ok) break
  }
  await post('auth/user/grant', { user: USER.name, role: 'root' })
  const enabled = await post('auth/enable', {})
  if (!enabled.ok) throw new Error(`etcd doesn't enable users: ${await enabled.text()}`)
  return { url: client, end: () => child.kill() }
}

/** Passes requests on, each answered after a delay. */
async function startRelay(target, delay) {
  const relay = { url: '', requests: 0, end: () => server.close() }
  const server = createServer(async (request, response) => {
    relay.requests++
    const pieces = []
    for await (const piece of request) pieces.push(piece)
    const { authorization } = request.headers
    const headers = authorization === undefined ? {} : { authorization }
    const [answer] = await Promise.all([
      fetch(target + request.url, { method: 'POST', body: Buffer.concat(pieces), headers }),
      pause(delay),
    ])
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(await answer.text())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  relay.url = `http://127.0.0.1:${server.address().port}`
  return relay
}

/**
 * A command that finds a good access token: in etcd over in a file, in round trips. That is what a delay of each answer adds,
 * in delays. On a network, making the connection takes its own.
 */
export async function sharedToken({ program, directory, service, login, show, runs }) {
  const etcd = await startEtcd(directory)
  if (etcd === undefined) {
    const skipped = { measured: 'skipped', spread: '', budget: '', verdict: '' }
    show({ what: WHAT, node: version, ...skipped, detail: 'etcd is not installed' })
    return
  }
  const [near, far] = [await startRelay(etcd.url, 0), await startRelay(etcd.url, DELAY_MS)]
  try {
    const envAt = (name) => ({
      ...service.plain,
      MAILCLAIM_STATE_DIR: join(directory, name),
      MAILCLAIM_CONFIG_DIR: join(directory, name),
    })
    const shared = {
      ...envAt('fleet'),
      MAILCLAIM_STORE_KEY: Buffer.alloc(32, 7).toString('base64'),
      MAILCLAIM_STORE_USER: USER.name,
      MAILCLAIM_STORE_PASSWORD: USER.password,
    }
    const at = (env) => ({ node: process.execPath, words: [program, 'auth', 'token'], env })
    const through = ({ url }) => at({ ...shared, MAILCLAIM_STORE_URL: url })
    await login(service, { ...shared, MAILCLAIM_STORE_URL: near.url }, 'etcd')
    await login(service, envAt('alone'))
    const delayed = await compare(through(far), through(near), runs)
    const trips = delayed.ratios.map(
      (_, index) => (delayed.ours[index].ms - delayed.theirs[index].ms) / DELAY_MS,
    )
    const beside = await compare(through(near), at(envAt('alone')), runs)
    const [mine, other] = [beside.ours, beside.theirs].map((all) =>
      median(all.map(({ ms }) => ms)).toFixed(0),
    )
    const each = (far.requests / (runs + 1)).toFixed(0)
    const detail = `${each} requests; without a delay ${mine} ms, with the session in a file ${other} ms`
    // A tenth for the timers.
    show(row(WHAT, version, trips, 2.1, detail, ''))
  } finally {
    for (const one of [near, far, etcd]) one.end()
  }
}

// Measures what is promised about speed, in about twenty rows: `npm run bench`. `--node PATH` measures starts with another Node,
// `--quick` makes fewer runs. A budget is what is promised, unless a comment beside it says what was measured.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { beginScript, builtProgram } from '../scripts/begin.mjs'
import { buildBareScripts } from './bare.mjs'
import { compare, median, row, run, table } from './measure.mjs'
import { major, nodesToMeasure } from './nodes.mjs'

const { values } = beginScript({
  options: { quick: { type: 'boolean' }, node: { type: 'string', multiple: true } },
})
const RUNS = values.quick ? 5 : 11
const DELAY_MS = 40
const DOMAINS = 1000
const ZONES = 50
const JOBS = 16
/** Number of zones whose names are checked one after the other, to compute the ideal time. */
const SAMPLE = 10
const CROWD = 50
const [FEW, MANY] = [500, 10_000]
const CLAIMS = 100_000

const version = process.versions.node
const program = builtProgram()
const { startMemoryService } = await import('./memory.mjs')
const directory = await mkdtemp(join(tmpdir(), 'mailclaim-bench-'))
const rows = []
const show = (one) => {
  rows.push(one)
  console.error(
    `${one.what} | ${one.node} | ${one.measured} | ${one.spread} | ${one.verdict} | ${one.detail ?? ''}`,
  )
}

/** Environment of the processes, without the user's own settings. */
const clean = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(MAILCLAIM_|XDG_|NODE_|https?_proxy$)/i.test(name)),
  ),
  HOME: directory,
  MAILCLAIM_STATE_DIR: join(directory, 'state'),
  MAILCLAIM_CONFIG_DIR: join(directory, 'config'),
}

async function startSandbox() {
  const words = ['sandbox', '--auto-approve', '--json', '--exit-with-stdin', '--imports', '100000']
  const child = spawn(process.execPath, [program, ...words], {
    env: clean,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve)
    child.once('close', (code) => reject(new Error(`the sandbox ended with ${code}`)))
  })
  const service = JSON.parse(line)
  const env = {
    ...clean,
    MAILCLAIM_BASE_URL: service.base_url,
    MAILCLAIM_RESOLVER: service.dns,
    MAILCLAIM_AUTHORITATIVE_PORT: service.dns.split(':').at(-1),
  }
  const control = async (method, path, body) => {
    const response = await fetch(`${service.base_url}/_sandbox/${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return { ...service, env, keyed: { ...env, MAILCLAIM_API_KEY: service.api_key }, control, child }
}

const ours = (words, env, more = {}) => ({ node: process.execPath, words: [program, ...words], env, ...more })

/** Runs a command. @throws if it ends with another code than 0 */
async function done(command) {
  const one = await run(command)
  if (one.code !== 0)
    throw new Error(`${command.words.slice(1).join(' ')} ended with ${one.code}: ${one.stderr}`)
  return one
}

/** Signs in; fetch stands in for the browser and follows the redirects. */
async function login({ client_id, env }) {
  const words = ['login', '--client-id', client_id, '--store', 'file', '--no-browser']
  const child = spawn(process.execPath, [program, ...words], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  createInterface({ input: child.stderr }).on('line', (line) => {
    text += line
    const [url] = /http:\/\/\S+\/oauth\/authorize\S+/.exec(line) ?? []
    if (url !== undefined) fetch(url).catch(() => {})
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`login ended with ${code}: ${text}`)
}

/** Measures four starts over a bare start, and a list over a script that only sends the same request with undici. */
async function startUp({ path, version }, bare, service) {
  const late = major(version) >= 22
  const at = (words, env) => ({ node: path, words, env })
  const empty = at([bare.empty], clean)
  const over = async (what, mine, theirs, budget, expected = 0) => {
    const compared = await compare(mine, theirs, RUNS, expected)
    const [one, other] = [compared.ours, compared.theirs].map((runs) => median(runs.map(({ ms }) => ms)))
    show(row(what, version, compared.ratios, budget, `${one.toFixed(0)} ms over ${other.toFixed(0)} ms`))
  }
  for (const [words, budget, expected] of [
    [['--version'], 1.3, 0],
    [['--help'], 1.4, 0],
    [['imports', 'lst'], 1.4, 2],
    [['auth', 'token'], 1.5, 0],
  ])
    await over(
      `\`${words.join(' ')}\` over a bare start`,
      at([program, ...words], service.env),
      empty,
      late ? budget : (budget * 10 + 1) / 10,
      expected,
    )
  const list = at([program, 'imports', 'list', '--limit', '100', '--json'], service.keyed)
  await over('a list over undici alone', list, at([bare.page], compiled(service)), 1.15)
}

/** Environment of the minimal scripts: Node's compile cache is on, as in the program. */
const compiled = (service) => ({ ...service.keyed, NODE_COMPILE_CACHE: join(directory, 'compiled') })

/** Measures a list of 100,000 items, and its peak memory over that of 10,000 items. */
async function streaming(bare, service) {
  const all = ours(['imports', 'list', '--all', '--format', 'jsonl'], service.keyed)
  const loop = { node: process.execPath, words: [bare.pages], env: compiled(service) }
  const { ratios, ours: runs } = await compare(all, loop, 3)
  if (runs.some(({ lines }) => lines !== 100_000)) throw new Error('some items are missing')
  // Measured on Node 20: 1.20 to 1.27.
  show(row('100,000 items over a bare loop', version, ratios, 1.3))
  const part = ours(['imports', 'list', '--limit', '10000', '--format', 'jsonl'], service.keyed)
  const [whole, tenth] = [await done({ ...all, peak: true }), await done({ ...part, peak: true })]
  const detail = `${whole.peak.toFixed(0)} MiB`
  // Measured on Node 20: 1.15 to 1.16.
  show(row('memory of 100,000 items over 10,000', version, [whole.peak / tenth.peak], 1.2, detail))
}

/** Measures many processes that start with an expired access token, which one of them renews. */
async function oneRefresh(service) {
  const crowd = async () => {
    const start = performance.now()
    await Promise.all(
      Array.from({ length: CROWD }, () => done(ours(['grants', 'list', '--limit', '1'], service.env))),
    )
    return performance.now() - start
  }
  const ratios = []
  const before = await service.control('GET', 'state')
  for (let at = 0; at < 2; at++) {
    const without = await crowd()
    await service.control('POST', 'clock', { advance_seconds: 1000 })
    ratios.push((await crowd()) / without)
  }
  const after = await service.control('GET', 'state')
  const detail = `${after.refreshes - before.refreshes} refreshes in 2 rounds, ${after.reuse_detections} reuses`
  // Measured on Node 20: 1.12 to 1.29.
  show(row(`${CROWD} processes with one refresh over ${CROWD} without`, version, ratios, 1.5, detail))
}

/** Starts a DNS proxy that delays each response until DELAY_MS after its query, and records the times of both. */
async function delayedDns(dns) {
  const [address, port] = dns.split(':')
  const log = []
  const waiting = new Map()
  const [front, back] = [createSocket('udp4'), createSocket('udp4')]
  let next = 0
  front.on('message', (message, from) => {
    const entry = { asked: performance.now() }
    log.push(entry)
    const id = next++ % 65536
    waiting.set(id, { entry, from, original: message.readUInt16BE(0) })
    message.writeUInt16BE(id, 0)
    back.send(message, Number(port), address)
  })
  back.on('message', (answer) => {
    const { entry, from, original } = waiting.get(answer.readUInt16BE(0)) ?? {}
    if (entry === undefined) return
    answer.writeUInt16BE(original, 0)
    setTimeout(
      () => {
        entry.answered = performance.now()
        front.send(answer, from.port, from.address)
      },
      entry.asked + DELAY_MS - performance.now(),
    )
  })
  await new Promise((resolve) => front.bind(0, '127.0.0.1', resolve))
  const local = front.address().port
  const env = { MAILCLAIM_RESOLVER: `127.0.0.1:${local}`, MAILCLAIM_AUTHORITATIVE_PORT: String(local) }
  const close = () => [front, back].forEach((socket) => void socket.close())
  return { log, env, close }
}

/** Returns the length of the longest chain of queries of which each was sent after the response to the one before. */
function chainLength(log) {
  const answered = log.filter((entry) => entry.answered !== undefined)
  let length = 0
  let end = Number.NEGATIVE_INFINITY
  for (const entry of answered.sort((one, other) => one.answered - other.answered)) {
    if (entry.asked < end - 1) continue
    length += 1
    end = entry.answered
  }
  return length
}

/**
 * Measures one check over its chain of dependent queries, and checks of 1,000 domains in 50 zones over the ideal time: 16 checks at
 * once, no pause between a response and the next query, and no query repeated within a zone.
 */
async function checks(service) {
  const names = Array.from({ length: DOMAINS }, (_, at) => `d${at}.zone${at % ZONES}.com`)
  for (const name of names) await service.control('PUT', `dns/${name}/TXT`, { values: ['prefix=token'] })
  const slow = await delayedDns(service.dns)
  const env = { ...clean, ...slow.env }
  const ratios = []
  let chain = 0
  for (let at = 0; at < RUNS; at++) {
    slow.log.length = 0
    await done(ours(['claims', 'check', names[at], '--value', 'prefix=token', '--json'], env))
    chain = chainLength(slow.log)
    const end = Math.max(...slow.log.map(({ answered }) => answered ?? 0))
    ratios.push((end - slow.log[0].asked) / (chain * DELAY_MS))
  }
  const questions = `${slow.log.length} questions, ${chain} in a row, each answered after ${DELAY_MS} ms`
  // Measured on Node 20: 1.07.
  show(row('`claims check` over its chain of questions', version, ratios, 1.2, questions))

  const checked = async (many, jobs) => {
    const list = join(directory, 'domains.csv')
    await writeFile(list, many.map((name) => `${name},prefix=token\n`).join(''))
    slow.log.length = 0
    const words = ['claims', 'check', '--from', list, '--jobs', String(jobs), '--format', 'jsonl']
    const { ms, lines } = await done(ours(words, env))
    if (lines !== many.length) throw new Error(`${lines} of ${many.length} domains were checked`)
    return { ms, chain: chainLength(slow.log) }
  }
  // Checks run one after the other here: the first name of a zone needs more queries than the next names.
  const some = names.slice(0, SAMPLE)
  const first = await checked(some, 1)
  const both = await checked([...some, ...names.slice(ZONES, ZONES + SAMPLE)], 1)
  const [ofFirst, ofNext] = [first.chain / SAMPLE, (both.chain - first.chain) / SAMPLE]
  const { ms } = await checked(names, JOBS)
  slow.close()
  const ideal = ((ofFirst * ZONES + ofNext * (DOMAINS - ZONES)) * DELAY_MS) / JOBS
  const detail = `${(ms / 1000).toFixed(1)} s over ${(ideal / 1000).toFixed(1)} s: ${ofFirst} questions in a row for the first name of a zone, ${ofNext} for each next one`
  show(row(`${DOMAINS} domains in ${ZONES} zones over the ideal`, version, [ms / ideal], 1.3, detail))
}

/** Measures the time from publishing a record to the end of `claim`, for several delays before publishing. */
async function publishedToCompleted(service) {
  const times = []
  const delays = [0, 2, 6, 14]
  for (const delay of delays) {
    const domain = `published-after-${delay}.example`
    const child = spawn(process.execPath, [program, 'claim', domain, '--format', 'jsonl'], {
      env: service.keyed,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let published
    createInterface({ input: child.stdout }).once('line', async () => {
      await new Promise((resolve) => setTimeout(resolve, delay * 1000))
      await service.control('POST', `claims/${domain}/publish`, {})
      published = performance.now()
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    if (code !== 0) throw new Error(`claim ended with ${code}`)
    times.push((performance.now() - published) / 1000)
  }
  const detail = `published ${delays.join(', ')} s after the start: ${times.map((one) => one.toFixed(1)).join(', ')} s`
  // The sandbox itself takes 2 s of this time.
  show(row('`claim`: from published to completed, at most', version, [Math.max(...times)], 6, detail, 's'))
}

/** Measures time per domain and peak memory of runs over 10,000 domains over those of 500, each domain in a separate zone. */
async function manyDomains(memory) {
  const list = join(directory, 'many.txt')
  for (const words of [
    ['claims', 'create'],
    ['claims', 'check'],
    ['claim', '--no-check'],
  ]) {
    const measured = []
    for (const count of [FEW, MANY]) {
      const names = Array.from({ length: count }, (_, at) => `domain${at}.com`)
      // Give the check its value: otherwise it would also ask the service for the claims that `claims create` has remembered.
      const value = words[1] === 'check' ? ',prefix=token' : ''
      await writeFile(list, names.map((name) => `${name}${value}\n`).join(''))
      const env = { ...clean, ...memory.env, MAILCLAIM_STATE_DIR: join(directory, `${words[1]}-${count}`) }
      const line = [...words, '--from', list, '--format', 'jsonl', '--quiet']
      const { ms, lines, peak } = await done(ours(line, env, { peak: true }))
      if (lines !== count) throw new Error(`${lines} of ${count} domains: ${line.join(' ')}`)
      measured.push({ each: ms / count, peak })
    }
    const [few, many] = measured
    const what = `\`${words.join(' ')}\` of ${MANY} domains`
    const detail = `${many.each.toFixed(1)} ms over ${few.each.toFixed(1)} ms`
    show(row(`${what} over ${FEW}, for each`, version, [many.each / few.each], 1.15, detail))
    show(row(`memory of ${what}`, version, [many.peak], 160, '', 'MiB'))
  }
}

/** Measures `claims get` and tab completion with 100,000 remembered claims over the same with ten. */
async function besideOthers(memory) {
  const name = 'wanted.example.com'
  const beside = []
  for (const count of [10, CLAIMS]) {
    const state = join(directory, `beside-${count}`)
    const env = { ...clean, ...memory.env, MAILCLAIM_STATE_DIR: state }
    await done(ours(['claims', 'create', name], env))
    const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 32)
    for (let at = 0; at < count; at++) {
      const other = `domain${at}.example.com`
      const [issuer, id] = [memory.env.MAILCLAIM_BASE_URL, `other-${at}`]
      const claim = { object: 'domain_claim', name: other, domain_id: id, status: 'pending' }
      const [byName, byId] = [`names/do/${other}`, `ids/${hashOf(id)}`].map((path) =>
        join(state, 'claims', 'default', path),
      )
      if (at === 0) mkdirSync(dirname(byName))
      for (const path of [byName, byId]) mkdirSync(path)
      const entry = { format: 1, issuer, seen_at: new Date().toISOString(), claim }
      writeFileSync(join(byName, `${hashOf(`${issuer}\n${id}`)}.json`), JSON.stringify(entry))
    }
    const { stdout } = await done(ours(['claims', 'get', name, '--json'], env, { keep: true }))
    beside.push({ env, id: JSON.parse(stdout).domain_id })
  }
  for (const [what, wordsOf, budget] of [
    ['`claims get` by name', () => ['claims', 'get', name], 1.1],
    ['`claims get` by id', ({ id }) => ['claims', 'get', id], 1.1],
    ['completion of a domain', () => ['__complete', '--', 'claims', 'get', 'dom'], 1.2],
  ]) {
    const [few, many] = beside.map((one) => ours(wordsOf(one), one.env))
    const { ratios } = await compare(many, few, Math.min(RUNS, 7))
    show(row(`${what} beside ${CLAIMS} claims over 10`, version, ratios, budget))
  }
}

let service
let memory
try {
  const bare = await buildBareScripts(directory)
  const nodes = nodesToMeasure(values.node)
  service = await startSandbox()
  await login(service)
  for (const node of nodes) await startUp(node, bare, service)
  await streaming(bare, service)
  await checks(service)
  memory = await startMemoryService()
  // Run both at once: publishedToCompleted mostly waits for DNS and the service, so it hardly slows manyDomains.
  await Promise.all([publishedToCompleted(service), manyDomains(memory)])
  await besideOthers(memory)
  await oneRefresh(service)
  const machine = `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${release()}`
  console.log(
    `${new Date().toISOString().slice(0, 10)}; ${machine}; load ${loadavg()[0].toFixed(1)}\n\n${table(rows)}`,
  )
  if (rows.some(({ verdict }) => verdict === 'OVER')) process.exitCode = 1
} finally {
  service?.child.stdin.end()
  memory?.close()
  await rm(directory, { recursive: true, force: true })
}

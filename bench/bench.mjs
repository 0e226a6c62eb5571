// Measures every figure of docs/benchmarks.md: `npm run bench`. About twelve minutes; `--node PATH` measures another Node,
// `--quick` makes fewer runs; `--many` measures only the commands with several domains, `--fleet` only etcd.
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { buildBareScripts } from './bare.mjs'
import { sharedToken } from './fleet.mjs'
import { many } from './many.mjs'
import { compare, median, row, run, table } from './measure.mjs'
import { major, nodesToMeasure } from './nodes.mjs'
import { deadServices, hardLists, largeLedger, publishedToCompleted, unreadPipe } from './waiting.mjs'

const RUNS = process.argv.includes('--quick') ? 5 : 11
const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'bin/mailclaim.js')
const directory = await mkdtemp(join(tmpdir(), 'mailclaim-bench-'))
const started = new Set()
const rows = []
const show = (one) => {
  rows.push(one)
  console.error(
    `${one.what} | ${one.node} | ${one.measured} | ${one.spread} | ${one.verdict} | ${one.detail ?? ''}`,
  )
}

/** The person's own settings don't take part. */
const clean = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(MAILCLAIM_|XDG_|NODE_|https?_proxy$)/i.test(name)),
)
Object.assign(clean, {
  HOME: directory,
  MAILCLAIM_STATE_DIR: join(directory, 'state'),
  MAILCLAIM_CONFIG_DIR: join(directory, 'config'),
})

async function startSandbox(words) {
  const child = spawn(
    process.execPath,
    [program, 'sandbox', '--auto-approve', '--json', '--exit-with-stdin', ...words],
    {
      env: clean,
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  started.add(child)
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve)
    child.once('close', (code) => reject(new Error(`the sandbox ended with ${code}`)))
  })
  const service = JSON.parse(line)
  const env = { ...clean, MAILCLAIM_BASE_URL: service.base_url, MAILCLAIM_RESOLVER: service.dns }
  env.MAILCLAIM_AUTHORITATIVE_PORT = service.dns.split(':').at(-1)
  const control = async (method, path, body) => {
    const response = await fetch(`${service.base_url}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.status === 204 ? undefined : response.json()
  }
  return {
    ...service,
    env,
    plain: { ...clean, MAILCLAIM_BASE_URL: service.base_url },
    keyed: { ...env, MAILCLAIM_API_KEY: service.api_key },
    control,
    end: () => child.stdin.end(),
  }
}

/** Signs in; following redirects stands in for the browser. */
async function login(service, env, store = 'file') {
  const words = ['login', '--client-id', service.client_id, '--store', store, '--no-browser']
  const child = spawn(process.execPath, [program, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let visited = false
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece) => {
      const url = /http:\/\/\S+\/oauth\/authorize\S+/.exec(piece)?.[0]
      if (url === undefined || visited) return
      visited = true
      fetch(url).catch(() => {})
    })
  }
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) throw new Error(`login ended with ${code}`)
}

const later = (version, early, late) => (major(version) < 22 ? early : late)

async function startUp(node, bare, service) {
  const at = (words, env = { ...service.plain, MAILCLAIM_API_KEY: service.api_key }) => ({
    node: node.path,
    words: [program, ...words],
    env: { ...env, ...node.env },
  })
  const empty = { node: node.path, words: [bare.empty], env: { ...clean, ...node.env } }
  const over = async (what, ours, theirs, budget, expected = 0) => {
    const compared = await compare(ours, theirs, RUNS, expected)
    const [mine, other] = [compared.ours, compared.theirs].map((runs) => median(runs.map(({ ms }) => ms)))
    show(
      row(what, node.version, compared.ratios, budget, `${mine.toFixed(0)} ms over ${other.toFixed(0)} ms`),
    )
  }
  const quick = later(node.version, 1.25, 1.4)
  await over('`--version`', at(['--version']), empty, quick)
  await over('`--help`', at(['--help']), empty, quick)
  await over('`imports lst`', at(['imports', 'lst']), empty, quick, 2)
  const token = at(['auth', 'token'], service.plain)
  await over('`auth token`, cached', token, empty, later(node.version, 1.3, 1.5))

  const list = ['imports', 'list', '--limit', '100']
  const json = at([...list, '--json'])
  const page = { node: node.path, words: [bare.page], env: { ...cached(service), ...node.env } }
  await over('`imports list --limit 100 --json` over undici alone', json, page, 1.15)
  await over('the same over a bare start', json, empty, later(node.version, 3.6, 2.6))
  if (!existsSync('/usr/bin/script')) return
  const shown = onTerminal(at([...list, '--format', 'table', '--no-pager']))
  const plain = onTerminal(json, join(directory, 'list.json'))
  await over('the same as a table on a terminal over JSON', shown, plain, 1.3)
}

/** For the minimal script: it keeps what V8 compiled, as the program does. */
const cached = (service) => ({ ...service.keyed, NODE_COMPILE_CACHE: join(directory, 'compiled') })

/** A command on a pseudoterminal of 120 columns; or one that is started the same way but writes to a file. */
function onTerminal({ node, words, env }, file) {
  const quoted = [node, ...words].map((word) => `'${word}'`).join(' ')
  const line = `stty cols 120; exec ${quoted}${file === undefined ? '' : ` > '${file}'`}`
  return {
    node: '/usr/bin/script',
    words: ['-qec', line, '/dev/null'],
    env: { ...env, TERM: 'xterm-256color' },
  }
}

async function streaming(node, bare, service) {
  const all = ['imports', 'list', '--all', '--format', 'jsonl']
  const ours = { node: node.path, words: [program, ...all], env: service.keyed }
  const loop = { node: node.path, words: [bare.pages], env: cached(service) }
  const { ratios, ours: runs } = await compare(ours, loop, RUNS)
  if (runs.some(({ lines }) => lines !== 100_000)) throw new Error('some items are missing')
  show(row('100,000 items as JSONL over a bare loop', node.version, ratios, 1.15))

  const points = []
  for (const count of [100, 1000, 10_000, 100_000]) {
    const words = count === 100_000 ? all : ['imports', 'list', '--limit', String(count), '--format', 'jsonl']
    const times = []
    const peaks = []
    for (let at = 0; at < 3; at++) {
      const one = await run({ node: node.path, words: [program, ...words], env: service.keyed, peak: true })
      times.push(one.ms)
      peaks.push(one.peak)
    }
    points.push({ count, ms: median(times), peak: median(peaks) })
  }
  const loopPeaks = []
  for (let at = 0; at < 3; at++) loopPeaks.push((await run({ ...loop, peak: true })).peak)
  const memory = points.map(({ count, peak }) => `${count}: ${peak.toFixed(0)} MiB`).join(', ')
  const growth = [points[3].peak / points[2].peak]
  show(row('peak memory of 100,000 items over 10,000', node.version, growth, 1.05, memory))
  const loopMemory = `${median(loopPeaks).toFixed(0)} MiB in the loop`
  const share = [points[3].peak / median(loopPeaks)]
  show(row('peak memory of 100,000 items over a bare loop', node.version, share, 1.05, loopMemory))
  // Time = start + items × each, fitted through the outer points, and how far the middle one is from that line.
  const each = (points[3].ms - points[0].ms) / (points[3].count - points[0].count)
  const fitted = points[0].ms + each * (points[2].count - points[0].count)
  const fit = `${(each * 1000).toFixed(0)} µs an item on ${points[0].ms.toFixed(0)} ms; 10,000: ${points[2].ms.toFixed(0)} ms, fit ${fitted.toFixed(0)} ms`
  show(row('time at 10,000 over a straight line', node.version, [points[2].ms / fitted], 1.25, fit))
}

async function refreshes(service) {
  const env = {
    ...service.env,
    MAILCLAIM_STATE_DIR: join(directory, 'crowd'),
    MAILCLAIM_CONFIG_DIR: join(directory, 'crowd'),
  }
  await login(service, env)
  const crowd = async () => {
    const start = performance.now()
    const all = await Promise.all(
      Array.from({ length: 50 }, () =>
        run({ node: process.execPath, words: [program, 'auth', 'token'], env }),
      ),
    )
    const failed = all.filter(({ code }) => code !== 0)
    if (failed.length > 0) throw new Error(`${failed.length} of 50 failed: ${failed[0].stderr}`)
    return performance.now() - start
  }
  const before = (await service.control('GET', 'state')).refreshes
  const ratios = []
  for (let at = 0; at < 3; at++) {
    const without = await crowd()
    // To the program the token must look expired; it uses its own clock.
    await rm(join(env.MAILCLAIM_STATE_DIR, 'profiles', 'default', 'access-token.json'))
    ratios.push((await crowd()) / without)
  }
  const after = await service.control('GET', 'state')
  const detail = `${after.refreshes - before} refreshes, ${after.reuse_detections} reuses`
  show(
    row('50 processes that need a refresh over 50 that do not', process.versions.node, ratios, 1.5, detail),
  )
}

/** Forwards datagrams to the sandbox's name server, each response 40 ms later, and records every query and its time. */
async function slowDns(port, address, target, log) {
  const front = createSocket('udp4')
  front.on('message', (message, from) => {
    const back = createSocket('udp4')
    const entry = { asked: performance.now(), message, address }
    log.push(entry)
    back.once('message', (answer) => {
      setTimeout(() => {
        entry.answered = performance.now()
        front.send(answer, from.port, from.address)
        back.close()
      }, 40)
    })
    back.send(message, target.port, target.address)
  })
  await new Promise((resolve) => front.bind(port, address, resolve))
  return front
}

/** The longest chain of queries in which each was sent after the response to the one before. */
function longestChain(log) {
  const done = log
    .filter(({ answered }) => answered !== undefined)
    .sort((one, other) => one.answered - other.answered)
  const chain = []
  for (const entry of done)
    if (chain.length === 0 || entry.asked >= chain.at(-1).answered - 1) chain.push(entry)
  return chain
}

async function askInTurn(chain, port) {
  const start = performance.now()
  for (const { message, address } of chain) {
    const socket = createSocket('udp4')
    await new Promise((resolve) => {
      socket.once('message', resolve)
      socket.send(message, port, address)
    })
    socket.close()
  }
  return performance.now() - start
}

async function checks(service) {
  const domain = 'example.com'
  const words = ['claims', 'create', domain, '--json']
  const claim = JSON.parse(
    (await run({ node: process.execPath, words: [program, ...words], env: service.keyed, keep: true }))
      .stdout,
  )
  await service.control('POST', `claims/${claim.domain_id}/publish`, {})
  const check = ['claims', 'check', '--name', domain, '--value', claim.record.value, '--json']
  const [address, dnsPort] = service.dns.split(':')
  const log = []
  const first = await slowDns(0, '127.0.0.1', { port: Number(dnsPort), address }, log)
  const { port } = first.address()
  const env = {
    ...service.keyed,
    MAILCLAIM_RESOLVER: `127.0.0.1:${port}`,
    MAILCLAIM_AUTHORITATIVE_PORT: String(port),
  }
  const ratios = []
  let length = 0
  for (let at = 0; at < RUNS; at++) {
    log.length = 0
    const one = await run({ node: process.execPath, words: [program, ...check], env, keep: true })
    if (one.code !== 0) throw new Error(`claims check ended with ${one.code}: ${one.stdout}${one.stderr}`)
    const asking =
      Math.max(...log.map(({ answered }) => answered ?? 0)) - Math.min(...log.map(({ asked }) => asked))
    const chain = longestChain([...log])
    length = chain.length
    ratios.push(asking / (await askInTurn(chain, port)))
  }
  first.close()
  const detail = `${log.length} questions, ${length} in a row, each answered after 40 ms`
  show(
    row(
      '`claims check`, two name servers, over its chain with a bare socket',
      process.versions.node,
      ratios,
      2,
      detail,
    ),
  )
}

async function watching(service) {
  const domain = 'watched.example'
  const keep = { node: process.execPath, env: service.keyed, keep: true }
  const claim = JSON.parse(
    (await run({ ...keep, words: [program, 'claims', 'create', domain, '--json'] })).stdout,
  )
  await service.control('POST', `claims/${claim.domain_id}/publish`, {})
  await run({ ...keep, words: [program, 'claims', 'verify', domain, '--no-check'] })
  const counts = () => service.control('GET', 'state')
  const before = (await counts()).requests.total
  const start = performance.now()
  const watch = run({
    ...keep,
    words: [program, 'claims', 'watch', domain, '--interval', '2', '--format', 'jsonl'],
  })
  // Polls the service independently until it has completed the claim.
  let completed
  while (completed === undefined && performance.now() - start < 30_000) {
    if ((await counts()).claims.some(({ status }) => status === 'completed')) completed = performance.now()
    else await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const one = await watch
  const end = performance.now()
  if (one.code !== 0) throw new Error(`claims watch ended with ${one.code}: ${one.stderr}`)
  const seconds = (end - start) / 1000
  const asked = (await counts()).requests.total - before
  show(
    row(
      '`claims watch --interval 2`: from completion to exit',
      process.versions.node,
      [(end - completed) / 1000],
      2,
      `${asked} requests in ${seconds.toFixed(1)} s: ${Math.round((asked / seconds) * 3600)} an hour at most`,
      's',
    ),
  )
}

async function install() {
  const packed = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', directory], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  )
  const { filename } = Array.isArray(packed) ? packed[0] : Object.values(packed)[0]
  const target = join(directory, 'installed')
  execFileSync(
    'npm',
    ['install', '--prefix', target, '--omit=dev', '--no-audit', '--no-fund', join(directory, filename)],
    { stdio: 'ignore' },
  )
  const modules = join(target, 'node_modules')
  let bytes = 0
  let packages = 0
  for (const entry of await readdir(modules, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    bytes += (await stat(join(entry.parentPath, entry.name))).size
    if (entry.name === 'package.json' && /node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+$/.test(entry.parentPath))
      packages++
  }
  const says = execFileSync(process.execPath, [join(modules, 'mailclaim/bin/mailclaim.js'), '--version'], {
    encoding: 'utf8',
  }).trim()
  show(
    row(
      'production install: packages',
      process.versions.node,
      [packages],
      8,
      `mailclaim ${says} among them`,
      '',
    ),
  )
  show(row('production install: size', process.versions.node, [bytes / 1e6], 6, '', 'MB'))
}

async function everything() {
  const bare = await buildBareScripts(directory)
  const nodes = nodesToMeasure(process.argv)
  const service = await startSandbox(['--imports', '100000'])
  await login(service, service.env)
  for (const node of nodes) await startUp(node, bare, service)
  for (const node of new Set([nodes[0], nodes.at(-1)])) await streaming(node, bare, service)
  await refreshes(service)
  await checks(service)
  await watching(service)
  await sharedToken({ program, directory, service, login, show, runs: RUNS })
  const waiting = { program, directory, service, show, runs: RUNS }
  for (const measure of [publishedToCompleted, deadServices, unreadPipe, hardLists, largeLedger])
    await measure(waiting)
  await install()
  service.end()
  await many({ program, startSandbox, show, directory })
  console.log(
    `${new Date().toISOString().slice(0, 10)}; ${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${release()}; load ${loadavg()[0].toFixed(1)}`,
  )
  console.log(`\n${table(rows)}`)
  if (rows.some(({ verdict }) => verdict === 'OVER')) process.exitCode = 1
}

async function etcdAlone() {
  const service = await startSandbox([])
  await sharedToken({ program, directory, service, login, show, runs: RUNS })
}

try {
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
  if (process.argv.includes('--many')) await many({ program, startSandbox, show, directory })
  else if (process.argv.includes('--fleet')) await etcdAlone()
  else await everything()
} finally {
  for (const child of started) child.stdin.end()
  await rm(directory, { recursive: true, force: true })
}

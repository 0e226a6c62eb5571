// Rows for commands that take several domains.
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { row, run } from './measure.mjs'

const DELAY_MS = 40
const DOMAINS = 1000
const ZONES = 50
const JOBS = 16

/** Forwards datagrams to a name server, each response 40 ms later, and notes when each was asked and answered. */
async function delayedDns(target) {
  const log = []
  const front = createSocket('udp4')
  const back = createSocket('udp4')
  const waiting = new Map()
  let next = 0
  front.on('message', (message, from) => {
    const entry = { asked: performance.now(), size: message.length }
    log.push(entry)
    const id = next++ % 65536
    waiting.set(id, { entry, from, original: message.readUInt16BE(0) })
    message.writeUInt16BE(id, 0)
    back.send(message, target.port, target.address)
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
  const { port } = front.address()
  return {
    log,
    env: { MAILCLAIM_RESOLVER: `127.0.0.1:${port}`, MAILCLAIM_AUTHORITATIVE_PORT: String(port) },
    close() {
      front.close()
      back.close()
    },
  }
}

/** How many questions of one check can only be asked one after the other. */
function chainLength(log) {
  const done = log
    .filter(({ answered }) => answered !== undefined)
    .sort((one, other) => one.answered - other.answered)
  let length = 0
  let end = Number.NEGATIVE_INFINITY
  for (const { asked, answered } of done) {
    if (asked < end - 1) continue
    length += 1
    end = answered
  }
  return length
}

const domainsIn = (count, zones, prefix) =>
  Array.from({ length: count }, (_, n) => `d${n}.${prefix}${n % zones}.com`)

/** Runs a command over a list, and calls back with the number of lines on stdout as they come. */
async function lines(words, env, onLine = () => {}) {
  const start = performance.now()
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let count = 0
  let stderr = ''
  child.stderr.on('data', (piece) => {
    stderr += piece
  })
  createInterface({ input: child.stdout }).on('line', () => onLine(++count))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, stderr, count, ms: performance.now() - start }
}

/**
 * @param startSandbox starts one with more words, and gives its address and environments
 * @param show prints a row
 */
export async function many({ program, startSandbox, show, directory }) {
  const home = join(directory, 'many')
  await mkdir(home)
  const node = process.version.slice(1)
  const list = async (name, domains) => {
    const path = join(home, name)
    await writeFile(path, `${domains.join('\n')}\n`)
    return path
  }
  const expectDone = ({ code, stderr }, what) => {
    if (code !== 0) throw new Error(`${what} ended with ${code}: ${stderr}`)
  }
  const envOf = (service, name) => ({ ...service.keyed, MAILCLAIM_STATE_DIR: join(home, name) })

  const service = await startSandbox(['--auto-publish'])
  const env = envOf(service, 'state')
  const path = await list('domains.txt', domainsIn(DOMAINS, ZONES, 'zone'))
  const created = await lines([program, 'claims', 'create', '--from', path, '--format', 'jsonl'], env)
  expectDone(created, 'claims create')
  const { claims } = await service.control('GET', 'state')
  for (const { domain_id } of claims)
    await service.control('POST', `claims/${domain_id}/outcome`, { status: 'completed' })
  const watched = await lines([program, 'claims', 'watch', '--all', '--format', 'jsonl'], env)
  expectDone(watched, 'claims watch')

  const [address, port] = service.dns.split(':')
  const slow = await delayedDns({ address, port: Number(port) })
  const slowEnv = { ...env, ...slow.env }
  const words = (more) => [program, 'claims', 'check', ...more, '--format', 'jsonl', '--jobs', String(JOBS)]
  const values = new Map(claims.map(({ name, record }) => [name, record.value]))
  const valued = (names) => names.map((name) => `${name},${values.get(name)}`)
  const single = [...values.keys()][0]
  expectDone(
    await lines([program, 'claims', 'check', single, '--value', values.get(single), '--json'], slowEnv),
    'claims check',
  )
  const alone = { questions: slow.log.length, chain: chainLength(slow.log) }
  slow.log.length = 0
  const checked = await list('checked.csv', valued([...values.keys()]))
  let atHalf = 0
  const whole = await lines(words(['--from', checked]), slowEnv, (count) => {
    if (count === DOMAINS / 2) atHalf = slow.log.length
  })
  expectDone(whole, 'claims check')
  const ideal = (alone.chain * DELAY_MS * DOMAINS) / JOBS
  show(
    row(
      `${DOMAINS} domains in ${ZONES} zones checked, answers after ${DELAY_MS} ms, over the ideal`,
      node,
      [whole.ms / ideal],
      1.3,
      `${(whole.ms / 1000).toFixed(1)} s over ${alone.chain} questions in a row x ${DELAY_MS} ms x ${DOMAINS} / ${JOBS}`,
    ),
  )
  const later = (slow.log.length - atHalf) / (DOMAINS / 2)
  show(
    row(
      'questions per domain in the second half, over those of a single check',
      node,
      [later / alone.questions],
      0.5,
      `${later.toFixed(1)} over ${alone.questions}`,
    ),
  )
  slow.close()

  const names = domainsIn(10_000, ZONES, 'much')
  for (let at = 0; at < names.length; at += 100)
    await Promise.all(
      names
        .slice(at, at + 100)
        .map((name) => service.control('PUT', `dns/${name}/TXT`, { values: ['prefix=token'] })),
    )
  const peaks = []
  for (const count of [100, 10_000]) {
    const from = await list(
      `${count}.csv`,
      names.slice(0, count).map((name) => `${name},prefix=token`),
    )
    const one = await run({ node: process.execPath, words: words(['--from', from]), env, peak: true })
    expectDone(one, 'claims check')
    if (one.lines !== count) throw new Error(`${one.lines} of ${count} domains were checked`)
    peaks.push(one)
  }
  show(
    row(
      'peak memory at 10,000 domains over 100',
      node,
      [peaks[1].peak / peaks[0].peak],
      1.2,
      `${peaks[1].peak.toFixed(0)} over ${peaks[0].peak.toFixed(0)} MiB; 10,000 in ${(peaks[1].ms / 1000).toFixed(1)} s`,
    ),
  )

  const dead = async (zone, trouble) => {
    const domains = domainsIn(300, 1, zone)
    for (const name of domains) await service.control('PUT', `dns/${name}/TXT`, { values: ['prefix=token'] })
    if (trouble) {
      // The trouble of a claim's name is that of its whole zone.
      const apex = `${zone}0.com`
      expectDone(await lines([program, 'claims', 'create', apex, '--format', 'jsonl'], env), 'claims create')
      await service.control('POST', `claims/${apex}/publish`, { mistake: trouble })
    }
    const from = await list(
      `${zone}.csv`,
      domains.map((name) => `${name},prefix=token`),
    )
    return (await lines(words(['--from', from]), env)).ms / 1000
  }
  const healthy = await dead('healthy')
  const broken = await dead('broken', 'silent')
  show(
    row(
      '300 domains on a dead name server, over 300 on one that answers',
      node,
      [broken - healthy],
      10,
      `${broken.toFixed(1)} over ${healthy.toFixed(1)} s`,
      's',
    ),
  )
  service.end()
  await rm(home, { recursive: true, force: true })
}

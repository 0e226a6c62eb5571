// What people wait for: from a published record to a completed claim, services that don't answer, large ledgers and lists.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { compare, median, row, run } from './measure.mjs'

const version = process.versions.node
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** A ledger without an index, as earlier versions kept it: `count` open claims at a service. */
async function fillLedger(state, count, issuer) {
  const directory = join(state, 'claims', 'default')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (let at = 0; at < count; at++) {
    const [name, domain_id] = [`customer-${at}.example`, `id-${at}`]
    const record = { type: 'TXT', name, value: `sandbox-domain-verification=${'x'.repeat(32)}` }
    const created_at = new Date(Date.now() - (count - at) * 1000).toISOString()
    const claim = {
      object: 'domain_claim',
      id: `c-${at}`,
      name,
      domain_id,
      status: 'pending',
      record,
      created_at,
    }
    const file = createHash('sha256').update(`${issuer}\n${domain_id}`).digest('hex').slice(0, 32)
    const text = JSON.stringify({ version: 1, issuer, seen_at: created_at, claim })
    await writeFile(join(directory, `${file}.json`), text, { mode: 0o600 })
  }
}

/** 100,000 claims in the ledger over none: what a person does with one of them, and the list of all. */
export async function largeLedger({ program, directory, service, show, runs }) {
  // A machine without an account doesn't ask the service how a claim stands now, so only the ledger is measured.
  const env = (words) => (words[1] === 'create' ? service.keyed : service.plain)
  await fillLedger(join(directory, 'large'), 100_000, new URL(service.base_url).origin)
  await fillLedger(join(directory, 'small'), 10, new URL(service.base_url).origin)
  const command = (state, words) => ({
    node: process.execPath,
    words: [program, ...words],
    env: { ...env(words), MAILCLAIM_STATE_DIR: join(directory, state) },
  })
  // The first question for a domain makes the index.
  const index = await run(command('large', ['__complete', '--', 'claims', 'get', 'customer-9']))
  show(row('ledger of 100,000 claims: the index is made, once', version, [index.ms / 1000], 10, '', 's'))
  let created = 0
  for (const [what, words, budget] of [
    ['a claim by id', () => ['claims', 'record', 'id-5', '--format', 'value'], 1.2],
    ['a claim by name', () => ['claims', 'record', 'customer-5.example', '--format', 'value'], 1.5],
    ['`claims create`', () => ['claims', 'create', `new-${created++}.example`], 1.5],
    ['completion of a domain', () => ['__complete', '--', 'claims', 'get', 'customer-5'], 2],
    ['completion with nothing typed', () => ['__complete', '--', 'claims', 'get', ''], 2],
  ]) {
    const ratios = []
    const times = []
    for (let round = 0; round < runs; round++) {
      const large = await run(command('large', words()))
      const small = await run(command('small', words()))
      for (const one of [large, small]) if (one.code !== 0) throw new Error(`${what}: ${one.stderr}`)
      ratios.push(large.ms / small.ms)
      times.push(large.ms)
    }
    const detail = `${median(times).toFixed(0)} ms`
    show(row(`ledger of 100,000 claims over 10: ${what}`, version, ratios, budget, detail))
  }
  await fillLedger(join(directory, 'thousand'), 1000, new URL(service.base_url).origin)
  const from = join(directory, 'thousand.txt')
  await writeFile(from, Array.from({ length: 1000 }, (_, at) => `customer-${at}.example\n`).join(''))
  const named = (state) => command(state, ['claims', 'record', '--from', from, '--format', 'zone'])
  const { ratios } = await compare(named('large'), named('thousand'), runs)
  show(row('ledger of 100,000 claims over 1,000: 1,000 of them by name in one run', version, ratios, 2))
  const list = await run({ ...command('large', ['claims', 'list', '--format', 'jsonl']), peak: true })
  if (list.lines < 100_000) throw new Error(`${list.lines} of 100,000 claims are listed`)
  const detail = `${list.peak.toFixed(0)} MiB`
  show(row('ledger of 100,000 claims: `claims list`', version, [list.ms / 1000], 5, detail, 's'))
}

/** `claim` in the sandbox, with the record published some seconds after it is shown. The service itself needs 2 s. */
export async function publishedToCompleted({ program, service, show }) {
  const times = []
  for (const delay of [0, 2, 6, 14, 17]) {
    const domain = `published-after-${delay}.example`
    const words = ['claim', domain, '--format', 'jsonl']
    const child = spawn(process.execPath, [program, ...words], {
      env: service.keyed,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let text = ''
    let published
    const publish = async () => {
      await pause(delay * 1000)
      await service.control('POST', `claims/${domain}/publish`, {})
      published = performance.now()
    }
    child.stdout.on('data', (piece) => {
      if (text === '') publish()
      text += piece
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    if (code !== 0 || published === undefined) throw new Error(`claim ended with ${code}: ${text}`)
    times.push((performance.now() - published) / 1000)
  }
  const detail = `published ${[0, 2, 6, 14, 17].join(', ')} s after the start: ${times.map((one) => one.toFixed(1)).join(', ')} s`
  show(row('`claim`: from published to completed', version, times, 6, detail, 's'))
}

/** Services that accept and never answer, or refuse. */
export async function deadServices({ program, service, show }) {
  const silent = createServer(() => {})
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const list = (port) => ({
    node: process.execPath,
    words: [program, 'imports', 'list'],
    env: { ...service.keyed, MAILCLAIM_BASE_URL: `http://127.0.0.1:${port}` },
  })
  const { port } = silent.address()
  const { words, env } = list(port)
  const start = performance.now()
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let noted
  child.stderr.on('data', () => {
    noted ??= (performance.now() - start) / 1000
  })
  const code = await new Promise((resolve) => child.once('close', resolve))
  const seconds = (performance.now() - start) / 1000
  silent.close()
  if (code !== 7) throw new Error(`a silent service ended the list with ${code}`)
  show(row('a service that never answers: first line on stderr', version, [noted], 2.5, '', 's'))
  show(row('a service that never answers: end', version, [seconds], 46, '', 's'))
  const times = []
  for (let at = 0; at < 5; at++) times.push((await run(list(port))).ms)
  show(row('connection refused: `imports list`', version, times, 400, '', 'ms'))
}

/** Ctrl-C while nobody reads the pipe that the output goes to. */
export async function unreadPipe({ program, service, show, runs }) {
  const times = []
  for (let at = 0; at < runs; at++) {
    const words = ['imports', 'list', '--all', '--format', 'jsonl']
    const child = spawn(process.execPath, [program, ...words], {
      env: service.keyed,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    await pause(700)
    const start = performance.now()
    child.kill('SIGINT')
    const code = await new Promise((resolve) => child.once('exit', resolve))
    if (code !== 130) throw new Error(`Ctrl-C ended with ${code}`)
    times.push(performance.now() - start)
    child.stdout.destroy()
  }
  show(row('Ctrl-C in front of a pipe that nobody reads', version, times, 200, '', 'ms'))
}

/** Serves an endless list of imports whose status is this word and a number. */
async function serveImports(word) {
  const server = createHttpServer((request, response) => {
    const after = Number(new URL(request.url, 'http://localhost').searchParams.get('after') ?? 0)
    const data = Array.from({ length: 100 }, (_, at) => ({
      object: 'contact_import',
      id: String(after + at + 1),
      status: `${word}-${after + at}`,
      created_at: '2026-11-20T12:00:00Z',
      counts: { total: 1, created: 1, updated: 0, skipped: 0, failed: 0 },
    }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ object: 'list', has_more: true, data }))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** A table with accents over one without, and a list that is read backwards. */
export async function hardLists({ program, service, show, runs }) {
  const servers = [await serveImports('été'), await serveImports('ete')]
  const [accented, plain] = servers.map((server) => ({
    node: process.execPath,
    words: [program, 'imports', 'list', '--limit', '10000', '--format', 'table'],
    env: { ...service.keyed, MAILCLAIM_BASE_URL: `http://127.0.0.1:${server.address().port}` },
  }))
  const { ratios } = await compare(accented, plain, runs)
  show(row('table of 10,000 rows: non-ASCII cells over ASCII ones', version, ratios, 2))
  for (const server of servers) server.close()
  const all = await run({
    node: process.execPath,
    words: [program, 'imports', 'list', '--all', '--format', 'jsonl'],
    env: service.keyed,
    keep: true,
  })
  const ids = all.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).id)
  const peaks = []
  for (const count of [10_000, 90_000]) {
    const words = ['imports', 'list', '--before', ids[count], '--all', '--format', 'jsonl']
    const one = await run({
      node: process.execPath,
      words: [program, ...words],
      env: service.keyed,
      peak: true,
    })
    if (one.lines !== count) throw new Error(`${one.lines} items before ${count}`)
    peaks.push(one.peak)
  }
  const detail = peaks.map((peak) => `${peak.toFixed(0)} MiB`).join(' and ')
  const growth = [peaks[1] / peaks[0]]
  show(row('`--before ID --all`: peak memory of 90,000 items over 10,000', version, growth, 1.1, detail))
}

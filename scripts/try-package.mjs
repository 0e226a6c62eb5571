// The package as a stranger meets it: packed, installed from the tarball into an empty directory under every supported
// Node, with npm's install scripts on and off, and used there: --version, a sign-in and a claim on its own sandbox.
// Needs the registry (for the dependencies and for Node itself), so it is no part of `npm test`.
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const wanted = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ['20', '22', '24', 'latest']
const LIMIT_MS = 120_000

const work = await mkdtemp(join(tmpdir(), 'mailclaim-try-'))
const running = new Set()

/** npm, as this machine has it, with `node` first in the path, so that install scripts run under it. */
async function npm(words, directory, node) {
  const env = { ...process.env, npm_config_update_notifier: 'false' }
  if (node !== undefined) env.PATH = `${dirname(node)}${delimiter}${env.PATH}`
  // What the script that runs us was given must not reach another npm.
  for (const name of Object.keys(env))
    if (/^npm_(package|lifecycle|command|config_(prefix|local_prefix|global))/.test(name)) delete env[name]
  const { stdout } = await run('npm', words, { cwd: directory, env, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

async function createPackage(name) {
  const directory = await mkdtemp(join(work, `${name}-`))
  await npm(['init', '--yes'], directory)
  return directory
}

/** The binary of a Node release, from the registry's package for this platform. */
async function nodeOf(version) {
  const system = process.platform === 'win32' ? 'win' : process.platform
  const directory = await createPackage(`node-${version}`)
  const name = `node-${system}-${process.arch}`
  await npm(['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${version}`], directory)
  return join(directory, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

async function bytesBelow(directory) {
  let bytes = 0
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  }
  return bytes
}

/** Signs in and claims a domain with the installed program, against the sandbox that it brings along. */
async function use(node, script) {
  const home = await mkdtemp(join(work, 'home-'))
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(MAILCLAIM_|XDG_|NODE_|npm_|https?_proxy$)/i.test(name),
    ),
  )
  Object.assign(env, {
    HOME: home,
    MAILCLAIM_CONFIG_DIR: join(home, 'config'),
    MAILCLAIM_STATE_DIR: join(home, 'state'),
    MAILCLAIM_STORE: 'file',
  })
  const start = (words) => {
    const child = spawn(node, [script, ...words], {
      env,
      cwd: home,
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
    })
    running.add(child)
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text
      })
    }
    const ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        running.delete(child)
        resolve({ code: signal ?? code, ...output })
      })
    })
    return { child, output, ended }
  }
  const step = async (...words) => {
    const started = start(words)
    started.child.stdin.end()
    const { code, stdout, stderr } = await started.ended
    if (code !== 0) throw new Error(`mailclaim ${words.join(' ')}: exit ${code}\n${stderr}`)
    return stdout
  }

  const version = (await step('--version')).trim()
  await step('--help')
  const sandbox = start(['sandbox', '--auto-approve', '--json', '--exit-with-stdin'])
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: sandbox.child.stdout }).once('line', resolve)
    sandbox.ended.then(({ stderr }) => reject(new Error(`the sandbox ended: ${stderr}`)))
  })
  const service = JSON.parse(line)
  Object.assign(env, {
    MAILCLAIM_RESOLVER: service.dns,
    MAILCLAIM_AUTHORITATIVE_PORT: service.dns.split(':').at(-1),
  })
  const login = start([
    'login',
    '--base-url',
    service.base_url,
    '--client-id',
    service.client_id,
    '--no-browser',
  ])
  login.child.stderr.on('data', () => {
    const url = /https?:\/\/\S+\/oauth\/authorize\S+/.exec(login.output.stderr)?.[0]
    if (url === undefined || login.visited) return
    login.visited = true
    fetch(url).catch(() => {})
  })
  login.child.stdin.end()
  const signedIn = await login.ended
  if (signedIn.code !== 0) throw new Error(`login: exit ${signedIn.code}\n${signedIn.stderr}`)
  await step('imports', 'list', '--format', 'table')
  const { record } = JSON.parse(await step('claims', 'create', 'example.com', '--json'))
  await fetch(`${service.base_url}/_sandbox/dns/example.com/TXT`, {
    method: 'PUT',
    body: JSON.stringify({ values: [record.value] }),
  })
  await step('claims', 'check', 'example.com')
  const claim = JSON.parse(await step('claims', 'verify', 'example.com', '--wait', '--json'))
  if (claim.status !== 'completed') throw new Error(`the claim ended as ${claim.status}`)
  await step('auth', 'refresh')
  await step('logout')
  sandbox.child.stdin.end()
  await sandbox.ended
  return version
}

const rows = []
let failed = 0
try {
  const packed = JSON.parse(await npm(['pack', '--json', '--pack-destination', work], root))
  const { filename, files, size, unpackedSize } = Array.isArray(packed) ? packed[0] : Object.values(packed)[0]
  const tarball = join(work, filename)
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  console.log(
    `${filename}: ${files.length} files, ${Math.round(size / 1024)} kB packed, ${Math.round(unpackedSize / 1024)} kB unpacked\n`,
  )
  for (const release of wanted) {
    const node = await nodeOf(release)
    const { stdout } = await run(node, ['--version'])
    for (const scripts of ['on', 'off']) {
      const row = { node: stdout.trim(), 'install scripts': scripts }
      rows.push(row)
      try {
        const directory = await createPackage(`install-${release}-${scripts}`)
        const flag = scripts === 'on' ? '--dangerously-allow-all-scripts' : '--ignore-scripts'
        const began = performance.now()
        await npm(['install', '--no-audit', '--no-fund', flag, tarball], directory, node)
        row['installed in'] = `${((performance.now() - began) / 1000).toFixed(1)} s`
        const lock = JSON.parse(await readFile(join(directory, 'node_modules', '.package-lock.json'), 'utf8'))
        row.packages = Object.keys(lock.packages).length
        row.MB = ((await bytesBelow(join(directory, 'node_modules'))) / 1024 ** 2).toFixed(1)
        const seen = await use(node, join(directory, 'node_modules', 'mailclaim', 'bin', 'mailclaim.js'))
        row.result = seen === version ? 'works' : `says that it is ${seen}`
      } catch (error) {
        row.result = 'fails'
        console.error(`Node ${row.node}, scripts ${scripts}: ${error.message}\n`)
      }
      if (row.result !== 'works') failed += 1
    }
  }
} finally {
  for (const child of running) child.kill('SIGKILL')
  await rm(work, { recursive: true, force: true, maxRetries: 5 })
}
console.table(rows)
console.log(`${rows.length - failed} of ${rows.length} installations work`)
process.exitCode = failed === 0 && rows.length > 0 ? 0 : 1

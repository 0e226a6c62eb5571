// Runs the whole flow: the sandbox and each step are processes of the program, and fetch stands in for the browser, since it follows the
// redirects of the consent page. Needs only Node.
//
//   node scripts/demo.mjs [PROGRAM]  runs PROGRAM, such as an installed package, or else the built program, with the Node of this script
import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { beginScript, builtProgram, sentenceOf } from './begin.mjs'

const { positionals } = beginScript({ allowPositionals: true })
const program = resolve(positionals[0] ?? builtProgram())
// A program that doesn't start at all fails here with one sentence.
execFileSync(process.execPath, [program, '--version'], { stdio: 'pipe' })
const home = await mkdtemp(join(tmpdir(), 'mailclaim-demo-'))
const domain = 'example.com'
const running = new Set()

/** The environment of every step, without the user's own settings. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(MAILCLAIM_|XDG_|npm_|https?_proxy$)/i.test(name)),
)
Object.assign(environment, {
  HOME: home,
  USERPROFILE: home,
  LOCALAPPDATA: home,
  MAILCLAIM_CONFIG_DIR: join(home, 'config'),
  MAILCLAIM_STATE_DIR: join(home, 'state'),
})

const say = (text) => process.stdout.write(text)

function start(words, stderr = 'pipe') {
  const child = spawn(process.execPath, [program, ...words], {
    env: environment,
    cwd: home,
    stdio: ['pipe', 'pipe', stderr],
  })
  running.add(child)
  child.ended = new Promise((done) => child.once('close', (code, signal) => done(signal ?? code)))
  child.ended.then(() => running.delete(child))
  return child
}

/** Runs one step, prints its command line and output, and checks its exit code. */
async function step(title, line, expected = 0, during = () => {}) {
  say(`\n# ${title}\n$ mailclaim ${line}\n`)
  const child = start(line.split(' '))
  child.stdin.end()
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      say(text)
      during(output)
    })
  }
  const code = await child.ended
  if (code !== expected) throw new Error(`that should have ended with ${expected}, but ended with ${code}`)
  if (expected !== 0) say(`(exit ${code}, as it should be)\n`)
  return output
}

try {
  say('# A local service, in a separate process\n$ mailclaim sandbox --auto-approve --json\n')
  const sandbox = start(['sandbox', '--auto-approve', '--json', '--exit-with-stdin'], 'inherit')
  const line = await new Promise((done, fail) => {
    createInterface({ input: sandbox.stdout }).once('line', done)
    sandbox.ended.then((code) => fail(new Error(`the sandbox ended with ${code}`)))
  })
  say(`${line}\n`)
  const service = JSON.parse(line)
  const exported = {
    MAILCLAIM_RESOLVER: service.dns,
    MAILCLAIM_AUTHORITATIVE_PORT: service.dns.split(':').at(-1),
  }
  Object.assign(environment, exported)
  for (const [name, value] of Object.entries(exported)) say(`$ export ${name}=${value}\n`)

  let visited = false
  await step(
    'Sign in. The address is opened here instead of in a browser; the consent page approves automatically',
    `login --base-url ${service.base_url} --client-id ${service.client_id} --store file --no-browser`,
    0,
    (output) => {
      const url = /https?:\/\/\S+\/oauth\/authorize\S+(?=\s)/.exec(output)?.[0]
      if (url === undefined || visited) return
      visited = true
      fetch(url).catch((error) => say(`the consent page could not be opened: ${error}\n`))
    },
  )
  await step('Who is signed in, and until when', 'auth status --format table')
  await step('OAuth grants of the team, revoked ones included', 'grants list --limit 5 --format table')
  await step('Contact imports', 'imports list --limit 3 --format table')
  await step('Claim a domain that another team has verified', `claims create ${domain} --format table`)
  await step('The TXT record is not there yet: the check says so', `claims check ${domain} --format table`, 8)

  const value = (await step('The value alone, for a script', `claims record ${domain} --format value`)).trim()
  const editor = `${service.base_url}/_sandbox/dns/${domain}/TXT`
  say(
    `\n# Publish it, as one would at a DNS provider\n$ curl -X PUT ${editor} --json '{"values":["${value}"]}'\n`,
  )
  const published = await fetch(editor, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ values: [value] }),
  })
  if (!published.ok) throw new Error(`the sandbox answered ${published.status}: ${await published.text()}`)

  await step('Now every name server has it', `claims check ${domain} --format table`)
  await step(
    'Ask for verification, and follow the claim to its end',
    `claims verify ${domain} --wait --format table`,
  )
  const end = JSON.parse(await step('The claim, as the service tells it', `claims get ${domain} --json`))
  if (end.status !== 'completed') throw new Error(`the claim ended as ${end.status}`)
  await step('Renew the session now', 'auth refresh')
  await step('Forget the session', 'logout')

  sandbox.stdin.end()
  const code = await sandbox.ended
  if (code !== 0) throw new Error(`the sandbox ended with ${code}`)
  if (running.size > 0) throw new Error(`${running.size} processes are left`)
  say('\nThe claim is completed, and every process that was started is gone.\n')
} catch (error) {
  process.stderr.write(`\nthe demo failed: ${sentenceOf(error)}\n`)
  process.exitCode = 1
} finally {
  for (const child of running) child.kill('SIGKILL')
  await rm(home, { recursive: true, force: true })
}

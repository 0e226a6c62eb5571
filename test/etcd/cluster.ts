import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

/**
 * A cluster of three etcd members set up by the commands of docs/fleet.md, on loopback addresses, and with required client
 * certificates.
 */
export interface Cluster {
  /** Environment of a machine that uses the cluster, as docs/fleet.md sets it. */
  readonly env: Readonly<Record<string, string>>
  /** Arguments of the `mailclaim` commands in docs/fleet.md, in their order. */
  readonly commands: readonly (readonly string[])[]
  /** Ends a member with SIGKILL. */
  kill(member: number): Promise<void>
  start(member: number): void
  /** Waits for a leader and returns its index. */
  leader(): Promise<number>
}

const MEMBERS = [1, 2, 3]
const PAGE = new URL('../../docs/fleet.md', import.meta.url)
const BLOCK = /^```sh.*\n(?<text>(?:.*\n)*?)```$/gm

export async function startCluster(service: { base_url: string; client_id: string }): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-etcd-'))
  const file = (name: string) => join(directory, name)
  // Use a random network of 127.0.0.0/8, which is all loopback: there, the fixed ports of docs/fleet.md are free.
  const network = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.`
  // Outgoing connections of a member come from 127.0.0.1, so its certificate must include that address.
  const addresses = ['127.0.0.1', ...MEMBERS.map((member) => network + member)]
  makeCertificates(file, addresses.map((address) => `IP:${address}`).join())
  // Replacements for the names, addresses and files in docs/fleet.md.
  const own = {
    '10.0.0.': network,
    '/etc/mailclaim': directory,
    'https://api.example.com': service.base_url,
    'your-client-id': service.client_id,
  }
  const [, , page = ''] = readFileSync(PAGE, 'utf8')
    .split(/^## \d\. .*$/m)
    .slice(1)
  const blocks = [...page.matchAll(BLOCK)].map(({ groups }) =>
    Object.entries(own).reduce(
      (text, [theirs, ours]) => text.replaceAll(theirs, ours),
      groups?.['text'] ?? '',
    ),
  )
  const [members = '', users = '', key = '', machine = '', ...commands] = blocks
  const children: ChildProcess[] = []
  const env = {
    ...process.env,
    ETCD_CLIENT_CERT_AUTH: 'true',
    ETCD_TRUSTED_CA_FILE: file('ca.pem'),
    ETCD_LOG_LEVEL: 'error',
    ETCD_HEARTBEAT_INTERVAL: '50',
    ETCD_ELECTION_TIMEOUT: '500',
    ETCDCTL_CERT: file('client.pem'),
    ETCDCTL_KEY: file('client.key'),
  }
  const shell = async (text: string, more = {}) =>
    (await promisify(execFile)('sh', ['-euc', text], { cwd: directory, env: { ...env, ...more } })).stdout

  const start = (at: number) => {
    const text = members
      .replace(`name=etcd-1 address=${network}1`, `name=etcd-${at + 1} address=${network}${at + 1}`)
      .replace(/^etcd /m, 'exec etcd ')
    children[at] = spawn('sh', ['-euc', text], { cwd: directory, env, stdio: 'ignore' })
  }
  const kill = async (at: number) => {
    const child = children[at]
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  const leader = async () => {
    for (;;) {
      for (const at of MEMBERS.keys()) {
        try {
          const endpoint = {
            ETCDCTL_ENDPOINTS: `https://${network}${at + 1}:2379`,
            ETCDCTL_CACERT: file('ca.pem'),
          }
          const [{ Status }] = JSON.parse(
            await shell('etcdctl endpoint status -w json --command-timeout 1s', endpoint),
          )
          if (Status.leader !== 0 && Status.leader === Status.header.member_id) return at
        } catch {
          // The member is starting, or has been stopped.
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  onTestFinished(async () => {
    await Promise.all(MEMBERS.map((_, at) => kill(at)))
    rmSync(directory, { recursive: true, force: true })
  })
  for (const at of MEMBERS.keys()) start(at)
  await leader()
  await shell(users)
  await shell(key)
  const variables = (await shell(`${machine}\nenv -0`)).split('\0').map((line) => line.split(/=(.*)/s))
  return {
    env: {
      ...Object.fromEntries(variables.filter(([name]) => /^(MAILCLAIM|NODE_EXTRA)_/.test(name ?? ''))),
      MAILCLAIM_STORE_CERT: file('client.pem'),
      MAILCLAIM_STORE_CERT_KEY: file('client.key'),
    },
    commands: commands.map((text) =>
      text
        .trim()
        .replace(/^mailclaim /, '')
        .split(' '),
    ),
    kill,
    start,
    leader,
  }
}

/** Creates a certificate authority, a certificate for the members at these addresses, and one for the client. */
function makeCertificates(file: (name: string) => string, addresses: string): void {
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' })
  const key = (name: string) => [
    ...'-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout'.split(' '),
    file(name),
  ]
  openssl('req', '-x509', ...key('ca.key'), '-out', file('ca.pem'), '-days', '30', '-subj', '/O=authority')
  const authority = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '30']
  for (const [name, extensions] of [
    ['member', `subjectAltName=${addresses}\nextendedKeyUsage=serverAuth,clientAuth\n`],
    ['client', 'extendedKeyUsage=clientAuth\n'],
  ] as const) {
    // Leave out the common name: etcd's gateway would authenticate its connections as the user of that name.
    openssl('req', '-new', ...key(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/O=${name}`)
    writeFileSync(file(`${name}.ext`), extensions)
    const signed = ['-in', file(`${name}.csr`), '-out', file(`${name}.pem`), '-extfile', file(`${name}.ext`)]
    openssl('x509', '-req', ...signed, ...authority)
  }
}

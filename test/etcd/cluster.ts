import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Three members of etcd on loopback, with TLS, client certificates, and a user that may do no more than docs/fleet.md says. */
export interface Cluster {
  /** The environment of a machine that uses it. */
  readonly env: Readonly<Record<string, string>>
  /** Ends a member with SIGKILL, or starts it again. */
  kill(member: number): Promise<void>
  start(member: number): void
  /** Which member leads; waits until there is one. */
  leader(): Promise<number>
  stop(): Promise<void>
}

const ROOT = ['--user', 'root:only-for-the-tests']

export async function startCluster(): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-etcd-'))
  const file = (name: string) => join(directory, name)
  makeCertificates(file)
  const ports = await Promise.all(Array.from({ length: 6 }, freePort))
  const clients = ports.slice(0, 3).map((port) => `https://127.0.0.1:${port}`)
  const peers = ports.slice(3).map((port) => `http://127.0.0.1:${port}`)
  const initial = peers.map((peer, at) => `member-${at}=${peer}`).join(',')
  const children: ChildProcess[] = []

  const start = (at: number) => {
    const options = {
      name: `member-${at}`,
      'data-dir': file(`data-${at}`),
      'listen-client-urls': clients[at],
      'advertise-client-urls': clients[at],
      'listen-peer-urls': peers[at],
      'initial-advertise-peer-urls': peers[at],
      'initial-cluster': initial,
      'cert-file': file('server.pem'),
      'key-file': file('server.key'),
      'trusted-ca-file': file('ca.pem'),
      'log-level': 'error',
      // Many machines log in at once, and the password is random enough for a fast hash.
      'bcrypt-cost': '4',
      'heartbeat-interval': '50',
      'election-timeout': '500',
    }
    const words = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
    children[at] = spawn('etcd', [...words, '--client-cert-auth'], { stdio: 'ignore' })
  }
  const kill = async (at: number) => {
    const child = children[at]
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  const etcdctl = async (...words: string[]) => {
    const tls = ['--cacert', file('ca.pem'), '--cert', file('client.pem'), '--key', file('client.key')]
    const env = { ...process.env, ETCDCTL_API: '3' }
    return (await promisify(execFile)('etcdctl', [...tls, ...words], { env })).stdout
  }
  const leader = async () => {
    for (;;) {
      for (const [at, url] of clients.entries()) {
        try {
          const words = ['endpoint', 'status', '--endpoints', url, '-w', 'json', '--command-timeout', '1s']
          const [{ Status }] = JSON.parse(await etcdctl(...words))
          if (Status.leader !== 0 && Status.leader === Status.header.member_id) return at
        } catch {
          // It is just starting, or gone.
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  for (const at of clients.keys()) start(at)
  await leader()
  const all = ['--endpoints', clients.join(',')]
  await etcdctl(...all, 'user', 'add', 'root:only-for-the-tests')
  await etcdctl(...all, 'user', 'grant-role', 'root', 'root')
  await etcdctl(...all, 'auth', 'enable')
  const may = ['role', 'grant-permission', 'mailclaim', '--prefix=true', 'readwrite', '/mailclaim/']
  await etcdctl(...all, ...ROOT, 'role', 'add', 'mailclaim')
  await etcdctl(...all, ...ROOT, ...may)
  await etcdctl(...all, ...ROOT, 'user', 'add', 'mailclaim:correct horse battery')
  await etcdctl(...all, ...ROOT, 'user', 'grant-role', 'mailclaim', 'mailclaim')
  return {
    env: {
      MAILCLAIM_STORE: 'etcd',
      MAILCLAIM_STORE_URL: clients.join(','),
      MAILCLAIM_STORE_CERT: file('client.pem'),
      MAILCLAIM_STORE_CERT_KEY: file('client.key'),
      MAILCLAIM_STORE_KEY: Buffer.alloc(32, 5).toString('base64'),
      MAILCLAIM_STORE_USER: 'mailclaim',
      MAILCLAIM_STORE_PASSWORD: 'correct horse battery',
      NODE_EXTRA_CA_CERTS: file('ca.pem'),
    },
    kill,
    start,
    leader,
    async stop() {
      await Promise.all(clients.map((_, at) => kill(at)))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** An authority, a certificate for the members, and one for the client. */
function makeCertificates(file: (name: string) => string): void {
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' })
  const key = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    file(name),
  ]
  openssl(
    'req',
    '-x509',
    ...key('ca.key'),
    '-out',
    file('ca.pem'),
    '-days',
    '30',
    '-subj',
    '/O=test authority',
  )
  const authority = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '30']
  for (const [name, extensions] of [
    ['server', 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n'],
    ['client', 'extendedKeyUsage=clientAuth\n'],
  ] as const) {
    // No common name: with one, the gateway's own connection would count as that user.
    openssl('req', '-new', ...key(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/O=${name}`)
    writeFileSync(file(`${name}.ext`), extensions)
    const signed = ['-in', file(`${name}.csr`), '-out', file(`${name}.pem`), '-extfile', file(`${name}.ext`)]
    openssl('x509', '-req', ...signed, ...authority)
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, connect as open, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const STORE_USER = 'mailclaim'
export const STORE_PASSWORD = 'correct horse battery'

/** Three members of etcd on loopback, with TLS, client certificates, users and passwords. */
export interface Cluster {
  /** What `--store-url` takes. */
  readonly urls: string
  readonly ca: string
  /** A client certificate with its key. */
  readonly cert: string
  readonly certificates: Certificates
  /** Where the members keep what they are told. */
  readonly directory: string
  readonly members: readonly Member[]
  /** The member that leads, by asking all of them. */
  leader(): Promise<Member>
  /** Waits until the cluster has a leader and answers. */
  ready(): Promise<void>
  etcdctl(...words: string[]): Promise<string>
  stop(): Promise<void>
}

export interface Member {
  readonly name: string
  readonly url: string
  readonly data: string
  start(): void
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Cuts it off from the other members, in both directions, or connects it again. */
  isolate(isolated: boolean): void
}

const NAMES = ['one', 'two', 'three'] as const

/** Starts the members, and creates a user that may do no more than docs/fleet.md says. */
export async function startCluster(
  options: { token?: string; snapshot?: string; certificates?: Certificates } = {},
): Promise<Cluster> {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-etcd-'))
  const { token = 'first', snapshot } = options
  const files = options.certificates ?? makeCertificates(directory)
  const relays = await Promise.all(NAMES.map(() => startRelay()))
  const ports = await Promise.all(NAMES.flatMap(() => [freePort(), freePort()]))
  const initial = NAMES.map((name, at) => `${name}=https://127.0.0.1:${relays[at]?.port}`).join(',')
  const members = NAMES.map((name, at): Member & { pid(): number | undefined } => {
    const [client = 0, peer = 0] = ports.slice(at * 2, at * 2 + 2)
    const relay = relays[at] as Relay
    relay.target = peer
    const data = join(directory, name)
    const advertised = `https://127.0.0.1:${relay.port}`
    if (snapshot !== undefined) {
      execFileSync(
        'etcdctl',
        [
          'snapshot',
          'restore',
          snapshot,
          '--data-dir',
          data,
          '--name',
          name,
          '--initial-cluster',
          initial,
        ].concat(['--initial-cluster-token', token, '--initial-advertise-peer-urls', advertised]),
        { env: { ...process.env, ETCDCTL_API: '3' }, stdio: 'pipe' },
      )
    }
    let child: ChildProcess | undefined
    return {
      name,
      url: `https://127.0.0.1:${client}`,
      data,
      pid: () => child?.pid,
      start() {
        const server = ['--cert-file', files.server, '--key-file', files.serverKey]
        const peers = ['--peer-cert-file', files.server, '--peer-key-file', files.serverKey]
        child = spawn(
          'etcd',
          ['--name', name, '--data-dir', data, '--log-level', 'error', '--logger', 'zap']
            .concat(['--listen-client-urls', `https://127.0.0.1:${client}`])
            .concat(['--advertise-client-urls', `https://127.0.0.1:${client}`])
            .concat(['--listen-peer-urls', `https://127.0.0.1:${peer}`])
            .concat(['--initial-advertise-peer-urls', advertised, '--initial-cluster', initial])
            .concat(['--initial-cluster-token', token, '--initial-cluster-state', 'new'])
            // Many machines log in at once, and the password is random enough for a fast hash.
            .concat(['--bcrypt-cost', '4', '--heartbeat-interval', '50', '--election-timeout', '500'])
            .concat([...server, '--client-cert-auth', '--trusted-ca-file', files.ca])
            .concat([...peers, '--peer-client-cert-auth', '--peer-trusted-ca-file', files.ca]),
          { stdio: 'ignore' },
        )
      },
      async kill() {
        const ended = new Promise((resolve) => child?.once('exit', resolve))
        if (child?.exitCode === null && child.signalCode === null) {
          child.kill('SIGKILL')
          await ended
        }
      },
      signal: (signal) => void child?.kill(signal),
      isolate(isolated) {
        for (const [other, { cut }] of relays.entries()) {
          if (other === at) cut(isolated ? () => true : undefined)
          else cut(isolated ? (port) => ownsPort(child?.pid ?? 0, port) : undefined)
        }
      },
    }
  })
  for (const member of members) member.start()
  const all = members.map(({ url }) => url).join(',')
  // Not synchronously: the members talk through relays in this process.
  const etcdctl = async (...words: string[]) => {
    const { stdout } = await promisify(execFile)(
      'etcdctl',
      [...(words.includes('--endpoints') ? [] : ['--endpoints', all]), ...words],
      {
        env: {
          ...process.env,
          ETCDCTL_API: '3',
          ETCDCTL_CACERT: files.ca,
          ETCDCTL_CERT: files.client,
          ETCDCTL_KEY: files.clientKey,
        },
      },
    )
    return stdout
  }
  const leader = async () => {
    for (;;) {
      for (const member of members) {
        try {
          const words = ['endpoint', 'status', '--endpoints', member.url, '-w', 'json']
          const [found] = JSON.parse(await etcdctl('--command-timeout', '1s', ...words)) as [StatusAnswer]
          const { leader: id, header } = found.Status
          if (id === header.member_id) return member
        } catch {
          // It is just starting, or gone.
        }
      }
      await pause(50)
    }
  }
  const cluster: Cluster = {
    urls: all,
    ca: files.ca,
    cert: files.combined,
    certificates: files,
    directory,
    members,
    leader,
    etcdctl,
    async ready() {
      await leader()
    },
    async stop() {
      await Promise.all(members.map((member) => member.kill()))
      for (const { server, cut } of relays) {
        cut(() => true)
        server.close()
      }
      rmSync(directory, { recursive: true, force: true })
    },
  }
  await cluster.ready()
  if (snapshot === undefined) {
    await etcdctl('user', 'add', 'root:only-for-the-tests')
    await etcdctl('role', 'add', 'mailclaim')
    await etcdctl('role', 'grant-permission', 'mailclaim', '--prefix=true', 'readwrite', '/mailclaim/')
    await etcdctl('user', 'add', `${STORE_USER}:${STORE_PASSWORD}`)
    await etcdctl('user', 'grant-role', STORE_USER, 'mailclaim')
    await etcdctl('user', 'grant-role', 'root', 'root')
    await etcdctl('auth', 'enable')
  }
  return cluster
}

interface StatusAnswer {
  readonly Status: { readonly leader: number; readonly header: { readonly member_id: number } }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** What `etcdctl` takes to act as the user that may do everything. */
export const AS_ROOT = ['--user', 'root:only-for-the-tests']

type Certificates = ReturnType<typeof makeCertificates>

/** An authority, a certificate for the members, and one for the client. */
function makeCertificates(directory: string) {
  const tls = join(directory, 'tls')
  mkdirSync(tls)
  const file = (name: string) => join(tls, name)
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
  const sign = (name: string, extensions: string) => {
    // No common name: with one, the gateway's own connection would count as that user.
    openssl('req', '-new', ...key(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/O=${name}`)
    writeFileSync(file(`${name}.ext`), extensions)
    const authority = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial']
    openssl(
      'x509',
      '-req',
      '-in',
      file(`${name}.csr`),
      ...authority,
      '-out',
      file(`${name}.pem`),
      '-days',
      '30',
      '-extfile',
      file(`${name}.ext`),
    )
  }
  sign('server', 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n')
  sign('client', 'extendedKeyUsage=clientAuth\n')
  const combined = file('client-with-key.pem')
  writeFileSync(
    combined,
    readFileSync(file('client.pem'), 'utf8') + readFileSync(file('client.key'), 'utf8'),
    {
      mode: 0o600,
    },
  )
  return {
    ca: file('ca.pem'),
    server: file('server.pem'),
    serverKey: file('server.key'),
    client: file('client.pem'),
    clientKey: file('client.key'),
    combined,
  }
}

/** Stands between the members, or between a client and a member. */
export interface Relay {
  readonly server: Server
  readonly port: number
  target: number
  /** Ends the connections whose client's port is chosen, and refuses new ones; undefined lets all through again. */
  cut(chosen: ((clientPort: number) => boolean) | undefined): void
}

export async function startRelay(
  watch: (from: 'client' | 'server', piece: Buffer, end: () => void) => void = () => {},
): Promise<Relay> {
  const pairs = new Map<Socket, Socket>()
  let isCut: ((clientPort: number) => boolean) | undefined
  const server = createServer((client) => {
    if (isCut?.(client.remotePort ?? 0)) return void client.destroy()
    const upstream = open(relay.target, '127.0.0.1')
    pairs.set(client, upstream)
    const end = () => {
      client.destroy()
      upstream.destroy()
      pairs.delete(client)
    }
    const pass = (from: 'client' | 'server', source: Socket, sink: Socket) => {
      source.on('data', (piece) => {
        watch(from, piece, end)
        sink.write(piece)
      })
      source.on('error', end).on('close', end)
    }
    pass('client', client, upstream)
    pass('server', upstream, client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const relay: Relay = {
    server,
    port: (server.address() as { port: number }).port,
    target: 0,
    cut(chosen) {
      isCut = chosen
      for (const [client, upstream] of pairs) {
        if (!chosen?.(client.remotePort ?? 0)) continue
        client.destroy()
        upstream.destroy()
      }
    },
  }
  return relay
}

/** Whether a process holds the local end of a connection from this port: the members can't be told apart otherwise. */
function ownsPort(pid: number, port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  try {
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .find((row) => row.includes(`0100007F:${hex} `) && row.trim().split(/\s+/)[1] === `0100007F:${hex}`)
    const inode = line?.trim().split(/\s+/)[9]
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`
      } catch {
        return false
      }
    })
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

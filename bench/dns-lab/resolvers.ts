import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ServerProcess, startProcess } from '../../test/dns/servers/processes.ts'
import { ROOT, run } from './network.ts'
import { untilAnswering } from './processes.ts'

export const RESOLVERS = ['unbound', 'unbound-plain', 'bind', 'knot-resolver', 'dnsmasq', 'powerdns'] as const
export type ResolverKind = (typeof RESOLVERS)[number]

export interface Resolver extends ServerProcess {
  readonly address: string
}

export interface ResolverOptions {
  /** Zones with other servers, as for resolvers inside a company. */
  readonly stubs?: Readonly<Record<string, string>>
}

/** Starts resolvers with a cold cache: each is a new process. */
export class ResolverMaker {
  private count = 0
  private readonly directory: string
  private readonly anchor: string
  private readonly hints: string

  constructor(directory: string, anchor: string) {
    this.directory = directory
    this.anchor = anchor
    this.hints = join(directory, 'root.hints')
    const lines = ROOT.flatMap((address, index) => [
      `. 3600000 NS ${'ab'[index]}.root-servers.`,
      `${'ab'[index]}.root-servers. 3600000 A ${address}`,
    ])
    writeFileSync(this.hints, `${lines.join('\n')}\n`)
  }

  async start(kind: ResolverKind, options: ResolverOptions = {}): Promise<Resolver> {
    const number = this.count
    this.count += 1
    const address = `198.19.${Math.floor(number / 250)}.${1 + (number % 250)}`
    const own = join(this.directory, `resolver-${number}`)
    mkdirSync(own)
    const upstream = kind === 'dnsmasq' ? await this.start('unbound', options) : undefined
    const server = this.launch(kind, address, own, upstream?.address ?? '', options)
    try {
      await untilAnswering(address, server, 'status.lab.')
    } catch (error) {
      await server.stop()
      throw error
    }
    return {
      address,
      output: server.output,
      stop: async () => {
        await server.stop()
        await upstream?.stop()
      },
    }
  }

  private launch(
    kind: ResolverKind,
    address: string,
    own: string,
    upstream: string,
    options: ResolverOptions,
  ): ServerProcess {
    const place = (name: string, lines: readonly string[]): string => {
      const file = join(own, name)
      writeFileSync(file, `${lines.join('\n')}\n`)
      return file
    }
    switch (kind) {
      case 'unbound':
      case 'unbound-plain':
        return startProcess('unbound', [
          '-d',
          '-c',
          place('conf', this.unbound(address, kind === 'unbound', options)),
        ])
      case 'bind':
        run('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'])
        return startProcess('named', ['-g', '-n', '1', '-c', place('conf', this.bind(address, own))])
      case 'knot-resolver':
        return startProcess('kresd', ['-n', '-c', place('conf', this.knotResolver(address, place)), own])
      case 'powerdns':
        return startProcess('pdns_recursor', this.powerDns(address, own, place))
      case 'dnsmasq':
        return startProcess('dnsmasq', [
          '--keep-in-foreground',
          '--conf-file=/dev/null',
          '--no-resolv',
          '--no-hosts',
          '--user=root',
          '--bind-interfaces',
          `--pid-file=${own}/pid`,
          `--listen-address=${address}`,
          `--server=${upstream}`,
        ])
    }
  }

  private unbound(address: string, validates: boolean, { stubs = {} }: ResolverOptions): string[] {
    return [
      'server:',
      `  interface: ${address}`,
      '  chroot: ""',
      '  username: ""',
      '  pidfile: ""',
      '  use-syslog: no',
      '  num-threads: 1',
      '  do-not-query-localhost: no',
      '  access-control: 0.0.0.0/0 allow',
      `  module-config: "${validates ? 'validator ' : ''}iterator"`,
      '  ede: yes',
      '  val-log-level: 2',
      `  root-hints: "${this.hints}"`,
      ...(validates ? [`  trust-anchor: "${this.anchor}"`] : []),
      ...Object.keys(stubs).map((apex) => `  domain-insecure: "${apex}"`),
      '  local-zone: "lab." static',
      'remote-control:',
      '  control-enable: no',
      ...Object.entries(stubs).flatMap(([apex, server]) => [
        'stub-zone:',
        `  name: "${apex}"`,
        `  stub-addr: ${server}`,
      ]),
    ]
  }

  private bind(address: string, own: string): string[] {
    const [, , , tag, algorithm, digestType, digest] = this.anchor.split(/\s+/)
    return [
      'controls { };',
      `trust-anchors { . static-ds ${tag} ${algorithm} ${digestType} "${digest}"; };`.replace('DS ', ''),
      'options {',
      `  directory "${own}";`,
      `  pid-file "${own}/pid";`,
      `  session-keyfile "${own}/session";`,
      `  listen-on { ${address}; };`,
      '  listen-on-v6 { none; };',
      '  recursion yes;',
      '  allow-query { any; };',
      '  allow-recursion { any; };',
      '  dnssec-validation yes;',
      '  empty-zones-enable no;',
      '};',
      `zone "." { type hint; file "${this.hints}"; };`,
    ]
  }

  private knotResolver(address: string, place: (name: string, lines: readonly string[]) => string): string[] {
    const anchor = place('root.keys', [this.anchor])
    return [
      `net.listen('${address}', 53, { kind = 'dns' })`,
      'net.ipv6 = true',
      "modules = { 'hints' }",
      `hints.root_file('${this.hints}')`,
      `trust_anchors.add_file('${anchor}', true)`,
      'cache.size = 10 * MB',
    ]
  }

  private powerDns(
    address: string,
    own: string,
    place: (name: string, lines: readonly string[]) => string,
  ): string[] {
    const lua = place('conf.lua', [`clearTA(); addTA(".", "${this.anchor.split(' DS ')[1] ?? ''}")`])
    return [
      `--config-dir=${own}`,
      `--socket-dir=${own}`,
      `--local-address=${address}`,
      `--hint-file=${this.hints}`,
      `--lua-config-file=${lua}`,
      '--dont-query=',
      '--allow-from=0.0.0.0/0',
      '--dnssec=validate',
      '--daemon=no',
      '--write-pid=no',
      '--threads=1',
      '--quiet=yes',
      '--security-poll-suffix=',
      '--any-to-tcp=no',
    ]
  }
}

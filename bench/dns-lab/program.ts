import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAM_USER } from './network.ts'

/** The parts of `claims check --json` that the laboratory reads. */
export interface Report {
  readonly verdict: string
  readonly retry_after_seconds: number | null
  readonly zone: string | null
  readonly findings: readonly Finding[]
}

export interface Finding {
  readonly code: string
  readonly severity: 'error' | 'warning' | 'info'
  readonly message: string
  readonly fix: string
  readonly evidence: Readonly<Record<string, unknown>>
}

/** One datagram or TCP message that the program sent, with its answers; in base64, times in ms since its start. */
export interface Exchange {
  readonly transport: 'udp' | 'tcp'
  readonly address: string
  readonly message: string
  readonly at: number
  readonly answers: readonly { readonly at: number; readonly message: string }[]
}

export interface Run {
  /** Undefined if it printed no report. */
  readonly report: Report | undefined
  /** Null if it was killed. */
  readonly exit: number | null
  readonly seconds: number
  readonly peakMiB: number
  /** Empty if it was killed. */
  readonly exchanges: readonly Exchange[]
  readonly stderr: string
}

export interface CheckOptions {
  readonly name: string
  readonly value: string
  readonly resolvers: readonly string[]
  /** The process is killed after this. */
  readonly timeoutMs?: number
}

const asRoot = process.getuid?.() === 0 && canBecomeOthers()

/** In a user namespace with one user, the program can't run as another one. */
function canBecomeOthers(): boolean {
  return (readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/)[2] ?? '1') !== '1'
}

/** Runs the built program once, with empty state, and observes it from outside. */
export async function check({ name, value, resolvers, timeoutMs = 25_000 }: CheckOptions): Promise<Run> {
  const home = mkdtempSync(join(tmpdir(), 'mailclaim-dns-lab-home-'))
  chmodSync(home, 0o777)
  const record = join(home, 'record.json')
  const args = [
    ...['claims', 'check', '--name', name, '--value', value, '--json', '--quiet', '--no-input'],
    ...resolvers.flatMap((resolver) => ['--resolver', resolver]),
  ]
  const started = performance.now()
  const child = spawn(process.execPath, ['bin/mailclaim.js', ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      NODE_OPTIONS: `--import=${join(process.cwd(), 'bench/dns-lab/recorder.mjs')}`,
      DNS_LAB_RECORD: record,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(asRoot ? { uid: PROGRAM_USER, gid: PROGRAM_USER } : {}),
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (piece: Buffer) => {
    stdout += piece
  })
  child.stderr.on('data', (piece: Buffer) => {
    stderr = (stderr + piece).slice(-4000)
  })
  let peakKiB = 0
  const watch = setInterval(() => {
    peakKiB = Math.max(peakKiB, residentPeakKiB(child.pid))
    if (performance.now() - started > timeoutMs || peakKiB > 2_000_000) child.kill('SIGKILL')
  }, 100)
  const exit = await new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)))
  clearInterval(watch)
  const seconds = (performance.now() - started) / 1000
  const recorded = readJson<{ exchanges: Exchange[]; maxRssKiB: number }>(() => readFileSync(record, 'utf8'))
  rmSync(home, { recursive: true, force: true })
  return {
    report: readJson<Report>(() => stdout),
    exit,
    seconds,
    peakMiB: Math.max(peakKiB, recorded?.maxRssKiB ?? 0) / 1024,
    exchanges: recorded?.exchanges ?? [],
    stderr,
  }
}

function residentPeakKiB(pid: number | undefined): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

function readJson<T>(read: () => string): T | undefined {
  try {
    return JSON.parse(read()) as T
  } catch {
    return undefined
  }
}

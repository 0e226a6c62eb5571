import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export const WINE = '/usr/lib/wine/wine64'

/** Parts of a machine that some tests need: the programs that have to be there, or a condition. */
const PARTS = {
  chromium: ['chromium'],
  'gnome-keyring': ['gnome-keyring-daemon', 'dbus-run-session'],
  knotd: ['knotd'],
  nsupdate: ['nsupdate'],
  unbound: ['unbound'],
  tmux: ['tmux'],
  bash: ['bash'],
  dash: ['dash'],
  zsh: ['zsh'],
  fish: ['fish'],
  strace: ['strace'],
  script: ['script'],
  curl: ['curl'],
  jq: ['jq'],
  openssl: ['openssl'],
  etcd: ['etcd', 'etcdctl', 'openssl'],
  python3: ['python3'],
  sha256sum: ['sha256sum'],
  busybox: ['busybox'],
  shellcheck: ['shellcheck'],
  cc: ['cc'],
  /** Owners and permissions of files, symbolic links, signals, and a POSIX shell. */
  posix: () => process.platform !== 'win32',
  root: () => process.getuid?.() === 0,
  /** Wine, as Debian installs it, and the Node for Windows that `.ci/run` fetches. */
  wine: () => [WINE, process.env['MAILCLAIM_TEST_WINDOWS_NODE'] ?? ''].every(existsSync),
} as const

export type Part = keyof typeof PARTS

/** Directories where Debian installs servers, which a user's PATH may lack. */
const ALSO = ['/usr/sbin', '/usr/local/sbin', '/sbin']

/**
 * Returns the path of a program, or undefined. On Windows, whose programs end in `.exe`, none is found: the tests need a
 * POSIX system.
 */
export function find(program: string): string | undefined {
  for (const directory of [...(process.env['PATH'] ?? '').split(delimiter), ...ALSO]) {
    const path = join(directory, program)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The directory has no such program: continue with the next one.
    }
  }
  return undefined
}

/**
 * Whether the machine has these parts, for `describe.runIf(needs('chromium'))`, which reports the tests as skipped if
 * not. Under `MAILCLAIM_TEST_REQUIRE=all` nothing may be skipped.
 * @throws Error under `MAILCLAIM_TEST_REQUIRE=all`, naming what is missing.
 */
export function needs(...parts: readonly Part[]): boolean {
  const absent = parts.filter((part) => {
    const needed: readonly string[] | (() => boolean) = PARTS[part]
    return typeof needed === 'function' ? !needed() : needed.some((program) => find(program) === undefined)
  })
  if (absent.length > 0 && process.env['MAILCLAIM_TEST_REQUIRE'] === 'all') {
    throw new Error(`MAILCLAIM_TEST_REQUIRE=all, but this machine lacks ${absent.join(', ')}`)
  }
  return absent.length === 0
}

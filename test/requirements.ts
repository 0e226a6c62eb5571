import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

export const WINE = '/usr/lib/wine/wine64'

/** Requirements of tests on the machine, by name: a list of programs that must all be installed, or a condition. */
const REQUIREMENTS = {
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
  /** A system with file owners and permissions, symbolic links, signals, and a POSIX shell. */
  posix: () => process.platform !== 'win32',
  root: () => process.getuid?.() === 0,
  /** Wine at Debian's path, and the Node for Windows that `.ci/run` downloads. */
  wine: () => [WINE, process.env['MAILCLAIM_TEST_WINDOWS_NODE'] ?? ''].every(existsSync),
} as const

export type Requirement = keyof typeof REQUIREMENTS

/** Directories where Debian installs servers, which a user's PATH may lack. */
const SYSTEM_DIRECTORIES = ['/usr/sbin', '/usr/local/sbin', '/sbin']

/**
 * Returns the path of a program in PATH or `SYSTEM_DIRECTORIES`; undefined if it isn't installed, and on Windows, where file names
 * end in `.exe`.
 */
export function which(program: string): string | undefined {
  for (const directory of [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_DIRECTORIES]) {
    const path = join(directory, program)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The program isn't in this directory: try the next directory.
    }
  }
  return undefined
}

/**
 * Whether the machine has all these parts, for `describe.runIf(needs('chromium'))`, which otherwise skips the tests.
 *
 * @throws Error with the missing parts if `MAILCLAIM_TEST_REQUIRE=all` forbids skipping
 */
export function needs(...parts: readonly Requirement[]): boolean {
  const absent = parts.filter((part) => {
    const needed: readonly string[] | (() => boolean) = REQUIREMENTS[part]
    return typeof needed === 'function' ? !needed() : needed.some((program) => which(program) === undefined)
  })
  if (absent.length > 0 && process.env['MAILCLAIM_TEST_REQUIRE'] === 'all') {
    throw new Error(`MAILCLAIM_TEST_REQUIRE=all, but this machine lacks ${absent.join(', ')}`)
  }
  return absent.length === 0
}

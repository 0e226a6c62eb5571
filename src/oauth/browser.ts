import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import open from 'open'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { renderRedirectPage } from './redirect-page.ts'

export interface BrowserOptions {
  readonly platform: NodeJS.Platform
  /** A private directory for the page that the browser opens. */
  readonly directory: string
  /** Whether the browser runs on another system, which doesn't see our files. */
  readonly browserElsewhere: boolean
}

/** A page that is this old belongs to a process that died. */
const STALE_MS = 24 * 60 * 60 * 1000
/** How long the desktop may take to name the browser, in milliseconds. */
const DESKTOP_TIMEOUT_MS = 2000

/**
 * Opens an http(s) address in the person's browser. On a system where every user can read the arguments of every
 * process (/proc on Linux, ps on macOS), the browser gets a file that only the person can read and that redirects to the
 * address: whoever knows its state and code challenge could sign the person in to another account.
 *
 * @param over aborts when the address is no longer needed: the file is removed.
 * @throws Error if no browser can be started.
 */
export async function openBrowser(url: string, over: AbortSignal, options: BrowserOptions): Promise<void> {
  const { protocol } = new URL(url)
  // The system's opener could start another program for any other scheme.
  if (protocol !== 'https:' && protocol !== 'http:') throw new Error(`${protocol} is not opened in a browser`)
  const target = (await canReadOurFiles(options)) ? await writePage(url, over, options.directory) : url
  const child = await open(target)
  if (child.pid === undefined) await once(child, 'spawn')
  child.unref()
}

/**
 * Whether the browser can open a file in the state directory, and should. A browser in a snap sees no hidden directories,
 * and one in a Flatpak only what it was given. On Windows, and so in WSL, other users can't read a process's arguments.
 */
async function canReadOurFiles({ platform, browserElsewhere }: BrowserOptions): Promise<boolean> {
  if (browserElsewhere || platform === 'win32' || platform === 'android') return false
  if (platform === 'darwin') return true
  return !isConfined(await defaultBrowser())
}

/** The name of the default browser's desktop entry; empty if the desktop doesn't say. */
function defaultBrowser(): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      'xdg-settings',
      ['get', 'default-web-browser'],
      { timeout: DESKTOP_TIMEOUT_MS },
      (error, stdout) => resolve(error === null ? stdout.trim() : ''),
    )
  })
}

/** Whether a desktop entry belongs to a snap, which names it SNAP_APP.desktop, or was installed by Flatpak. */
function isConfined(entry: string): boolean {
  if (!/^[\w.-]+\.desktop$/.test(entry)) return false
  if (/^[a-z0-9-]+_/.test(entry)) return true
  return ['/var/lib', join(homedir(), '.local/share')].some((data) =>
    existsSync(join(data, 'flatpak/exports/share/applications', entry)),
  )
}

/** @returns the file's address. */
async function writePage(url: string, over: AbortSignal, directory: string): Promise<string> {
  await ensurePrivateDirectory(directory)
  removeStalePages(directory)
  over.throwIfAborted()
  const path = join(directory, `login-${randomBytes(16).toString('hex')}.html`)
  // "wx" follows no link.
  writeFileSync(path, renderRedirectPage(url), { flag: 'wx', mode: 0o600 })
  // Synchronous: the process may be about to end.
  over.addEventListener('abort', () => rmSync(path, { force: true }), { once: true })
  return pathToFileURL(path).href
}

function removeStalePages(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (!/^login-[0-9a-f]{32}\.html$/.test(name)) continue
    const path = join(directory, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found !== undefined && Date.now() - found.mtimeMs > STALE_MS) rmSync(path, { force: true })
  }
}

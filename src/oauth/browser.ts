import { once } from 'node:events'
import open from 'open'

/** Opens an http(s) address in the person's browser. Rejects when no program for it can be started. */
export async function openBrowser(url: string): Promise<void> {
  const { protocol } = new URL(url)
  // Handed to the system's opener: any other scheme could start any other program.
  if (protocol !== 'https:' && protocol !== 'http:') throw new Error(`${protocol} is not opened in a browser`)
  const child = await open(url)
  if (child.pid === undefined) await once(child, 'spawn')
  child.unref()
}

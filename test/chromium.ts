import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'
import { which } from './requirements.ts'

/** Starts the machine's Chromium. Tests that call this run only if `needs('chromium')`. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: which('chromium') ?? 'chromium',
    // Containers have no user namespaces for Chromium's sandbox, no graphics, and little shared memory.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
}

/**
 * Returns the accessibility violations of a page, each as a rule with its markup. The debugger evaluates axe-core, since the page's
 * content security policy would block a script in the page.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'))
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    const found = await axe.run()
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
  })
}

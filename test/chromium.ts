import { type Browser, chromium } from 'playwright-core'
import { find } from './requirements.ts'

/** Starts the machine's Chromium, for tests that run if it `needs('chromium')`. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: find('chromium') ?? 'chromium',
    // Containers have no user namespaces for its sandbox, no graphics, and little shared memory.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  })
}

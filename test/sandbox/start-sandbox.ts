import { afterEach, expect } from 'vitest'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts'

const running: Sandbox[] = []
/** Lines that a sandbox logged. Each one is an unexpected error, so a test with any fails. */
const complaints: string[] = []

/** Starts a sandbox in this process, by default on free ports, and closes it after the test. */
export async function sandboxForTest(options: Omit<SandboxOptions, 'log'> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ ...options, log: (line) => void complaints.push(line) })
  running.push(sandbox)
  return sandbox
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()))
  expect(complaints.splice(0)).toEqual([])
})

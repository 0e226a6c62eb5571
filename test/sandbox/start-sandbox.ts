import { afterEach, expect } from 'vitest'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts'

const running: Sandbox[] = []
/** What a sandbox logs means that it has a bug. */
const complaints: string[] = []

/** Starts a sandbox in this process on free ports; it is closed after the test. */
export async function sandboxForTest(options: Omit<SandboxOptions, 'log'> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ ...options, log: (line) => void complaints.push(line) })
  running.push(sandbox)
  return sandbox
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()))
  expect(complaints.splice(0)).toEqual([])
})

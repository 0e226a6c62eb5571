import { randomBytes } from 'node:crypto'
import { afterEach, expect } from 'vitest'
import {
  type Sandbox,
  type SandboxOptions,
  type SandboxRuntime,
  startSandbox,
} from '../../src/sandbox/sandbox.ts'

const running: Sandbox[] = []
const complaints: string[] = []

/** A real clock and real randomness for a sandbox; what it logs is kept, because a log means that the sandbox has a bug. */
function realSandboxRuntime(logged: string[] = []): SandboxRuntime {
  return {
    clock: {
      now: () => Date.now(),
      after(ms, run) {
        const timer = setTimeout(run, ms)
        return () => clearTimeout(timer)
      },
    },
    random: { bytes: (length) => randomBytes(length) },
    log: (line) => void logged.push(line),
  }
}

/** Starts a sandbox in this process on free ports; it is closed after the test. */
export async function sandboxForTest(options: Omit<SandboxOptions, 'runtime'> = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ ...options, runtime: realSandboxRuntime(complaints) })
  running.push(sandbox)
  return sandbox
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()))
  expect(complaints.splice(0)).toEqual([])
})

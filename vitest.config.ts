import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/property-seed.ts'],
    // Stories start real processes on a machine that may have two cores: a generous limit is not a timed test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    // Modules hold nothing but definitions, so files can share them, and each worker reads them once.
    isolate: false,
    // Most of the time a story waits for other processes: three files at a time keep two cores busy.
    maxWorkers: 3,
  },
})

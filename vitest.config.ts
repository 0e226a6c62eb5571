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
    // Most of the time a story waits for other processes: on a machine of two cores, two files at a time.
    maxWorkers: 2,
  },
})

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['bench/chaos/*.chaos.ts'],
    // One file uses all cores, so files run one after the other.
    fileParallelism: false,
    // Milliseconds for a test; the scenarios limit the number of runs.
    testTimeout: 900_000,
    hookTimeout: 60_000,
    pool: 'forks',
    disableConsoleIntercept: true,
  },
})

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['bench/chaos/*.chaos.ts'],
    // Run one file after the other, since each uses all cores.
    fileParallelism: false,
    // Milliseconds for a test that sets no timeout of its own; the scenarios limit the number of runs.
    testTimeout: 900_000,
    hookTimeout: 60_000,
    pool: 'forks',
    disableConsoleIntercept: true,
  },
})

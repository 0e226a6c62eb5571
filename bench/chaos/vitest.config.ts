import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['bench/chaos/*.chaos.ts'],
    // Each file keeps the machine busy by itself.
    fileParallelism: false,
    // Bounded in count by the scenarios, and in time by this.
    testTimeout: 900_000,
    hookTimeout: 60_000,
    pool: 'forks',
    disableConsoleIntercept: true,
  },
})

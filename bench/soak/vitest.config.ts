import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['bench/soak/*.soak.ts'],
    // Bounded in count by the test, and in time by this.
    testTimeout: 900_000,
    hookTimeout: 60_000,
    pool: 'forks',
    disableConsoleIntercept: true,
  },
})

import { build } from 'esbuild'
import { defineConfig } from 'vitest/config'
import { currentStringWidth } from './scripts/build-plugins.mjs'

/** cli-table3 as it is in the program: with today's string-width instead of its own. */
const tableLibrary = {
  name: 'table-library',
  enforce: 'pre' as const,
  resolveId: (id: string) => (id === 'cli-table3' ? '\0cli-table3' : undefined),
  async load(id: string) {
    if (id !== '\0cli-table3') return undefined
    const { outputFiles } = await build({
      entryPoints: ['cli-table3'],
      absWorkingDir: import.meta.dirname,
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      plugins: [currentStringWidth(import.meta.dirname, ['cli-table3'])],
    })
    return outputFiles[0]?.text
  },
}

export default defineConfig({
  plugins: [tableLibrary],
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/property-seed.ts'],
    // Stories start real processes on a machine that may have two cores: a generous limit is not a timed test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Most of the time a story waits for other processes: on a machine of two cores, two files at a time.
    maxWorkers: 2,
  },
})

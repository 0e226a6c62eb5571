// Bundles the program into dist/: what a command does not need is in a chunk of its own and is not loaded.
import { readFile, rm } from 'node:fs/promises'
import { build } from 'esbuild'

const root = new URL('..', import.meta.url)
const { version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8'))

/**
 * Parts of the HTTP client that this program never reaches and that cost start-up time: HTTP/2 (it is never offered, and
 * its module loads Node's own) and bodies of fetch (every body here is a string).
 */
const leaveOut = {
  name: 'leave-out',
  setup({ onLoad }) {
    onLoad({ filter: /undici[\\/]lib[\\/](dispatcher[\\/]client-h2|web[\\/]fetch[\\/]body)\.js$/ }, () => ({
      contents: 'module.exports = {}',
    }))
  },
}

await rm(new URL('dist/', root), { recursive: true, force: true })
await build({
  absWorkingDir: new URL('.', root).pathname,
  entryPoints: { main: 'src/main.ts', 'keychain-helper': 'src/credentials/keychain-helper.ts' },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  chunkNames: 'chunks/[name]-[hash]',
  define: { MAILCLAIM_VERSION: JSON.stringify(version) },
  // Native packages cannot be bundled; they are the only dependencies that are installed with the program.
  external: ['keytar', 'fs-native-extensions'],
  // Bundled CommonJS packages still ask for Node's own modules with require().
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
  },
  plugins: [leaveOut],
  logLevel: 'warning',
})

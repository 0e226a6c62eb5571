// Bundles the program into dist/. What a command doesn't need is in a chunk of its own and isn't loaded.
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { coreChunk, leanUndici, nativeLocks, nodeBuiltins } from './build-plugins.mjs'
import { bundledPackages, licenseNotices } from './bundled-packages.mjs'

const root = join(import.meta.dirname, '..')
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const dist = join(root, 'dist')
const modules = join(dist, 'modules')

const common = {
  absWorkingDir: root,
  platform: 'node',
  target: 'node20.19',
  // A third less to install. A start takes as long without it.
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
}

/** What every command needs, and what is so small that a file of its own takes longer: each takes 0.2 to 0.4 ms to find and load. */
const CORE = [
  './src/main.ts',
  './src/commands/definition.ts',
  './src/session/credential.ts',
  // For commands that ask the service, without its HTTP client.
  './src/session/connect.ts',
  // A line each, which loads the module when it is used.
  ...['async_hooks', 'buffer', 'url', 'util'].map((name) => `node:${name}`),
]

await rm(dist, { recursive: true, force: true })
const { metafile } = await build({
  ...common,
  // The second is a program of its own, the keychain's helper process.
  entryPoints: ['src/main.ts', 'src/credentials/keychain-helper.ts'],
  outdir: modules,
  // All in one directory: code that names a file beside it may end up in an entry or in a chunk.
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  format: 'esm',
  // Installed, as the one optional package.
  external: ['keytar'],
  // One measure of texts for the whole program, in place of those that cli-table3 and ora bring.
  alias: { 'string-width': './scripts/string-width.cjs' },
  define: { MAILCLAIM_VERSION: JSON.stringify(version) },
  // Some packages have no default export.
  logOverride: { 'import-is-undefined': 'silent' },
  plugins: [leanUndici(), nodeBuiltins(), nativeLocks(), coreChunk(root, CORE)],
  metafile: true,
})

// esbuild splits only ES modules, and Node loads CommonJS faster, by 7 to 20 ms: at once, without its asynchronous loader.
await writeFile(join(dist, 'package.json'), '{ "type": "commonjs" }\n')
await build({
  ...common,
  entryPoints: (await readdir(modules)).map((name) => join(modules, name)),
  outdir: dist,
  format: 'cjs',
  // `import()` becomes `require`; otherwise it would start the asynchronous loader after all.
  supported: { 'dynamic-import': false },
  // Only `open` asks for its address, and copes without it: it takes the system's xdg-open.
  define: {
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
    'import.meta.url': 'undefined',
  },
  // Any other member of import.meta is an error.
  logOverride: { 'empty-import-meta': 'error' },
})
await rm(modules, { recursive: true })

await writeFile(join(dist, 'THIRD-PARTY-NOTICES.txt'), licenseNotices(await bundledPackages(root, metafile)))
await cp(join(root, 'node_modules/fs-native-extensions/prebuilds'), join(dist, 'native'), {
  recursive: true,
  // No phones, and nothing for a runtime other than Node.
  filter: (path) => !/[\\/](android|ios)[^\\/]*$|\.bare$/.test(path),
})

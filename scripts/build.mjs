// Bundles the program into dist/. What a command doesn't need is in a chunk of its own and isn't loaded.
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { chunksAsCommonJs, coreChunk, leanUndici, nativeLocks, nodeBuiltins } from './build-plugins.mjs'
import { billOfMaterials, bundledPackages, licenseNotices } from './bundled-packages.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const dist = join(root, 'dist')
const modules = join(dist, 'modules')

/** Which modules share a file. */
const SHARED = {
  /** What every command needs. */
  core: ['./src/main.ts', './src/commands/definition.ts'],
  /** What nearly every one adds, and what is too small for a file of its own. */
  common: [
    './src/session/credential.ts',
    './src/session/connect.ts',
    './src/service/claims.ts',
    './src/service/lists.ts',
    './src/service/types.ts',
    './src/imports/columns.ts',
    './src/commands/lists.ts',
    'node:async_hooks',
    'node:buffer',
    'node:url',
    'node:util',
  ],
  /** Scripts call it in loops, so it loads only what it needs of these. */
  lean: ['./src/commands/auth/token.ts'],
}

/** Takes its own xdg-open if it has an address, else the system's. */
const COPES_WITHOUT_URL = ['node_modules/open/index.js']

const common = {
  absWorkingDir: root,
  alias: { 'string-width': './scripts/string-width.cjs' },
  platform: 'node',
  target: 'node20.19',
  // Half the bytes take V8 half the time to read. The source maps give stack traces their names and lines back; only
  // --verbose opens them.
  minify: true,
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
}

await rm(dist, { recursive: true, force: true })
const { metafile } = await build({
  ...common,
  entryPoints: ['src/main.ts'],
  outdir: modules,
  bundle: true,
  splitting: true,
  format: 'esm',
  // All in one directory: code that names a file beside it may end up in an entry or in a chunk.
  chunkNames: '[name]-[hash]',
  define: { MAILCLAIM_VERSION: JSON.stringify(manifest.version) },
  plugins: [leanUndici(), nodeBuiltins(), nativeLocks(), coreChunk(root, SHARED)],
  metafile: true,
})

// CommonJS has no address of a module. A new user of it must not find out at run time.
for (const path of Object.keys(metafile.inputs).filter((name) => !/^[\w-]+:/.test(name))) {
  const asksForUrl = (await readFile(join(root, path), 'utf8')).includes('import.meta.url')
  if (asksForUrl && !COPES_WITHOUT_URL.some((one) => path.endsWith(one)))
    throw new Error(`${path} needs import.meta.url`)
}

// esbuild splits only ES modules, and Node loads CommonJS faster: at once, without its asynchronous loader and thread
// pool. This file comes first, because esbuild reads it to decide how one chunk imports another's default export.
await writeFile(join(dist, 'package.json'), '{ "type": "commonjs" }\n')
const commonjs = {
  ...common,
  outdir: dist,
  format: 'cjs',
  // `import()` becomes `require`; otherwise it would start the asynchronous loader after all.
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
    'import.meta.url': 'undefined',
  },
  // Any other member of import.meta is an error.
  logOverride: { 'empty-import-meta': 'error', 'commonjs-variable-in-esm': 'silent' },
}
await build({ ...commonjs, ...chunksAsCommonJs(modules, metafile.outputs) })
// A program of its own: a file that it shared with the main one would be one more at every start.
await build({
  ...commonjs,
  entryPoints: ['src/credentials/keychain-helper.ts'],
  bundle: true,
  // keytar is installed, and no other package can slip in without its license.
  packages: 'external',
})
await rm(modules, { recursive: true })

const packages = await bundledPackages(root, metafile, dist)
await writeFile(join(dist, 'THIRD-PARTY-NOTICES.txt'), licenseNotices(packages))
await writeFile(join(dist, 'sbom.cdx.json'), billOfMaterials(manifest, packages))
await cp(join(root, 'node_modules/fs-native-extensions/prebuilds'), join(dist, 'native'), {
  recursive: true,
  // No phones, and nothing for a runtime other than Node.
  filter: (path) => !/[\\/](android|ios)[^\\/]*$|\.bare$/.test(path),
})

// Bundles the program into dist/. What a command doesn't need is in a chunk of its own and isn't loaded.
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { beginScript } from './begin.mjs'
import { commanderModules, coreChunk, leanUndici, nativeAddon, nodeBuiltins } from './build-plugins.mjs'
import { bundledPackages, licenseNotices } from './bundled-packages.mjs'

beginScript()
const { build } = await import('esbuild')
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

/** Those of Linux are for glibc and musl: they need nothing of the C library that musl lacks. */
const PLATFORMS = ['darwin', 'linux', 'win32'].flatMap((system) => [`${system}-arm64`, `${system}-x64`])

await rm(dist, { recursive: true, force: true })
const { metafile } = await build({
  ...common,
  entryPoints: ['src/main.ts'],
  outdir: modules,
  // All in one directory: code that names a file beside it may end up in an entry or in a chunk.
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  format: 'esm',
  // One measure of texts for the whole program, in place of those that cli-table3 and ora bring.
  alias: { 'string-width': './scripts/string-width.cjs' },
  define: { MAILCLAIM_VERSION: JSON.stringify(version) },
  // Some packages have no default export.
  logOverride: { 'import-is-undefined': 'silent' },
  plugins: [
    leanUndici(),
    commanderModules(),
    nodeBuiltins(),
    nativeAddon('fs-native-extensions'),
    coreChunk(root, CORE),
  ],
  metafile: true,
})

// esbuild splits only ES modules, and Node loads CommonJS faster, by 7 to 20 ms: at once, without its asynchronous loader.
await writeFile(join(dist, 'package.json'), '{ "type": "commonjs" }\n')
const { outputFiles } = await build({
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
  write: false,
})
const files = new Map(outputFiles.map(({ path, text }) => [basename(path), withLiteralExports(text)]))
// The entry only passes on what it takes from the core. The core takes its place: a file less to find, 0.4 ms of each start.
const [, main, core] = /get main\(\)\{return \w+\.([\w$]+)\}.*require\("\.\/([\w-]+\.js)"\)/.exec(
  files.get('main.js'),
)
files.set('main.js', files.get(core).replace('__esModule:!0,', `$&get main(){return this.${main}},`))
files.delete(core)
for (const [name, code] of files)
  await writeFile(join(dist, name), code.replaceAll(`"./${core}"`, '"./main.js"'))
await rm(modules, { recursive: true })

// A program of its own, which loads nothing of the other.
const helper = await build({
  ...common,
  entryPoints: ['src/credentials/keychain-helper.ts'],
  outdir: dist,
  bundle: true,
  format: 'cjs',
  plugins: [nativeAddon('keytar')],
  metafile: true,
})

const outputs = { ...metafile.outputs, ...helper.metafile.outputs }
await writeFile(join(dist, 'THIRD-PARTY-NOTICES.txt'), licenseNotices(await bundledPackages(root, outputs)))
for (const name of ['fs-native-extensions', 'keytar'])
  for (const platform of PLATFORMS)
    await cp(
      join(root, 'node_modules', name, 'prebuilds', platform, `${name}.node`),
      join(dist, 'native', platform, `${name}.node`),
    )

/**
 * Lists a module's exports in an object literal. esbuild makes an object of functions, then a property from each of them, then
 * a copy of all of it: 60 KB for the 115 of the core, of the 1 MB that Node can fill before it has to collect garbage.
 */
function withLiteralExports(code) {
  const lines = /var ([\w$]+)=\{\};[\w$]+\(\1,\{([^{}]*)\}\);module\.exports=[\w$]+\(\1\);/
  const [, , exports] = lines.exec(code) ?? []
  // Otherwise a new version of esbuild would undo it silently.
  if (exports === undefined) throw new Error('esbuild exports otherwise')
  const getters = exports.replace(/([\w$]+):\(\)=>([\w$.]+)/g, 'get $1(){return $2}')
  return code.replace(lines, () => `module.exports={__esModule:!0,${getters}};`)
}

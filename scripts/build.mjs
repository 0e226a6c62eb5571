// Bundles the program into dist/, in chunks, so that a command loads only the code it needs.
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
  // Minified code makes the package a third smaller; starts take as long as without.
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
}

/** Modules that every command needs, and modules so small that a separate file (0.2 to 0.4 ms to find and load) would cost more. */
const CORE = [
  './src/main.ts',
  './src/commands/definition.ts',
  './src/session/credential.ts',
  // The client of the service, without the HTTP transport.
  './src/session/client.ts',
  // One line each, which loads the built-in module at its first use.
  ...['async_hooks', 'buffer', 'url', 'util'].map((name) => `node:${name}`),
]

/** Platforms of the native addons. The Linux addons work with glibc and musl: they use no function of the C library that musl lacks. */
const PLATFORMS = ['darwin', 'linux', 'win32'].flatMap((system) => [`${system}-arm64`, `${system}-x64`])

await rm(dist, { recursive: true, force: true })
const { metafile } = await build({
  ...common,
  entryPoints: ['src/main.ts'],
  outdir: modules,
  // Entries and chunks share a directory: code that names a file beside itself may end up in either.
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  format: 'esm',
  // One string-width for the whole program replaces the versions that cli-table3 and ora depend on.
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

// Converts the chunks to CommonJS. esbuild splits only ES modules, but Node loads CommonJS without its asynchronous loader, 7 to 20 ms
// faster.
await writeFile(join(dist, 'package.json'), '{ "type": "commonjs" }\n')
const { outputFiles } = await build({
  ...common,
  entryPoints: (await readdir(modules)).map((name) => join(modules, name)),
  outdir: dist,
  format: 'cjs',
  // esbuild turns `import()` into `require`, because a remaining `import()` would start the asynchronous loader.
  supported: { 'dynamic-import': false },
  // Only the package `open` reads `import.meta.url`; without it, `open` runs the system's xdg-open instead of a copy.
  define: {
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
    'import.meta.url': 'undefined',
  },
  // Any other member of `import.meta` fails the build.
  logOverride: { 'empty-import-meta': 'error' },
  write: false,
})
const files = new Map(outputFiles.map(({ path, text }) => [basename(path), withLiteralExports(text)]))
// Replaces the entry, which only re-exports `main` of the core chunk, with the core chunk itself: one file less to load saves 0.4 ms of
// each start.
const [, main, core] = /get main\(\)\{return \w+\.([\w$]+)\}.*require\("\.\/([\w-]+\.js)"\)/.exec(
  files.get('main.js'),
)
files.set('main.js', files.get(core).replace('__esModule:!0,', `$&get main(){return this.${main}},`))
files.delete(core)
for (const [name, code] of files)
  await writeFile(join(dist, name), code.replaceAll(`"./${core}"`, '"./main.js"'))
await rm(modules, { recursive: true })

// Bundles the keychain helper, a separate program that shares no file with the main one.
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
 * Rewrites a module's exports as one object literal. esbuild creates an object of functions, a property for each function, and then a
 * copy of all properties: 60 KB for the 115 exports of the core, while Node collects garbage for the first time after 1 MB.
 */
function withLiteralExports(code) {
  const lines = /var ([\w$]+)=\{\};[\w$]+\(\1,\{([^{}]*)\}\);module\.exports=[\w$]+\(\1\);/
  const [, , exports] = lines.exec(code) ?? []
  // A new version of esbuild that writes exports differently would otherwise undo this silently.
  if (exports === undefined) throw new Error('esbuild exports otherwise')
  const getters = exports.replace(/([\w$]+):\(\)=>([\w$.]+)/g, 'get $1(){return $2}')
  return code.replace(lines, () => `module.exports={__esModule:!0,${getters}};`)
}

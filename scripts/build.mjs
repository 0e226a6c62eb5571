// Bundles the program into dist/: what a command does not need is in a chunk of its own and is not loaded.
import { cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { fewChunks, leanUndici, nativeLocks, nodeBuiltins } from './build-plugins.mjs'
import { licenceNotices } from './notices.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(await readFile(`${root}package.json`, 'utf8'))

await rm(`${root}dist`, { recursive: true, force: true })
const modules = join(root, 'dist/modules')
await build({
  absWorkingDir: root,
  entryPoints: { main: 'src/main.ts', 'keychain-helper': 'src/credentials/keychain-helper.ts' },
  outdir: modules,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // In one folder with the entries: code that names a file beside it may end up in either.
  chunkNames: '[name]-[hash]',
  define: { MAILCLAIM_VERSION: JSON.stringify(version) },
  // Half the bytes are half the time that V8 takes to read them. The maps give a bug's stack trace its names and lines
  // back; they are opened only with --verbose.
  minify: true,
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  external: ['keytar'],
  plugins: [
    leanUndici(),
    nodeBuiltins(),
    nativeLocks(),
    fewChunks(
      root,
      ['src/main.ts', 'src/commands/definition.ts', 'src/session/authorizer.ts'],
      ['src/session/connect.ts', 'src/service/imports.ts', 'src/imports/columns.ts', 'src/commands/lists.ts'],
      // The one that scripts call in loops.
      ['src/commands/auth/token.ts'],
    ),
  ],
  logLevel: 'warning',
})

await mergeEntry(modules)

// esbuild splits ES modules alone, and Node reads CommonJS in less time: at once, without the asynchronous loader and
// the thread pool.
// Written first: esbuild goes by it as well, where one file takes the default export of another.
await writeFile(`${root}dist/package.json`, '{ "type": "commonjs" }\n')
await build({
  absWorkingDir: root,
  entryPoints: (await readdir(modules))
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(modules, name)),
  outdir: 'dist',
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  // `import()` becomes `require`, or it would load the asynchronous loader after all.
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
    // Only packages ask for it, to find files beside them; bundled, they have none.
    'import.meta.url': 'undefined',
  },
  minify: true,
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
})
await rm(modules, { recursive: true })

await writeFile(
  `${root}dist/THIRD-PARTY-NOTICES.txt`,
  await licenceNotices(root, [
    ...(await sourcesIn(`${root}dist`)),
    'node_modules/fs-native-extensions/binding.js',
  ]),
)
await cp(`${root}node_modules/fs-native-extensions/prebuilds`, `${root}dist/native`, {
  recursive: true,
  // Telephones have no user of this program, and what is for another runtime than Node is not loaded.
  filter: (path) => !/[\\/](android|ios)[^\\/]*$|\.bare$/.test(path),
})

/**
 * The files that the program was made of, as paths from the root. Taken from the source maps: a package that was bundled
 * before it was published shows only there what is in it.
 */
async function sourcesIn(folder) {
  const maps = (await readdir(folder)).filter((name) => name.endsWith('.js.map'))
  const texts = await Promise.all(maps.map((name) => readFile(join(folder, name), 'utf8')))
  return texts.flatMap((text) =>
    JSON.parse(text).sources.map((source) => relative(root, join(folder, source))),
  )
}

/**
 * The entry only hands on what the core's chunk holds. The chunk takes its place, so that a start has one file less to
 * find and to read.
 */
async function mergeEntry(folder) {
  const entry = join(folder, 'main.js')
  const facade = /^import\{(\w+) as \w+\}from"\.\/(chunk-\w+\.js)";export\{\w+ as main\};/
  const [, exported, core] = facade.exec(await readFile(entry, 'utf8')) ?? []
  if (core === undefined) throw new Error('the entry is no longer a mere facade of the core')
  await rename(join(folder, core), entry)
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.js')) continue
    const file = join(folder, name)
    const code = (await readFile(file, 'utf8')).replaceAll(`"./${core}"`, '"./main.js"')
    await writeFile(file, file === entry ? code.replace(`as ${exported}}`, 'as main}') : code)
  }
}

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { chunksAsCommonJs, currentStringWidth, leanUndici, nativeLocks } from '../scripts/build-plugins.mjs'

const root = new URL('../', import.meta.url).pathname

test.each<[string, Plugin, string]>([
  ['undici', leanUndici(), 'lib/dispatcher/client-h2.js'],
  ['string-width', currentStringWidth(root), 'cli-table3'],
  ['fs-native-extensions', nativeLocks(), 'fs-native-extensions'],
])('the build fails if a new version of %s moves what the build replaces', async (_, plugin, missing) => {
  await expect(
    build({ stdin: { contents: '' }, write: false, logLevel: 'silent', plugins: [plugin] }),
  ).rejects.toThrow(new RegExp(`not replaced: .*${missing}`))
})

test('a variable that changes later has changed for every chunk, and a default export is one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-build-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const sources = {
    'main.js': `export { count, add } from './core.js'
      export const late = () => import('./late.js')`,
    'core.js': 'export let count = 0; export const add = () => count++',
    'late.js': `import { add, count } from './core.js'
      add()
      export default count`,
  }
  for (const [name, source] of Object.entries(sources)) writeFileSync(join(directory, name), source)
  const modules = join(directory, 'modules')
  const { metafile } = await build({
    entryPoints: [join(directory, 'main.js')],
    outdir: modules,
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    metafile: true,
  })
  writeFileSync(join(directory, 'package.json'), '{ "type": "commonjs" }')
  const dist = join(directory, 'dist')
  const options = chunksAsCommonJs(modules, metafile.outputs)
  await build({ ...options, outdir: dist, format: 'cjs', supported: { 'dynamic-import': false } })
  const main = createRequire(import.meta.url)(join(dist, 'main.js'))
  expect(main.count).toBe(0)
  expect((await main.late()).default).toBe(1)
  expect(main.count).toBe(1)
})

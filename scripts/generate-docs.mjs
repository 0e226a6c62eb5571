// Generates docs/commands.md and man/mailclaim.1 from the commands' definitions; --check reports whether they are current.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const check = process.argv.includes('--check')
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))

// Inside the project, where the native packages can be found. Node 20 can't run TypeScript.
await mkdir(join(root, '.tmp'), { recursive: true })
const directory = await mkdtemp(join(root, '.tmp', 'reference-'))
try {
  await build({
    absWorkingDir: root,
    entryPoints: ['scripts/reference.ts'],
    outdir: directory,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    outExtension: { '.js': '.mjs' },
    external: ['keytar', 'fs-native-extensions'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  })
  const { commandsPage, manualPage } = await import(pathToFileURL(join(directory, 'reference.mjs')).href)
  const pages = { 'docs/commands.md': await commandsPage(), 'man/mailclaim.1': await manualPage(version) }
  for (const [name, text] of Object.entries(pages)) {
    const path = join(root, name)
    const current = await readFile(path, 'utf8').catch(() => undefined)
    if (current === text) continue
    if (check) {
      console.error(`${name} is out of date: run npm run docs`)
      process.exitCode = 1
    } else {
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
      console.log(`${name} written`)
    }
  }
} finally {
  await rm(directory, { recursive: true, force: true })
}

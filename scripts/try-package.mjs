// The package as a stranger meets it: packed, installed from the tarball into an empty directory under every supported
// Node, and used there: the demo, with the installed program.
// Needs the registry (for Node itself), so it is no part of `npm test`.
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..')
const releases = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ['20', '22', '24', 'latest']
const work = await mkdtemp(join(tmpdir(), 'mailclaim-try-'))

/** npm, as this machine has it, with `node` first in the path, so that it runs under it. */
async function npm(words, directory, node) {
  // What the script that runs us was given must not reach another npm.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^npm_(package|lifecycle|command|config_(prefix|local_prefix|global))/.test(name),
    ),
  )
  if (node !== undefined) env.PATH = `${dirname(node)}${delimiter}${env.PATH}`
  const { stdout } = await run('npm', words, { cwd: directory, env, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

async function createPackage() {
  const directory = await mkdtemp(join(work, 'package-'))
  await npm(['init', '--yes'], directory)
  return directory
}

/** The binary of a Node release, from the registry's package for this platform. */
async function nodeOf(release) {
  const windows = process.platform === 'win32'
  const name = `node-${windows ? 'win' : process.platform}-${process.arch}`
  const directory = await createPackage()
  await npm(['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${release}`], directory)
  return join(directory, 'node_modules', name, 'bin', windows ? 'node.exe' : 'node')
}

async function megabytesBelow(directory) {
  let bytes = 0
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  }
  return (bytes / 1024 ** 2).toFixed(1)
}

const rows = []
try {
  const [{ filename, files, size, unpackedSize }] = Object.values(
    JSON.parse(await npm(['pack', '--json', '--pack-destination', work], root)),
  )
  const kilobytes = (bytes) => `${Math.round(bytes / 1024)} kB`
  console.log(
    `${filename}: ${files.length} files, ${kilobytes(size)} packed, ${kilobytes(unpackedSize)} unpacked\n`,
  )
  for (const release of releases) {
    const node = await nodeOf(release)
    const { stdout } = await run(node, ['--version'])
    const row = { node: stdout.trim(), result: 'works' }
    rows.push(row)
    try {
      const directory = await createPackage()
      const began = performance.now()
      await npm(['install', '--no-audit', '--no-fund', join(work, filename)], directory, node)
      row['installed in'] = `${((performance.now() - began) / 1000).toFixed(1)} s`
      row.MB = await megabytesBelow(join(directory, 'node_modules'))
      const program = join(directory, 'node_modules/mailclaim/bin/mailclaim.js')
      await run(node, [join(root, 'scripts/demo.mjs'), program], { timeout: 120_000 })
    } catch (error) {
      row.result = 'fails'
      console.error(`Node ${row.node}: ${error.message}\n`)
    }
  }
} finally {
  await rm(work, { recursive: true, force: true, maxRetries: 5 })
}
console.table(rows)
if (rows.length === 0 || rows.some(({ result }) => result !== 'works')) process.exitCode = 1

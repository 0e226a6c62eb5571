// The versions of Node to measure.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * The Node that runs this, and those of `--node PATH` (repeatable). By default the releases 20, 22, 24 and 26, from npm's
 * packages of Node, kept in the temporary directory.
 */
export function nodesToMeasure(argv) {
  const given = argv.flatMap((word, at) => (argv[at - 1] === '--node' ? [word] : []))
  const paths = given.length > 0 ? given : ['20', '22', '24', '26'].map(installed)
  return [...new Set([process.execPath, ...paths])]
    .filter((path) => path !== undefined)
    .map((path) => ({
      path,
      version: execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().slice(1),
    }))
    .filter(
      ({ version }, at, all) => all.findIndex((other) => major(other.version) === major(version)) === at,
    )
}

export const major = (version) => Number(version.split('.')[0])

function installed(release) {
  if (release === process.versions.node.split('.')[0]) return process.execPath
  const directory = join(tmpdir(), `mailclaim-bench-node-${release}`)
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const binary = join(
    directory,
    'node_modules',
    name,
    'bin',
    process.platform === 'win32' ? 'node.exe' : 'node',
  )
  if (existsSync(binary)) return binary
  try {
    const words = [
      'install',
      '--prefix',
      directory,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `${name}@${release}`,
    ]
    execFileSync('npm', words, { stdio: 'ignore', timeout: 120_000 })
    return binary
  } catch {
    console.error(`Node ${release} can't be installed and is left out`)
    return undefined
  }
}

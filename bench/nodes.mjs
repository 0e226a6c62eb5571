// Finds or installs the versions of Node that the benchmark measures.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Returns path and version of each Node to measure, one for each major version: the Node that runs this script, and the given paths.
 * Without given paths, the releases 20, 22, 24 and 26, which npm installs in the temporary directory and which stay there.
 */
export function nodesToMeasure(given = []) {
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
  try {
    return installNode(release, join(tmpdir(), `mailclaim-bench-node-${release}`))
  } catch {
    console.error(`Node ${release} can't be installed and is left out`)
    return undefined
  }
}

/**
 * Installs a release of Node from npm's package of Node for this platform, unless the directory has one.
 *
 * @returns the path of its binary
 */
export function installNode(release, directory) {
  const windows = process.platform === 'win32'
  const name = `node-${windows ? 'win' : process.platform}-${process.arch}`
  const binary = join(directory, 'node_modules', name, 'bin', windows ? 'node.exe' : 'node')
  const options = ['--prefix', directory, '--ignore-scripts', '--no-audit', '--no-fund']
  if (!existsSync(binary))
    execFileSync('npm', ['install', ...options, `${name}@${release}`], { stdio: 'pipe', timeout: 120_000 })
  return binary
}

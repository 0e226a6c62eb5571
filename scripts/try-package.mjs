// Tries the npm package as its users get it: installs a tarball into an empty directory under each supported Node, and runs the demo
// with the installed program. The registry has to be reachable, because Node itself comes from there.
//
//   node scripts/try-package.mjs [TARBALL.tgz] [RELEASE...]  packs this tree if no tarball is given; Node 20, 22, 24 and latest by default
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { installNode } from '../bench/nodes.mjs'
import { beginScript, sentenceOf } from './begin.mjs'

const { positionals } = beginScript({ allowPositionals: true })
const root = join(import.meta.dirname, '..')
const tarball = positionals.find((word) => word.endsWith('.tgz'))
const given = positionals.filter((word) => word !== tarball)
const work = mkdtempSync(join(tmpdir(), 'mailclaim-try-'))

function run(program, words, PATH = process.env.PATH) {
  const env = { ...process.env, PATH }
  return execFileSync(program, words, { cwd: work, env, encoding: 'utf8', stdio: 'pipe', timeout: 300_000 })
}

try {
  // npm packs a directory, and copies a tarball byte for byte.
  const packed = JSON.parse(run('npm', ['pack', tarball ? resolve(tarball) : root, '--json']))
  const [{ filename, files, size, unpackedSize }] = Object.values(packed)
  const [kilobytes, unpacked] = [size, unpackedSize].map((bytes) => `${Math.round(bytes / 1024)} kB`)
  console.log(`${filename}: ${files.length} files, ${kilobytes} packed, ${unpacked} unpacked`)
  for (const release of given.length > 0 ? given : ['20', '22', '24', 'latest']) {
    const node = installNode(release, join(work, `node-${release}`))
    const directory = join(work, `package-${release}`)
    let result = 'works'
    try {
      // npm starts with the first `node` in PATH.
      const path = `${dirname(node)}${delimiter}${process.env.PATH}`
      run('npm', ['install', '--prefix', directory, '--no-audit', '--no-fund', join(work, filename)], path)
      const program = join(directory, 'node_modules', 'mailclaim', 'bin', 'mailclaim.js')
      run(node, [join(root, 'scripts', 'demo.mjs'), program])
    } catch (error) {
      result = sentenceOf(error)
      process.exitCode = 1
    }
    console.log(`Node ${run(node, ['--version']).trim()}: ${result}`)
  }
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5 })
}

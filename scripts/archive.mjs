// Makes the archive for users without Node, archives/mailclaim-VERSION-PLATFORM-ARCH.tar.gz (on Windows .zip), and its line of
// archives/SHA256SUMS. The archive has the Node that runs this script, the files of the npm package, and a launcher. The same Node and
// the same build make the same bytes.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beginScript, builtProgram } from './begin.mjs'

const root = join(import.meta.dirname, '..')
/** A zip entry's "version made by" for Unix, with which the external attributes hold Unix file modes (APPNOTE.TXT 4.4.2). */
const UNIX = 3

/** Starts the Node of the subfolder node/. In the launcher's own folder, which users add to PATH, it would replace their `node`. */
const UNIX_LAUNCHER = `#!/bin/sh
# Starts mailclaim with the Node in this folder, also through symbolic links.
self=$(readlink -f "$0")
exec "\${self%/*}/node/node" "\${self%/*}/bin/mailclaim.js" "$@"
`
const WINDOWS_LAUNCHER = '@"%~dp0node\\node.exe" "%~dp0bin\\mailclaim.js" %*\r\n'

/**
 * Writes the archive and its line of SHA256SUMS.
 *
 * @param node paths of Node's executable and of its license, and the platform and architecture of that executable
 * @param directory destination, created if missing
 * @returns the line of SHA256SUMS: checksum and file name
 */
export async function writeArchive({ program, license, platform, arch }, directory) {
  const { version, files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const windows = platform === 'win32'
  const folder = `mailclaim-${version}-${platform}-${arch}`
  const entries = [
    windows
      ? { path: 'mailclaim.cmd', bytes: Buffer.from(WINDOWS_LAUNCHER), mode: 0o644 }
      : { path: 'mailclaim', bytes: Buffer.from(UNIX_LAUNCHER), mode: 0o755 },
    { path: `node/node${windows ? '.exe' : ''}`, bytes: await readFile(program), mode: 0o755 },
    { path: 'node/LICENSE', bytes: await readFile(license), mode: 0o644 },
  ]
  for (const path of await filesBelow(['LICENSE', 'README.md', 'package.json', ...files]))
    if (!path.startsWith('dist/native/') || path.startsWith(`dist/native/${platform}-${arch}/`))
      entries.push({ path, bytes: await readFile(join(root, path)), mode: 0o644 })
  for (const entry of entries) entry.path = `${folder}/${entry.path}`
  const name = `${folder}${windows ? '.zip' : '.tar.gz'}`
  const archive = await (windows ? zipOf(entries) : tarOf(entries))
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, name), archive)
  const sums = join(directory, 'SHA256SUMS')
  const line = `${createHash('sha256').update(archive).digest('hex')}  ${name}`
  const lines = existsSync(sums) ? (await readFile(sums, 'utf8')).trim().split('\n') : []
  const others = lines.filter((other) => !other.endsWith(`  ${name}`))
  await writeFile(sums, `${[...others, line].sort().join('\n')}\n`)
  return line
}

/** Returns the paths of the files at and below these paths of the project, sorted. */
async function filesBelow(paths) {
  const files = []
  for (const path of paths) {
    if ((await stat(join(root, path))).isFile()) files.push(path)
    else files.push(...(await filesBelow((await readdir(join(root, path))).map((name) => `${path}/${name}`))))
  }
  return files.sort()
}

/** Returns the bytes of a tar file, compressed with gzip. */
async function tarOf(entries) {
  const { packTar } = await import('modern-tar')
  const mtime = new Date(Date.UTC(1980))
  const files = entries.map(({ path, bytes, mode }) => ({
    header: { name: path, size: bytes.length, mode, mtime, type: 'file' },
    body: bytes,
  }))
  return gzipSync(await packTar(files))
}

/** Returns the bytes of a zip file. */
async function zipOf(entries) {
  const { zipSync } = await import('fflate')
  const files = entries.map(({ path, bytes, mode }) => [path, [bytes, { os: UNIX, attrs: mode << 16 }]])
  // A zip file stores local time, and none before 1980: a local date gives the same bytes in every time zone.
  return zipSync(Object.fromEntries(files), { mtime: new Date(1980, 0, 1) })
}

if (process.argv[1] === import.meta.filename) {
  beginScript()
  builtProgram()
  const { execPath: program, platform, arch } = process
  const license = ['LICENSE', '../LICENSE'].map((path) => join(dirname(program), path)).find(existsSync)
  if (license === undefined)
    throw new Error(`${program} has no LICENSE beside it: run this with a Node from https://nodejs.org`)
  console.log(await writeArchive({ program, license, platform, arch }, join(root, 'archives')))
}

// The program for people without Node: a folder with the Node that runs this, what the package has, and a launcher, as
// archives/mailclaim-VERSION-PLATFORM-ARCH.tar.gz (on Windows .zip), with its line in archives/SHA256SUMS. The same Node makes the same
// bytes of the same build.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
/** Of each file, in seconds: the earliest that a zip can say. */
const MODIFIED = Date.UTC(1980) / 1000

/** Node's own folder isn't one for PATH: a person's `node` must stay the one that they have. */
const UNIX_LAUNCHER = `#!/bin/sh
# Starts mailclaim with the Node in this folder, also through symbolic links.
self=$(readlink -f "$0")
exec "\${self%/*}/node/node" "\${self%/*}/bin/mailclaim.js" "$@"
`
const WINDOWS_LAUNCHER = '@"%~dp0node\\node.exe" "%~dp0bin\\mailclaim.js" %*\r\n'

/**
 * Writes the archive and its line of SHA256SUMS.
 *
 * @param node the program and the license of the Node that goes into it, and the platform they are for
 * @param directory where to, created if missing
 * @returns the line: checksum and name
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
  const archive = windows ? zipOf(entries) : gzipSync(tarOf(entries))
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, name), archive)
  const sums = join(directory, 'SHA256SUMS')
  const line = `${createHash('sha256').update(archive).digest('hex')}  ${name}`
  const lines = existsSync(sums) ? (await readFile(sums, 'utf8')).trim().split('\n') : []
  const others = lines.filter((other) => !other.endsWith(`  ${name}`))
  await writeFile(sums, `${[...others, line].sort().join('\n')}\n`)
  return line
}

/** The files of the project below these paths, sorted. */
async function filesBelow(paths) {
  const found = await Promise.all(
    paths.map(async (path) => {
      const below = await readdir(join(root, path), { recursive: true, withFileTypes: true }).catch(
        () => undefined,
      )
      if (below === undefined) return [path]
      return below
        .filter((entry) => entry.isFile())
        .map((entry) =>
          join(entry.parentPath, entry.name)
            .slice(root.length + 1)
            .replaceAll('\\', '/'),
        )
    }),
  )
  return found.flat().sort()
}

/** A tar file in the format of POSIX.1-1988 (ustar), whose names have at most 100 bytes. */
function tarOf(entries) {
  const blocks = entries.flatMap(({ path, bytes, mode }) => {
    if (Buffer.byteLength(path) > 100) throw new Error(`too long a path: ${path}`)
    const header = Buffer.alloc(512)
    const octal = (value, at, width) => header.write(value.toString(8).padStart(width - 1, '0'), at)
    header.write(path)
    octal(mode, 100, 8)
    octal(0, 108, 8)
    octal(0, 116, 8)
    octal(bytes.length, 124, 12)
    octal(MODIFIED, 136, 12)
    header.write(' '.repeat(8), 148)
    header.write('0', 156)
    header.write('ustar\0' + '00', 257)
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    )
    return [header, bytes, Buffer.alloc(-bytes.length & 511)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

/** A zip file (APPNOTE.TXT 4.3): each file behind its local header, then the central directory and its end. */
function zipOf(entries) {
  const local = []
  const central = []
  let offset = 0
  for (const { path, bytes } of entries) {
    const name = Buffer.from(path)
    const deflated = deflateRawSync(bytes)
    // Version 2.0, no flags, deflated, midnight of 1980-01-01, checksum, sizes, length of the name, no extra fields.
    const fields = numbers([2, 20], [2, 0], [2, 8], [2, 0], [2, 33], [4, crc32(bytes)])
    const sizes = numbers([4, deflated.length], [4, bytes.length], [2, name.length], [2, 0])
    local.push(numbers([4, 0x04034b50]), fields, sizes, name, deflated)
    central.push(
      numbers([4, 0x02014b50], [2, 20]),
      fields,
      sizes,
      Buffer.alloc(10),
      numbers([4, offset]),
      name,
    )
    offset += 30 + name.length + deflated.length
  }
  const size = central.reduce((sum, { length }) => sum + length, 0)
  const count = entries.length
  const end = numbers([4, 0x06054b50], [4, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0])
  return Buffer.concat([...local, ...central, end])
}

/** Numbers in little-endian order, each with its bytes. */
function numbers(...fields) {
  return Buffer.concat(
    fields.map(([width, value]) => {
      const bytes = Buffer.alloc(width)
      bytes.writeUIntLE(value, 0, width)
      return bytes
    }),
  )
}

if (process.argv[1] === import.meta.filename) {
  const { execPath: program, platform, arch } = process
  const license = ['LICENSE', '../LICENSE'].map((path) => join(dirname(program), path)).find(existsSync)
  if (license === undefined)
    throw new Error(`${program} is without Node's LICENSE: take a Node from nodejs.org`)
  console.log(await writeArchive({ program, license, platform, arch }, join(root, 'archives')))
}

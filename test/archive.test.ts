import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { find, needs } from './requirements.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'mailclaim archive-'))
  // In place of 100 MB: it starts the Node of the tests.
  writeFileSync(join(directory, 'node'), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`)
  writeFileSync(join(directory, 'LICENSE'), "Node's license")
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Makes the archive of a platform in a directory of that name. @returns where it is */
async function archive(platform: string, into: string): Promise<string> {
  const { writeArchive } = await import(join(root, 'scripts/archive.mjs'))
  const node = {
    program: join(directory, 'node'),
    license: join(directory, 'LICENSE'),
    platform,
    arch: 'x64',
  }
  const line: string = await writeArchive(node, join(directory, into))
  const [sum, name = ''] = line.split('  ')
  const path = join(directory, into, name)
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(sum)
  expect(readFileSync(join(directory, into, 'SHA256SUMS'), 'utf8').split('\n')).toContain(line)
  return path
}

describe.runIf(needs('posix'))('an archive', () => {
  it('has the same bytes each time, and a line for each platform in SHA256SUMS', async () => {
    const first = readFileSync(await archive('linux', 'one'))
    await archive('darwin', 'two')
    await archive('linux', 'two')
    const second = readFileSync(await archive('linux', 'two'))
    expect(second.equals(first)).toBe(true)
    expect(readFileSync(join(directory, 'two/SHA256SUMS'), 'utf8').trim().split('\n')).toHaveLength(2)
  })

  it('runs through a symbolic link, from a directory with spaces, without a Node in PATH', async () => {
    const unpacked = join(directory, 'un packed')
    const path = join(directory, 'in path')
    for (const made of [unpacked, path]) mkdirSync(made)
    execFileSync('tar', ['-xzf', await archive(process.platform, 'three'), '-C', unpacked])
    const folder = join(unpacked, `mailclaim-${version}-${process.platform}-x64`)
    symlinkSync(join(folder, 'mailclaim'), join(path, 'mailclaim'))
    symlinkSync(find('readlink') ?? '', join(path, 'readlink'))
    const { stdout, stderr } = spawnSync('/bin/sh', ['-c', 'mailclaim --version'], {
      env: { PATH: path },
      encoding: 'utf8',
    })
    expect({ stdout, stderr }).toEqual({ stdout: `${version}\n`, stderr: '' })
    expect(readFileSync(join(folder, 'node/LICENSE'), 'utf8')).toBe("Node's license")
    expect(readdirSync(join(folder, 'dist/native'))).toEqual([`${process.platform}-x64`])
  })

  it.runIf(needs('python3'))('of Windows is a zip file that is whole', async () => {
    const script = `
import sys, zipfile
file = zipfile.ZipFile(sys.argv[1])
print(file.testzip(), *sorted({name.split('/')[1] for name in file.namelist()}))`
    const stdout = execFileSync('python3', ['-c', script, await archive('win32', 'four')], {
      encoding: 'utf8',
    })
    expect(stdout).toMatch(/^None .* mailclaim\.cmd node package\.json\n$/)
  })
})

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
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { needs, which } from './requirements.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'mailclaim archive-'))
  // Use a script that starts the Node of the tests, instead of copying a Node of 100 MB.
  writeFileSync(join(directory, 'node'), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`)
  writeFileSync(join(directory, 'LICENSE'), "Node's license")
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Creates the archive of a platform in the directory `into`. @returns the archive's path */
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

describe.runIf(needs('posix'))('scripts/archive.mjs', () => {
  it('an archive that archive.mjs writes has the same bytes on another day and in another time zone', async () => {
    onTestFinished(() => void vi.useRealTimers().unstubAllEnvs())
    for (const platform of ['darwin', 'linux', 'win32']) {
      const first = readFileSync(await archive(platform, 'one'))
      vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2031, 6, 1) })
      for (const zone of ['Asia/Kolkata', 'America/New_York']) {
        vi.stubEnv('TZ', zone)
        expect(readFileSync(await archive(platform, 'two')).equals(first), `${platform} in ${zone}`).toBe(
          true,
        )
      }
    }
    expect(readFileSync(join(directory, 'two/SHA256SUMS'), 'utf8').trim().split('\n')).toHaveLength(3)
  })

  it('the program of an unpacked archive runs through a symbolic link, in a directory with spaces, without a Node in PATH', async () => {
    const unpacked = join(directory, 'un packed')
    const path = join(directory, 'in path')
    for (const made of [unpacked, path]) mkdirSync(made)
    execFileSync('tar', ['-xzf', await archive(process.platform, 'four'), '-C', unpacked])
    const folder = join(unpacked, `mailclaim-${version}-${process.platform}-x64`)
    symlinkSync(join(folder, 'mailclaim'), join(path, 'mailclaim'))
    symlinkSync(which('readlink') ?? '', join(path, 'readlink'))
    const { stdout, stderr } = spawnSync('/bin/sh', ['-c', 'mailclaim --version'], {
      env: { PATH: path },
      encoding: 'utf8',
    })
    expect({ stdout, stderr }).toEqual({ stdout: `${version}\n`, stderr: '' })
    expect(readFileSync(join(folder, 'node/LICENSE'), 'utf8')).toBe("Node's license")
    expect(readdirSync(join(folder, 'dist/native'))).toEqual([`${process.platform}-x64`])
  })

  it.runIf(needs('python3')).each([
    ['a tar file', 'linux'],
    ['a zip file', 'win32'],
    ['a tar file with names over 100 bytes', 'platform'.repeat(20)],
  ])('Python reads %s of archive.mjs, with file modes and dates of 1980', async (_, platform) => {
    const script = `
import json, sys, tarfile, time, zipfile
path, listed = sys.argv[1], []
if path.endswith('.zip'):
    file = zipfile.ZipFile(path)
    assert file.testzip() is None
    listed = [(e.filename, e.external_attr >> 16 & 0o777, e.date_time[0]) for e in file.infolist()]
else:
    listed = [(e.name, e.mode, time.gmtime(e.mtime).tm_year) for e in tarfile.open(path)]
print(json.dumps(listed))`
    const stdout = execFileSync('python3', ['-c', script, await archive(platform, 'three')])
    const listed = JSON.parse(String(stdout)) as [string, number, number][]
    const started = platform === 'win32' ? ['node/node.exe'] : ['mailclaim', 'node/node']
    const folder = `mailclaim-${version}-${platform}-x64/`
    expect(listed.flatMap(([name, mode]) => (mode === 0o755 ? [name] : [])).sort()).toEqual(
      started.map((name) => folder + name),
    )
    expect(listed.every(([, mode]) => mode === 0o755 || mode === 0o644)).toBe(true)
    for (const name of ['node/LICENSE', 'bin/mailclaim.js', 'docs/schemas/report.json'])
      expect(listed.map(([path]) => path)).toContain(folder + name)
    expect(new Set(listed.map(([, , year]) => year))).toEqual(new Set([1980]))
  })
})

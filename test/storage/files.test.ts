import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openJournal } from '../../src/session/journal.ts'
import {
  createDurable,
  moveDurable,
  preallocate,
  removeDurable,
  removeStaleTemporaries,
  writeDurable,
} from '../../src/storage/durable-file.ts'
import { readJson } from '../../src/storage/json-file.ts'
import type { FileLocks } from '../../src/storage/lock.ts'
import { ensurePrivateDirectory } from '../../src/storage/private-directory.ts'
import { needs } from '../requirements.ts'

function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'mailclaim-files-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const asIs = (value: unknown) => value
const ROOT = process.getuid?.() === 0

function errorOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}

/** The number of a process that has ended. */
function deadProcess(): number {
  return spawnSync('true').pid
}

function withUmask(mask: number): void {
  const before = process.umask(mask)
  onTestFinished(() => void process.umask(before))
}

describe.runIf(needs('posix'))('a private directory', () => {
  it.each([0o000, 0o022, 0o077, 0o777])(
    'is ours alone under umask %o, and so are those made above it',
    async (mask) => {
      const root = newDirectory()
      withUmask(mask)
      await ensurePrivateDirectory(join(root, 'a', 'b', 'c'))
      expect([mode(join(root, 'a')), mode(join(root, 'a', 'b')), mode(join(root, 'a', 'b', 'c'))]).toEqual([
        '700',
        '700',
        '700',
      ])
    },
  )

  it('a directory that others can access is closed to them', async () => {
    const path = join(newDirectory(), 'open')
    mkdirSync(path)
    chmodSync(path, 0o777)
    await ensurePrivateDirectory(path)
    expect(mode(path)).toBe('700')
  })

  it('a directory that a person named keeps its permissions: it may be their home', async () => {
    const path = join(newDirectory(), 'home')
    mkdirSync(path)
    chmodSync(path, 0o755)
    await ensurePrivateDirectory(path, 'leave')
    expect(mode(path)).toBe('755')
  })

  it('below a link to a disk that is not mounted cannot be made, and says so at once', async () => {
    const root = newDirectory()
    symlinkSync(join(root, 'not-mounted'), join(root, '.local'))
    await expect(ensurePrivateDirectory(join(root, '.local', 'state', 'mailclaim'))).rejects.toMatchObject({
      code: 'directory_unusable',
      exit: 1,
      message: `the directory ${join(root, '.local', 'state')} cannot be used: it cannot be created (part of the path does not exist)`,
    })
  }, 5000)

  it('a private directory can be reached through our own link', async () => {
    const root = newDirectory()
    mkdirSync(join(root, 'real'))
    symlinkSync(join(root, 'real'), join(root, 'link'))
    await ensurePrivateDirectory(join(root, 'link'))
  })

  /** Another user's directory: root creates one, and others find one in place. */
  const plantForeign = (path: string) => {
    if (!ROOT) return symlinkSync('/usr', path)
    mkdirSync(path)
    chownSync(path, 4711, 4711)
  }

  it.each<[string, (path: string) => void, string]>([
    ['a file in its place', (path) => writeFileSync(path, ''), 'it is not a directory'],
    ['a link that leads nowhere', (path) => symlinkSync('/nonexistent/x', path), 'it is not a directory'],
    ['another owner', plantForeign, 'it belongs to another user'],
  ])('a private directory is refused for %s', async (_name, plant, why) => {
    const path = join(newDirectory(), 'planted')
    plant(path)
    await expect(ensurePrivateDirectory(path)).rejects.toMatchObject({
      code: 'directory_unusable',
      exit: 1,
      message: `the directory ${path} cannot be used: ${why}`,
      hint: expect.stringContaining('MAILCLAIM_STATE_DIR'),
    })
  })

  it.runIf(process.platform === 'linux')(
    'a private directory is refused if nobody can create one there',
    async () => {
      await expect(ensurePrivateDirectory('/proc/mailclaim/state')).rejects.toMatchObject({
        code: 'directory_unusable',
        message: expect.stringContaining('it cannot be created'),
      })
    },
  )
})

describe.runIf(needs('posix'))('a JSON file', () => {
  it('a missing JSON file is undefined', async () => {
    expect(await readJson(join(newDirectory(), 'none.json'), asIs)).toBeUndefined()
  })

  it.each([
    ['empty', '', 'it is empty'],
    ['white space', ' \n', 'it is empty'],
    ['cut short', '{"version":1,"token":"gehe', 'it is damaged: it is not valid JSON'],
    ['noise', '\u0000\u0001\u0002', 'it is damaged: it is not valid JSON'],
    ['of another shape', '{"version":2}', 'it was written by a later version'],
  ])('a JSON file that is %s is refused with its path and a remedy, and kept', async (_name, text, why) => {
    const path = join(newDirectory(), "it's.json")
    writeFileSync(path, text)
    const reading = readJson(path, () => {
      throw new Error('it was written by a later version')
    })
    await expect(reading).rejects.toMatchObject({
      code: 'file_unusable',
      exit: 1,
      message: `the file ${path} cannot be used: ${why}`,
      hint: expect.stringContaining(`mv '${path.replace("'", `'\\''`)}' `),
    })
    await expect(reading).rejects.not.toThrow('geheim')
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  it('a link is refused: somebody else may have planted it', async () => {
    const root = newDirectory()
    writeFileSync(join(root, 'elsewhere'), '{}')
    symlinkSync(join(root, 'elsewhere'), join(root, 'link.json'))
    await expect(readJson(join(root, 'link.json'), asIs)).rejects.toThrow('it is a symbolic link')
  })

  it('a directory or a pipe is refused without waiting', async () => {
    const root = newDirectory()
    mkdirSync(join(root, 'directory.json'))
    execFileSync('mkfifo', [join(root, 'pipe.json')])
    await expect(readJson(join(root, 'directory.json'), asIs)).rejects.toThrow('it is not a file')
    await expect(readJson(join(root, 'pipe.json'), asIs)).rejects.toThrow('it is not a file')
  })

  it('a JSON file of another user is refused', async () => {
    let path = '/etc/passwd'
    if (ROOT) {
      path = join(newDirectory(), 'foreign.json')
      writeFileSync(path, '{}')
      chownSync(path, 4711, 4711)
    }
    await expect(readJson(path, asIs, { remedy: 'remove it' })).rejects.toMatchObject({
      message: expect.stringContaining('it belongs to another user'),
      // The system's own files are left to the caller.
      hint: ROOT ? 'run this command as that user (without sudo)' : 'remove it',
    })
  })

  it('a JSON file that is far too large is refused without being read', async () => {
    const path = join(newDirectory(), 'large.json')
    writeFileSync(path, ' '.repeat(5 * 1024 * 1024))
    await expect(readJson(path, asIs)).rejects.toThrow('it is too large')
  })
})

describe.runIf(needs('posix'))('a durable write', () => {
  it.each([0o000, 0o022, 0o777])(
    'makes a file of 0600 under umask %o and leaves nothing else',
    async (mask) => {
      const root = newDirectory()
      withUmask(mask)
      writeDurable(join(root, 'a.json'), '{"n":1}')
      expect(mode(join(root, 'a.json'))).toBe('600')
      expect(readdirSync(root)).toEqual(['a.json'])
      expect(await readJson(join(root, 'a.json'), asIs)).toEqual({ n: 1 })
    },
  )

  it('a durable write replaces a link instead of following it', async () => {
    const root = newDirectory()
    writeFileSync(join(root, 'elsewhere'), 'untouched')
    symlinkSync(join(root, 'elsewhere'), join(root, 'a.json'))
    writeDurable(join(root, 'a.json'), '{}')
    expect(readFileSync(join(root, 'elsewhere'), 'utf8')).toBe('untouched')
    expect(await readJson(join(root, 'a.json'), asIs)).toEqual({})
  })

  it('a durable write never shows a reader half a text', async () => {
    const path = join(newDirectory(), 'a.json')
    const long = (n: number) => JSON.stringify({ n, text: 'x'.repeat(200_000) })
    writeDurable(path, long(0))
    const reader = spawn(process.execPath, [
      '-e',
      `const { readFileSync } = require('node:fs')
      for (let reads = 0; ; reads++) {
        if (JSON.parse(readFileSync(process.argv[1], 'utf8')).text.length !== 200000) process.exit(1)
        if (reads === 0) console.log('reading')
      }`,
      path,
    ])
    await once(reader.stdout, 'data')
    for (let n = 1; n <= 30; n++) writeDurable(path, long(n))
    reader.kill()
    expect((await once(reader, 'exit'))[1]).toBe('SIGTERM')
  })

  it('a durable write that fails leaves the old file, says where and why, and cleans up', async () => {
    const root = newDirectory()
    mkdirSync(join(root, 'a.json'))
    writeFileSync(join(root, 'a.json', 'inside'), '')
    expect(errorOf(() => writeDurable(join(root, 'a.json'), '{}'))).toMatchObject({
      code: 'cannot_write',
      exit: 1,
      message: expect.stringContaining(join(root, 'a.json')),
    })
    expect(readdirSync(root)).toEqual(['a.json'])
  })

  it('a durable write into a missing directory says so', async () => {
    expect(errorOf(() => writeDurable(join(newDirectory(), 'none', 'a.json'), '{}'))).toMatchObject({
      code: 'cannot_write',
    })
  })

  it('a durable write removes old temporary files of dead processes, but none that are younger, have another name or belong to a living process', () => {
    const root = newDirectory()
    const old = new Date(Date.now() - 3600_000)
    const temporary = (name: string, pid: number) => `.${name}.${pid}-0123456789ab.tmp`
    const dead = deadProcess()
    const all = [
      temporary('a.json', dead),
      temporary('b.json', dead),
      temporary('a.json', process.pid),
      'a.json.bad',
    ]
    for (const name of all) {
      writeFileSync(join(root, name), '')
      utimesSync(join(root, name), old, old)
    }
    writeFileSync(join(root, '.a.json.1-bbbbbbbbbbbb.tmp'), '')
    writeDurable(join(root, 'a.json'), '{}')
    const left = [temporary('a.json', process.pid), 'a.json', 'a.json.bad', '.a.json.1-bbbbbbbbbbbb.tmp']
    expect(readdirSync(root).sort()).toEqual([...left, temporary('b.json', dead)].sort())
    removeStaleTemporaries(root)
    expect(readdirSync(root).sort()).toEqual(left.sort())
    writeFileSync(join(root, temporary('a.json', dead)), '')
    removeStaleTemporaries(root, { ofAnyAge: true })
    expect(readdirSync(root).sort()).toEqual(left.sort())
  })
})

describe('a preallocated file', () => {
  it('a preallocated file needs no more space for its text', async () => {
    const root = newDirectory()
    const reserved = preallocate(join(root, 'a.json'), 4096)
    expect(statSync(reserved.path).size).toBe(4096)
    expect(mode(reserved.path)).toBe('600')
    reserved.write('{"n":1}\n')
    expect(statSync(reserved.path).size).toBe(4096)
    expect(await readJson(reserved.path, asIs)).toEqual({ n: 1 })
    expect(moveDurable(reserved.path, join(root, 'b.json'))).toBe('durable')
    expect(readdirSync(root)).toEqual(['b.json'])
  })

  it('a preallocated file can be discarded', () => {
    const root = newDirectory()
    preallocate(join(root, 'a.json'), 10).discard()
    expect(readdirSync(root)).toEqual([])
  })

  it('a preallocated file that was removed says so when it is written', () => {
    const reserved = preallocate(join(newDirectory(), 'a.json'), 10)
    rmSync(reserved.path)
    expect(errorOf(() => reserved.write('{}'))).toMatchObject({
      code: 'cannot_write',
      message: `${reserved.path} cannot be written: something removed the file`,
    })
  })
})

describe.runIf(needs('posix'))('a move', () => {
  it('moving a pipe does not wait for anybody to write into it', () => {
    const root = newDirectory()
    execFileSync('mkfifo', [join(root, 'pipe')])
    expect(moveDurable(join(root, 'pipe'), join(root, 'moved'))).toBe('durable')
    expect(readdirSync(root)).toEqual(['moved'])
  })
})

describe.runIf(needs('posix'))('a file that is created once', () => {
  it('a file that can be created once is created by the first, and left alone by all others', () => {
    const path = join(newDirectory(), 'a.json')
    closeSync(createDurable(path, '1') ?? -1)
    expect(createDurable(path, '2')).toBeUndefined()
    expect(readFileSync(path, 'utf8')).toBe('1')
    expect(mode(path)).toBe('600')
  })

  it('a file that another process put in its place meanwhile is left alone if the rest fails', () => {
    const path = join(newDirectory(), 'a.json')
    const replace = () => {
      rmSync(path)
      writeFileSync(path, 'of another process')
    }
    const unwritable = undefined as unknown as string
    expect(() => createDurable(path, unwritable, replace)).toThrow('cannot be written')
    expect(readFileSync(path, 'utf8')).toBe('of another process')
  })

  it('an entry of the journal that another process created while the system had no file descriptor left stays, and nothing is sent', () => {
    const directory = newDirectory()
    const entry = join(directory, `journal.${'a'.repeat(64)}.json`)
    const { openSync } = fs
    fs.openSync = ((path, ...options) => {
      if (path !== entry) return openSync(path, ...options)
      writeFileSync(`${entry}.new`, 'of another process')
      renameSync(`${entry}.new`, entry)
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
    }) as typeof openSync
    syncBuiltinESMExports()
    onTestFinished(() => {
      fs.openSync = openSync
      syncBuiltinESMExports()
    })
    const locks = { tryLock: () => true } as unknown as FileLocks
    expect(openJournal(directory, 'a'.repeat(64), 0, locks)).toBeUndefined()
    expect(readFileSync(entry, 'utf8')).toBe('of another process')
  })

  it('a file that can be created once is not created through a link', () => {
    const root = newDirectory()
    symlinkSync(join(root, 'elsewhere'), join(root, 'a.json'))
    expect(createDurable(join(root, 'a.json'), '{}')).toBeUndefined()
    expect(existsSync(join(root, 'elsewhere'))).toBe(false)
  })
})

describe('a removal', () => {
  it('a removal says whether there was something to remove', async () => {
    const path = join(newDirectory(), 'a')
    writeFileSync(path, '')
    expect(removeDurable(path)).toBe(true)
    expect(existsSync(path)).toBe(false)
    expect(removeDurable(path)).toBe(false)
  })
})

import { fork } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { realDisk, removeFileDurably, writeFileDurably } from '../../src/storage/atomic-file.ts'
import { isLocked, withLock } from '../../src/storage/lock.ts'
import { ensurePrivateDirectory } from '../../src/storage/private-directory.ts'
import { createFakeContext } from '../fake-context.ts'
import { needs } from '../requirements.ts'

let home: string
let path: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'mailclaim-storage-'))
  path = join(home, 'file.json')
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
})

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8)

describe.runIf(needs('posix'))('a private directory', () => {
  it('`ensurePrivateDirectory` sets an existing directory to mode 0700, unless told to leave its mode', async () => {
    chmodSync(home, 0o755)
    await ensurePrivateDirectory(home, 'leave')
    expect(modeOf(home)).toBe('755')
    await ensurePrivateDirectory(home)
    expect(modeOf(home)).toBe('700')
  })
})

describe('an atomic write', () => {
  it('a concurrent reader sees only complete texts during repeated atomic writes', async () => {
    writeFileDurably(path, JSON.stringify({ text: 'a'.repeat(200_000) }))
    const script = join(home, 'reader.mjs')
    writeFileSync(
      script,
      `import { readFileSync } from 'node:fs'
      process.send('ready')
      for (const end = Date.now() + 300; Date.now() < end; )
        if (JSON.parse(readFileSync(${JSON.stringify(path)}, 'utf8')).text.length !== 200000) process.exit(1)`,
    )
    const reader = fork(script)
    const ended = new Promise((resolve) => reader.once('exit', resolve))
    await new Promise((resolve) => reader.once('message', resolve))
    while (reader.exitCode === null) {
      writeFileDurably(path, JSON.stringify({ text: 'b'.repeat(200_000) }))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await ended).toBe(0)
  })

  it('an atomic write whose flush fails keeps the old file, and leaves no temporary file', () => {
    writeFileDurably(path, 'old')
    const unknown = 'Unknown system error -122: Unknown system error -122, fsync'
    for (const [error, words, hint] of [
      [{ code: 'ENOSPC' }, 'no space left on device', 'free some space'],
      [{ code: 'UNKNOWN', errno: -122 }, 'disk quota exceeded', 'free some of your quota'],
      [{ code: 'UNKNOWN', errno: -116 }, 'stale file handle', 'check the owner'],
    ] as const) {
      const message = error.code === 'UNKNOWN' ? unknown : `ENOSPC: ${words}, fsync`
      const sync = () => {
        throw Object.assign(new Error(message), error)
      }
      expect(() => writeFileDurably(path, 'new', { ...realDisk, sync })).toThrow(
        expect.objectContaining({
          code: 'cannot_write',
          exit: 1,
          message: `${path} can't be written: ${words}`,
          hint: expect.stringContaining(hint),
        }),
      )
    }
    expect([readFileSync(path, 'utf8'), readdirSync(home)]).toEqual(['old', ['file.json']])
  })

  it('`removeFileDurably` returns whether there was a file to remove', () => {
    writeFileDurably(path, 'text')
    expect([removeFileDurably(path), removeFileDurably(path)]).toEqual([true, false])
  })
})

describe('a lock', () => {
  const context = createFakeContext({ home: tmpdir() })

  it('a lock has one holder at a time, and is released when the work under the lock throws', async () => {
    const order: string[] = []
    const work = (name: string) => async () => {
      order.push(`${name} begins`)
      await new Promise((resolve) => setTimeout(resolve, 5))
      order.push(`${name} ends`)
      throw new Error(name)
    }
    const waiting = { timeoutMs: 60_000 }
    const results = ['a', 'b'].map((name) => withLock(path, context, waiting, work(name)).catch(() => name))
    expect((await Promise.all(results)).sort()).toEqual(['a', 'b'])
    expect(order[1]).toBe(order[0]?.replace('begins', 'ends'))
    expect(await isLocked(path)).toBe(false)
  })

  it('`withLock` fails at the timeout if the lock is still held, unless `meanwhile` returns a result', async () => {
    await withLock(path, context, { timeoutMs: 0 }, async () => {
      expect(await isLocked(path)).toBe(true)
      await expect(withLock(path, context, { timeoutMs: 500 }, async () => 'mine')).rejects.toMatchObject({
        code: 'session_busy',
        exit: 7,
        message: expect.stringContaining(path),
      })
      const brought = { timeoutMs: 500, meanwhile: () => 'brought' }
      expect(await withLock(path, context, brought, async () => 'mine')).toBe('brought')
    })
  })

  it('`withLock` fails if the file cannot be locked, unless `withoutLocks` is "continue"', async () => {
    const disk = { ...realDisk, lock: () => Promise.reject(new Error('no locks')) }
    await expect(withLock(path, context, { timeoutMs: 0, disk }, async () => 1)).rejects.toMatchObject({
      code: 'store_unavailable',
      exit: 4,
    })
    expect(
      await withLock(path, context, { timeoutMs: 0, disk, withoutLocks: 'continue' }, async () => 1),
    ).toBe(1)
  })
})

import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withLock } from '../../src/storage/lock.ts'
import { createFakeContext } from '../fake-context.ts'
import { needs } from '../requirements.ts'

function lockPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-lock-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'lock')
}

const soon = () => new Promise((resolve) => setTimeout(resolve, 5))

describe('the lock', () => {
  it('the lock has one holder at a time', async () => {
    const path = lockPath()
    const context = createFakeContext()
    let inside = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 8 }, () =>
        withLock(path, context, { deadlineMs: 1e9 }, async () => {
          most = Math.max(most, ++inside)
          await soon()
          inside--
        }),
      ),
    )
    expect(most).toBe(1)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('the lock is released if the work fails', async () => {
    const path = lockPath()
    const context = createFakeContext()
    const failing = withLock(path, context, { deadlineMs: 10 }, () => Promise.reject(new Error('no')))
    await expect(failing).rejects.toThrow('no')
    await expect(withLock(path, context, { deadlineMs: 10 }, async () => 'mine')).resolves.toBe('mine')
  })

  it('the lock is not stolen: waiting too long is an error that names it', async () => {
    const path = lockPath()
    const context = createFakeContext()
    await withLock(path, context, { deadlineMs: 10 }, async () => {
      await expect(withLock(path, context, { deadlineMs: 60_000 }, async () => {})).rejects.toMatchObject({
        code: 'session_busy',
        exit: 7,
        message: expect.stringContaining('for 60 seconds'),
        hint: expect.stringContaining('do not delete the lock file'),
      })
    })
    expect(context.clock.slept.reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(60_000)
  })

  it('waiting for the lock ends when another process has produced the result', async () => {
    const path = lockPath()
    const context = createFakeContext()
    let asked = 0
    await withLock(path, context, { deadlineMs: 10 }, async () => {
      const meanwhile = async () => (++asked === 3 ? 'brought' : undefined)
      const got = await withLock(path, context, { deadlineMs: 60_000, meanwhile }, async () => 'worked for')
      expect(got).toBe('brought')
    })
  })

  it('waiting for the lock ends after Ctrl-C', async () => {
    const path = lockPath()
    const context = createFakeContext()
    await withLock(path, context, { deadlineMs: 10 }, async () => {
      const waiting = withLock(path, context, { deadlineMs: 60_000 }, async () => {})
      context.interrupt()
      await expect(waiting).rejects.toMatchObject({ exit: 130 })
    })
  })

  it('a system without locks is refused, and the error names what works without', async () => {
    const load = () => Promise.reject(new Error('no binary for this platform'))
    const locking = withLock(lockPath(), createFakeContext(), { deadlineMs: 10, load }, async () => {})
    await expect(locking).rejects.toMatchObject({
      code: 'lock_unavailable',
      exit: 4,
      hint: expect.stringContaining('MAILCLAIM_API_KEY'),
    })
  })

  it('a file system without locks is refused', async () => {
    const load = async () => ({
      tryLock: () => {
        throw new Error('ENOLCK')
      },
      unlock: () => {},
    })
    const locking = withLock(lockPath(), createFakeContext(), { deadlineMs: 10, load }, async () => {})
    await expect(locking).rejects.toMatchObject({
      code: 'lock_unavailable',
      message: expect.stringContaining('ENOLCK'),
    })
  })

  it.runIf(needs('posix'))('a link in the place of the lock file is refused', async () => {
    const path = lockPath()
    writeFileSync(`${path}.elsewhere`, '')
    symlinkSync(`${path}.elsewhere`, path)
    const locking = withLock(path, createFakeContext(), { deadlineMs: 10 }, async () => {})
    await expect(locking).rejects.toMatchObject({
      code: 'lock_unavailable',
      message: expect.stringContaining('link'),
    })
  })
})

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { createOutputStream } from '../src/streams.ts'

/** Writes pieces of text to an output; returns the text that reached the file descriptor, and the text that reached the stream. */
async function written(platform: NodeJS.Platform, pieces: readonly string[]) {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-streams-'))
  const file = join(directory, 'output')
  const fd = openSync(file, 'w')
  onTestFinished(() => {
    closeSync(fd)
    rmSync(directory, { recursive: true })
  })
  const stream = new PassThrough({ highWaterMark: 2 ** 20 })
  const output = createOutputStream(
    () => stream as unknown as NodeJS.WriteStream,
    fd,
    platform,
    new AbortController().signal,
  )
  for (const piece of pieces) await output.write(piece)
  return { direct: readFileSync(file, 'utf8'), streamed: String(stream.read() ?? '') }
}

test('output to a file is written to the file descriptor while its total is at most 16 KiB, then to the stream', async () => {
  const long = 'x'.repeat(16 * 1024 - 3)
  expect(await written('linux', ['one ', 'two'])).toEqual({ direct: 'one two', streamed: '' })
  expect(await written('linux', ['one ', long, 'two'])).toEqual({ direct: 'one ', streamed: `${long}two` })
})

test('all output on Windows is written to the stream, and none directly to the file descriptor', async () => {
  expect(await written('win32', ['one ', 'two'])).toEqual({ direct: '', streamed: 'one two' })
})

test.each([
  ['stdout', undefined],
  ['stderr', 'may be lost'],
] as const)('a blocked write to %s does not delay an interrupt', async (_, loss) => {
  const stuck = new Writable({ write() {} })
  const interrupts = new AbortController()
  const output = createOutputStream(
    () => stuck as unknown as NodeJS.WriteStream,
    -1,
    'win32',
    interrupts.signal,
    loss,
  )
  const written = output.write('never read')
  const reason = new Error('interrupted')
  interrupts.abort(reason)
  if (loss === undefined) await expect(written).rejects.toBe(reason)
  else await written
})

test('text written to stderr after an interrupt still arrives', async () => {
  const pending: (() => void)[] = []
  const arrived: string[] = []
  const slow = new Writable({
    write(chunk, _encoding, done) {
      arrived.push(String(chunk))
      pending.push(done)
    },
  })
  const interrupts = new AbortController()
  const stream = () => slow as unknown as NodeJS.WriteStream
  const output = createOutputStream(stream, -1, 'win32', interrupts.signal, 'may be lost')
  const progress = output.write('working')
  interrupts.abort(new Error('interrupted'))
  await progress
  const error = output.write('interrupted')
  for (let done = pending.shift(); done !== undefined; done = pending.shift()) done()
  await new Promise((resolve) => setImmediate(resolve))
  pending.shift()?.()
  await error
  expect(arrived).toEqual(['working', 'interrupted'])
})

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { realOutput } from '../src/streams.ts'

/** What reaches the file descriptor directly, and what goes through the stream, after two writes. */
async function written(platform: NodeJS.Platform) {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-streams-'))
  const file = join(directory, 'output')
  const fd = openSync(file, 'w')
  onTestFinished(() => {
    closeSync(fd)
    rmSync(directory, { recursive: true })
  })
  const stream = new PassThrough()
  const output = realOutput(() => stream as unknown as NodeJS.WriteStream, fd, platform)
  await output.write('one ')
  await output.write('two')
  return { direct: readFileSync(file, 'utf8'), streamed: String(stream.read() ?? '') }
}

test('the first write goes directly to a file, and later ones through the stream', async () => {
  expect(await written('linux')).toEqual({ direct: 'one ', streamed: 'two' })
})

test('on Windows every write goes through the stream', async () => {
  expect(await written('win32')).toEqual({ direct: '', streamed: 'one two' })
})

import type { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'

/** Bytes; longer than any key. */
const LONGEST_KEY = 64 * 1024

/** Reads an API key from standard input, or asks for it on a terminal. @throws CliError exit 2. */
export async function readApiKey(
  context: Pick<Context, 'stdin' | 'prompts'>,
  settings: Pick<Settings, 'interactive'>,
): Promise<string> {
  return context.stdin.isTTY
    ? askForKey(context, settings)
    : (await readKey(context.stdin.stream)).replace(/\r?\n$/, '')
}

/** Reads a key from a pipe. @throws CliError exit 2 if it is longer than any key: the wrong file was piped in. */
async function readKey(stream: Readable): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of stream as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(piece)
    length += bytes.length
    if (length > LONGEST_KEY) {
      throw usageError(`standard input is not an API key: it is longer than ${LONGEST_KEY / 1024} KiB`)
    }
    pieces.push(bytes)
  }
  return Buffer.concat(pieces).toString('utf8')
}

async function askForKey(
  context: Pick<Context, 'prompts'>,
  settings: Pick<Settings, 'interactive'>,
): Promise<string> {
  if (!settings.interactive)
    throw usageError(
      'the API key is missing, and questions are not allowed',
      'pipe it in: mailclaim login --with-api-key < key.txt',
    )
  return context.prompts.password({ message: 'API key:' })
}

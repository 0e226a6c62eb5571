import type { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { requireApiKey, requireLocalStore, tryApiKey } from '../session/api-key.ts'
import { storeApiKey } from '../session/replace.ts'
import { requireBaseUrl, type Settings } from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { usableStore } from './usable-store.ts'

/** Bytes; longer than any key. */
const LONGEST_KEY = 64 * 1024

/**
 * Reads an API key and stores it in place of the profile's old session.
 *
 * @param chosenStore where the key belongs, if that works here
 * @param isTried whether the service is asked first; if it refuses the key, nothing changes
 * @throws CliError exit 2 or 3 for what is missing, or as `usableStore`, `requireApiKey`, `tryApiKey` and `storeApiKey`.
 */
export async function signInWithApiKey(
  chosenStore: StoreKind,
  isTried: boolean,
  context: Context,
  settings: Settings,
): ReturnType<typeof storeApiKey> {
  const base = isTried || settings.baseUrl !== undefined ? requireBaseUrl(settings) : undefined
  const store = await usableStore(requireLocalStore(chosenStore), 'api_key', context, settings)
  const value = await readApiKey(context, settings)
  requireApiKey(value)
  if (isTried) await tryApiKey(context, settings, value)
  return storeApiKey(context, settings, { value, base, store })
}

/** Reads an API key from standard input, or asks for it on a terminal. @throws CliError exit 2. */
async function readApiKey(
  context: Pick<Context, 'stdin' | 'prompts'>,
  settings: Pick<Settings, 'interactive'>,
): Promise<string> {
  if (context.stdin.isTTY) return askForKey(context, settings)
  const key = (await readKey(context.stdin.stream)).replace(/\r?\n$/, '')
  if (key === '')
    throw usageError(
      'there is no API key on standard input: it is empty',
      'check that the file or the secret it comes from is set',
    )
  return key
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

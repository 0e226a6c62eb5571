import { readGivenValue } from '../dns/diagnosis/given-value.ts'
import { usageError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { MAX_VALUE_BYTES } from './record.ts'

/**
 * The value to expect, from what a person gave, without what can't belong to it.
 *
 * @param what what the messages call it: `--value`
 * @throws CliError exit 2 if it can't be a complete value
 */
export function readValue(given: string, what: string): string {
  if (Buffer.byteLength(given) > MAX_VALUE_BYTES)
    throw usageError(`${what} is longer than a TXT record can be (${MAX_VALUE_BYTES} bytes)`)
  const read = readGivenValue(given)
  if (!read.ok) throw usageError(`${what} ${read.problem}`, sanitizeLine(read.fix))
  return read.value
}

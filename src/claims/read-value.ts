import { readGivenValue } from '../dns/value.ts'
import { usageError } from '../errors.ts'
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
  const value = readGivenValue(given)
  if (value === undefined)
    throw usageError(`${what} isn't a complete value`, 'give the complete TXT value, such as prefix=token')
  return value
}

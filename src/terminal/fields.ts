import { type CliError, usageError } from '../errors.ts'
import { FORMATS, type Settings } from '../settings/settings.ts'
import { type Item, valueAt } from './columns.ts'

type FieldSettings = Pick<Settings, 'fields' | 'knownFields'>

/** The fields that `--fields` names and the command doesn't know. An item of the service may have them all the same. */
export function unlistedFields({ fields = [], knownFields }: FieldSettings): string[] {
  return fields.filter((field) => {
    const path = field.replaceAll(/\.\d+(?=\.|$)/g, '')
    return !knownFields.some((known) => known === path || known.startsWith(`${path}.`))
  })
}

/** The error for a field that there isn't. */
export function unknownFieldError(field: string, { knownFields }: FieldSettings): CliError {
  return usageError(
    `--fields: unknown field ${JSON.stringify(field)}`,
    `the fields are ${knownFields.join(', ')}`,
  )
}

/** The error for `--fields` with a format that isn't made of fields. */
export function noFieldsError(format: string): CliError {
  return usageError(
    `--fields can't be used with the format ${format}`,
    `add --format with one of ${FORMATS.join(', ')}`,
  )
}

/**
 * Checks that an unlisted field is in the data, before any of it is printed.
 *
 * @param items of a list, those of the first page
 * @throws CliError `usage`, exit 2
 */
export function requireFields(items: readonly Item[], settings: FieldSettings): void {
  const absent = unlistedFields(settings).find((field) =>
    items.every((item) => valueAt(item, field) === undefined),
  )
  if (absent !== undefined) throw unknownFieldError(absent, settings)
}

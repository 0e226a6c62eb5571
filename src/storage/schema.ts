import { requireFormat } from './json-file.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** How one property is kept in a file. */
export interface Field<T> {
  /** @throws Error that names the field and says what was expected. */
  read(object: JsonObject, name: string): T
  /** The property as JSON: almost always one field of that name. */
  write(value: T, name: string): JsonObject
}

/** How an object is kept in a file. */
export interface ObjectSchema<T> {
  /** @throws Error that names the field and says what was expected. */
  read(object: JsonObject): T
  write(value: T): JsonObject
}

/** A JSON file of this program. */
export interface FileSchema<T> {
  /** For `readJson`. @throws Error that says what is wrong: damaged, or written by a later version. */
  parse(value: unknown): T
  /** The whole text of the file. */
  text(value: T): string
}

/** What a schema reads and writes. */
export type Contents<S> = S extends Field<infer T> | ObjectSchema<infer T> | FileSchema<infer T> ? T : never

/** A field of one JSON value. `read` gives undefined for a value that isn't as `expected` says. */
export function field<T>(
  expected: string,
  read: (value: unknown) => T | undefined,
  write: (value: T) => unknown = (value) => value,
): Field<T> {
  return {
    read(object, name) {
      const value = read(object[name])
      if (value === undefined) throw new Error(`it is damaged: ${name} is not ${expected}`)
      return value
    },
    write: (value, name) => ({ [name]: write(value) }),
  }
}

/** Text that isn't empty. */
export const text = field('text', (value) => (typeof value === 'string' && value !== '' ? value : undefined))

export const number = field('a number', (value) => (typeof value === 'number' ? value : undefined))

/** Wall-clock milliseconds, kept as text that people can read. */
export const time = field(
  'a time',
  (value) => {
    const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
    return Number.isNaN(ms) ? undefined : ms
  },
  (ms) => new Date(ms).toISOString(),
)

export function oneOf<const T extends string>(...values: readonly T[]): Field<T> {
  return field(values.join(' or '), (value) => values.find((candidate) => candidate === value))
}

/** A field that may be missing; it is written as null. */
export function nullable<T>(inner: Field<T>): Field<T | null> {
  return {
    read: (object, name) => ((object[name] ?? null) === null ? null : inner.read(object, name)),
    write: (value, name) => (value === null ? { [name]: null } : inner.write(value, name)),
  }
}

/** A field whose name in the file isn't the property's. */
export function named<T>(name: string, inner: Field<T>): Field<T> {
  return { read: (object) => inner.read(object, name), write: (value) => inner.write(value, name) }
}

/** An object below a name. */
export function nested<T>(schema: ObjectSchema<T>): Field<T> {
  return field(
    'an object',
    (value) => (isObject(value) ? schema.read(value) : undefined),
    (value) => schema.write(value),
  )
}

export function list<T>(schema: ObjectSchema<T>): Field<T[]> {
  return field(
    'a list of objects',
    (value) =>
      Array.isArray(value) && value.every(isObject) ? value.map((item) => schema.read(item)) : undefined,
    (items) => items.map((item) => schema.write(item)),
  )
}

type Properties<F> = { readonly [K in keyof F]: Contents<F[K]> }

/** An object with these properties; `clientId` is the field `client_id`. */
export function object<F extends Readonly<Record<string, Field<unknown>>>>(
  fields: F,
): ObjectSchema<Properties<F>> {
  const entries = Object.entries(fields).map(([property, inner]) => ({
    property: property as keyof F,
    name: property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    inner,
  }))
  return {
    read: (from) =>
      Object.fromEntries(
        entries.map(({ property, name, inner }) => [property, inner.read(from, name)]),
      ) as Properties<F>,
    write: (value) =>
      Object.assign({}, ...entries.map(({ property, name, inner }) => inner.write(value[property], name))),
  }
}

/** A file that holds one object, with the number of its format. @param indent spaces; 0 keeps it on one line. */
export function file<T>(version: number, schema: ObjectSchema<T>, indent = 0): FileSchema<T> {
  return {
    parse(value) {
      if (!isObject(value)) throw new Error('it is damaged: it does not hold an object')
      requireFormat(value['version'], version)
      return schema.read(value)
    },
    text: (value) => `${JSON.stringify({ version, ...schema.write(value) }, null, indent)}\n`,
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

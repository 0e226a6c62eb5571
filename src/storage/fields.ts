import { requireFormat } from './json-file.ts'

/** Reads the fields of a file of ours; every complaint names the field and says what was expected. */
export class Fields {
  readonly #fields: Record<string, unknown>

  /** @throws Error where the value is no object of this version. */
  constructor(value: unknown, version: number) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Error('it is damaged: it does not hold an object')
    }
    this.#fields = value as Record<string, unknown>
    requireFormat(this.#fields['version'], version)
  }

  text(name: string): string {
    const value = this.#fields[name]
    if (typeof value !== 'string' || value === '') throw damaged(name, 'text')
    return value
  }

  textOrNull(name: string): string | null {
    return this.#fields[name] === null || this.#fields[name] === undefined ? null : this.text(name)
  }

  number(name: string): number {
    const value = this.#fields[name]
    if (typeof value !== 'number' || !Number.isFinite(value)) throw damaged(name, 'a number')
    return value
  }

  /** Milliseconds since 1970, kept as text that people can read. */
  time(name: string): number {
    const value = Date.parse(this.text(name))
    if (Number.isNaN(value)) throw damaged(name, 'a time')
    return value
  }

  oneOf<T extends string>(name: string, ...values: readonly T[]): T {
    const value = values.find((candidate) => candidate === this.#fields[name])
    if (value === undefined) throw damaged(name, values.join(' or '))
    return value
  }

  /** The object below a name, or null where there is none. */
  below<T>(name: string, read: (fields: Fields) => T): T | null {
    const value = this.#fields[name]
    if (value === null || value === undefined) return null
    return read(new Fields({ ...(value as object), version: 0 }, 0))
  }

  list<T>(name: string, read: (fields: Fields) => T): T[] {
    const value = this.#fields[name]
    if (!Array.isArray(value)) throw damaged(name, 'a list')
    return value.map((item: unknown) => read(new Fields({ ...(item as object), version: 0 }, 0)))
  }
}

function damaged(name: string, expected: string): Error {
  return new Error(`it is damaged: ${name} is not ${expected}`)
}

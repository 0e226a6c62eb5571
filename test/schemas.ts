import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'

/** A JSON Schema, as far as these tests look into one. */
export interface Schema {
  readonly $id?: string
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly $defs?: Readonly<Record<string, Schema>>
}

/** Where the schemas are in the repository. */
export const SCHEMAS = fileURLToPath(new URL('../docs/schemas', import.meta.url))

/** RFC 3339, as `mailclaim` writes it: UTC and milliseconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** A directory of schemas that refer to each other by the names of their files. */
export function readSchemas(directory: string) {
  const schemas = new Map(
    readdirSync(directory).map((file) => [
      file,
      JSON.parse(readFileSync(join(directory, file), 'utf8')) as Schema,
    ]),
  )
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, strictTypes: false })
  ajv.addFormat('date-time', TIME)
  ajv.addFormat('uri', (text: string) => URL.canParse(text))
  for (const schema of schemas.values()) ajv.addSchema(schema)

  return {
    files: [...schemas.keys()],
    get(file: string): Schema {
      const schema = schemas.get(file)
      if (schema === undefined) throw new Error(`there is no schema ${file}`)
      return schema
    },
    /** What is wrong with a value, a line for each problem; empty if it is valid. */
    problems(file: string, value: unknown): string[] {
      const validate = ajv.getSchema(file)
      if (validate === undefined) return [`there is no schema ${file}`]
      if (validate(value)) return []
      return (validate.errors ?? []).map(
        ({ instancePath, message, params }) => `${file}${instancePath}: ${message} ${JSON.stringify(params)}`,
      )
    },
  }
}

export type Schemas = ReturnType<typeof readSchemas>

/** The schema that a reference inside a file leads to, and the file that it is in. */
export function follow(schemas: Schemas, reference: string, file: string): readonly [Schema, string] {
  const [name = '', path = ''] = reference.split('#')
  const target = name === '' ? file : name
  const found = path
    .split('/')
    .slice(1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], schemas.get(target))
  return [found as Schema, target]
}

/** The schemas that a value may have to match at the same place: itself, and what it refers to or is made of. */
export function alternatives(schemas: Schemas, schema: Schema, file: string): (readonly [Schema, string])[] {
  const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? [])]
  const referred = schema.$ref === undefined ? [] : [follow(schemas, schema.$ref, file)]
  return [
    [schema, file] as const,
    ...parts.flatMap((part) => alternatives(schemas, part, file)),
    ...referred.flatMap(([target, where]) => alternatives(schemas, target, where)),
  ]
}

/** The dotted paths of all that a schema describes, as `--fields` names them: a list has the fields of its items. */
export function pathsIn(schemas: Schemas, file: string): string[] {
  return [...new Set(walk(schemas.get(file), file, ''))]

  function walk(schema: Schema, where: string, above: string): string[] {
    return alternatives(schemas, schema, where).flatMap(([one, place]) => [
      ...Object.entries(one.properties ?? {}).flatMap(([name, inner]) => [
        above + name,
        ...walk(inner, place, `${above}${name}.`),
      ]),
      ...(one.items === undefined ? [] : walk(one.items, place, above)),
    ])
  }
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'

/** The parts of a JSON Schema that these tests read. */
interface Schema {
  readonly $id?: string
  readonly title?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Directory of the published schemas. */
export const SCHEMAS = fileURLToPath(new URL('../docs/schemas', import.meta.url))

/** Matches a time as `mailclaim` writes times: RFC 3339 in UTC with milliseconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Reads all JSON Schemas of a directory, which may refer to each other by file name. */
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
    /** Validates a value against the schema in the file. Returns one line per problem; empty if the value is valid. */
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

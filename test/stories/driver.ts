import { join } from 'node:path'
import { alternatives, readSchemas, type Schema } from '../schemas.ts'

/** What a command of the description is, as far as this program looks into it. */
interface Described {
  readonly command: string
  readonly summary: string
  readonly account: string
  readonly arguments: readonly { name: string; required: boolean; asked: boolean; description: string }[]
  readonly options: readonly { name: string; description: string; needs: string | null }[]
  readonly exits: readonly { code: number; meaning: string; advice: 'continue' | 'stop' | 'retry' | 'wait' }[]
  readonly schema: string
}

/** What the description says of all commands. */
interface Description {
  readonly data: readonly Described[]
  readonly global_options: readonly { name: string; choices: readonly string[] | null }[]
  readonly environment: readonly { name: string; description: string }[]
  readonly schemas: { readonly directory: string; readonly error: string }
}

interface Ended {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

/** What somebody who wants a domain gives to the program. */
export interface Assignment {
  readonly domain: string
  /** What is known of the surroundings: a phrase that a description has, and the value. */
  readonly facts: Readonly<Record<string, string>>
  run(words: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended>
  /** Adds a record to DNS, by hand or with a provider's tool. */
  addRecord(record: Record<string, unknown>): Promise<void>
  sleep(seconds: number): Promise<void>
}

type Json = Record<string, unknown>

/**
 * Claims a domain with a program that it knows only from its description and its schemas. Which command does what it reads in
 * the summaries, what to give in the descriptions, what came out in the schemas, and what to do then at the exit codes.
 *
 * @param description what the program says of itself
 * @returns what the last command printed
 */
export async function claimDomain(description: Description, assignment: Assignment): Promise<Json> {
  const { domain, facts, run, addRecord, sleep } = assignment
  const schemas = readSchemas(description.schemas.directory)
  const environment = Object.fromEntries(
    Object.entries(facts).map(([phrase, value]) => {
      const found = description.environment.filter((one) => one.description.startsWith(phrase))
      return [only(found, phrase).name, value]
    }),
  )
  const asJson = [
    only(
      description.global_options.filter(({ choices }) => choices?.includes('json')),
      'json',
    ).name,
    'json',
  ]

  const claim = await untilDone('start a claim')
  let isAdded = false
  await untilDone('check DNS for a record', async (report, command) => {
    if (!isAdded) await addRecord(described(claim, find('start a claim').schema, /record to add/) as Json)
    isAdded = true
    const delay = described(report, command.schema, /^how long/i)
    await sleep(typeof delay === 'number' ? delay : 1)
  })
  await untilDone('ask the service to verify')
  return untilDone('follow a claim to its end')

  /** The command whose summary shares the most words with what is to be done. */
  function find(intent: string): Described {
    const wordsOf = (text: string) =>
      new Set(
        text
          .toLowerCase()
          .split(/\W+/)
          .map((word) => word.replace(/s$/, ''))
          .filter((word) => word.length > 2),
      )
    const wanted = wordsOf(intent)
    const score = ({ summary }: Described) => [...wordsOf(summary)].filter((word) => wanted.has(word)).length
    const best = Math.max(...description.data.map(score))
    return only(
      description.data.filter((command) => score(command) === best),
      intent,
    )
  }

  /** Repeats a command as its exit codes say, until it is done. @throws Error if they say to stop. */
  async function untilDone(
    intent: string,
    pause: (document: Json, command: Described) => Promise<void> = () => sleep(1),
  ): Promise<Json> {
    const command = find(intent)
    const given = command.arguments
      .filter(({ required, asked, description: text }) => required || asked || text.includes('domain'))
      .map(({ description: text }) => (text.includes('domain') ? domain : fail(`what is ${text}?`)))
    const limit = command.options.find(
      ({ description: text, needs }) => needs === null && text.startsWith('give up after'),
    )
    const limits = limit === undefined ? [] : [limit.name, '1']
    for (let tries = 0; tries < 20; tries++) {
      const ended = await run([...command.command.split(' '), ...given, ...asJson, ...limits], environment)
      const exit = only(
        command.exits.filter(({ code }) => code === ended.code),
        `exit ${ended.code}`,
      )
      const document = ended.stdout === '' ? {} : parse(ended.stdout, command.schema)
      const error =
        exit.advice === 'continue' ? undefined : parse(lastLine(ended.stderr), description.schemas.error)
      if (exit.advice === 'continue') return document
      if (exit.advice === 'stop') fail(`${command.command}: ${exit.meaning}: ${JSON.stringify(error)}`)
      await pause(document, command)
    }
    return fail(`${command.command} is never done`)
  }

  function parse(text: string, schema: string): Json {
    const document = JSON.parse(text)
    const problems = schemas.problems(schema, document)
    if (problems.length > 0) fail(`${join(description.schemas.directory, schema)}: ${problems.join()}`)
    return document
  }

  /** The value whose description says what it is. */
  function described(document: Json, file: string, pattern: RegExp): unknown {
    const properties = alternatives(schemas, schemas.get(file), file).flatMap(([schema]) =>
      Object.entries(schema.properties ?? {}),
    )
    const [name] = only(
      properties.filter(([, schema]) => pattern.test((schema as Schema).description ?? '')),
      String(pattern),
    )
    return document[name]
  }
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}

function only<T>(found: readonly T[], what: string): T {
  const [first, ...others] = found
  if (first === undefined || others.length > 0) return fail(`${found.length} things are "${what}"`)
  return first
}

function fail(message: string): never {
  throw new Error(message)
}

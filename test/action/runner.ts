import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { interpolate, isMet, type Scope, type Value } from './expressions.ts'

/**
 * A small runner of the steps of a job and of composite actions, as GitHub's: expressions, conditions, variables, the files of
 * `GITHUB_OUTPUT`, `GITHUB_ENV`, `GITHUB_PATH` and `GITHUB_STEP_SUMMARY`, workflow commands, and a cache.
 */
export interface Step {
  readonly id?: string
  readonly name?: string
  readonly if?: string
  readonly uses?: string
  readonly run?: string
  readonly shell?: string
  readonly with?: Readonly<Record<string, string | number | boolean>>
  readonly env?: Readonly<Record<string, string | number>>
  readonly 'continue-on-error'?: boolean
}

export interface Action {
  readonly inputs: Readonly<Record<string, { description: string; required?: boolean; default?: string }>>
  readonly outputs: Readonly<Record<string, { description: string; value: string }>>
  readonly runs: { readonly using: 'composite'; readonly steps: readonly Step[] }
}

export const ACTION_DIRECTORY = fileURLToPath(new URL('../..', import.meta.url)).replace(/[/\\]$/, '')
export const action = parse(readFileSync(join(ACTION_DIRECTORY, 'action.yml'), 'utf8')) as Action

/** A workflow command that the runner found in the output of a step. */
export interface Command {
  readonly command: string
  readonly properties: Readonly<Record<string, string>>
  readonly data: string
}

export interface Job {
  readonly succeeded: boolean
  readonly steps: Readonly<
    Record<string, { readonly outputs: Record<string, string>; readonly outcome: string }>
  >
  /** What the steps printed, without the lines that the runner took for commands, and without masks. */
  readonly log: string
  readonly commands: readonly Command[]
  /** All job summaries, one after the other. */
  readonly summary: string
  readonly env: Readonly<Record<string, string>>
}

export interface JobOptions {
  /** Where the job's directories are made. */
  readonly home: string
  /** The variables of the machine and of the job. */
  readonly env: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly vars?: Readonly<Record<string, string>>
  /** Keys and directories with what was saved; shared by the runs of a workflow. */
  readonly cache?: Map<string, string>
}

/** Runs the steps of a job on a new machine, whose workspace is `workspace` in the home. */
export async function runJob(steps: readonly Step[], options: JobOptions): Promise<Job> {
  const machine = mkdtempSync(join(options.home, 'machine-'))
  const temp = join(machine, 'temp')
  const workspace = join(options.home, 'workspace')
  for (const directory of [temp, workspace]) mkdirSync(directory, { recursive: true })
  const cache = options.cache ?? new Map<string, string>()
  const env: Record<string, string> = {
    ...options.env,
    CI: 'true',
    GITHUB_ACTIONS: 'true',
    RUNNER_TEMP: temp,
  }
  const commands: Command[] = []
  let log = ''
  let summary = ''
  let count = 0

  /** Runs steps in turn. A step's own variables also apply to the steps of the action that it uses. */
  async function runAll(
    all: readonly Step[],
    contexts: Readonly<Record<string, Value>>,
    outer: Readonly<Record<string, string>>,
  ) {
    const results: Record<string, { outputs: Record<string, string>; outcome: string }> = {}
    let failed = false
    for (const step of all) {
      const scope: Scope = {
        contexts: { ...contexts, steps: results, env: { ...env, ...outer } },
        failed,
      }
      const result = isMet(step.if, scope)
        ? await runStep(step, scope, { ...outer, ...interpolated(step.env, scope) })
        : { outputs: {}, outcome: 'skipped' }
      if (step.id !== undefined) results[step.id] = result
      if (result.outcome === 'failure' && step['continue-on-error'] !== true) failed = true
    }
    return { results, failed }
  }

  async function runStep(step: Step, scope: Scope, own: Record<string, string>) {
    if (step.run !== undefined) return runScript(interpolate(step.run, scope), own)
    const inputs = interpolated(step.with, scope)
    const [, name = '', part] = /^(?:actions\/)?([^/@]+)(?:\/([^@]+))?/.exec(step.uses ?? '') ?? []
    if (name === 'checkout' || name === 'setup-node') return { outputs: {}, outcome: 'success' }
    if (name === 'cache') return part === 'save' ? saveCache(inputs) : restoreCache(inputs)
    if (step.uses === './' || /\/mailclaim@/.test(step.uses ?? '')) return runAction(inputs, own)
    throw new Error(`the runner doesn't know ${step.uses}`)
  }

  async function runAction(given: Record<string, string>, own: Record<string, string>) {
    for (const name of Object.keys(given))
      if (!Object.hasOwn(action.inputs, name)) throw new Error(`the action has no input ${name}`)
    const inputs = Object.fromEntries(
      Object.entries(action.inputs).map(([name, input]) => [name, given[name] ?? input.default ?? '']),
    )
    const variables = { ...own, GITHUB_ACTION_PATH: ACTION_DIRECTORY }
    const { results, failed } = await runAll(action.runs.steps, { inputs }, variables)
    const scope: Scope = { contexts: { inputs, steps: results }, failed }
    const outputs = Object.fromEntries(
      Object.entries(action.outputs).map(([name, { value }]) => [name, interpolate(value, scope)]),
    )
    return { outputs, outcome: failed ? 'failure' : 'success' }
  }

  async function runScript(script: string, own: Record<string, string>) {
    const directory = join(machine, `step-${count++}`)
    mkdirSync(directory)
    const file = (name: string) => join(directory, name)
    const files = {
      GITHUB_OUTPUT: file('output'),
      GITHUB_ENV: file('env'),
      GITHUB_PATH: file('path'),
      GITHUB_STEP_SUMMARY: file('summary'),
    }
    for (const path of Object.values(files)) writeFileSync(path, '')
    writeFileSync(file('script.sh'), script)
    const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', file('script.sh')], {
      cwd: workspace,
      env: { ...env, ...own, ...files },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text
      })
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject).once('close', resolve)
    })
    const seen = takeCommands(printed)
    log += seen.log
    commands.push(...seen.commands)
    summary += readFileSync(files.GITHUB_STEP_SUMMARY, 'utf8')
    Object.assign(env, readAssignments(readFileSync(files.GITHUB_ENV, 'utf8')))
    for (const path of readFileSync(files.GITHUB_PATH, 'utf8').split('\n').filter(Boolean))
      env['PATH'] = `${path}${delimiter}${env['PATH']}`
    return {
      outputs: readAssignments(readFileSync(files.GITHUB_OUTPUT, 'utf8')),
      outcome: code === 0 ? 'success' : 'failure',
    }
  }

  /** A prefix matches the newest entry, as GitHub's `restore-keys` do. */
  function restoreCache(inputs: Record<string, string>) {
    const { key = '', path = '', 'restore-keys': prefix } = inputs
    // What the action itself refuses.
    if (key.includes(',') || key.length > 512) return { outputs: {}, outcome: 'failure' }
    const isMatch = (each: string) => prefix !== undefined && each.startsWith(prefix)
    const found = cache.has(key) ? key : [...cache.keys()].reverse().find(isMatch)
    if (found !== undefined) cpSync(cache.get(found) ?? '', path, { recursive: true })
    const outputs = { 'cache-hit': String(found === key), 'cache-matched-key': found ?? '' }
    return { outputs, outcome: 'success' }
  }

  function saveCache({ key = '', path = '' }: Record<string, string>) {
    if (cache.has(key)) throw new Error(`the cache has the key ${key} already`)
    const saved = join(options.home, `cache-${cache.size}`)
    cpSync(path, saved, { recursive: true })
    cache.set(key, saved)
    return { outputs: {}, outcome: 'success' }
  }

  const job = { secrets: options.secrets ?? {}, vars: options.vars ?? {} }
  const { results, failed } = await runAll(steps, job, {})
  rmSync(machine, { recursive: true, force: true })
  return { succeeded: !failed, steps: results, log, commands, summary, env }
}

function interpolated(
  values: Readonly<Record<string, string | number | boolean>> | undefined,
  scope: Scope,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values ?? {}).map(([name, value]) => [name, interpolate(String(value), scope)]),
  )
}

/** `name=value`, or `name<<delimiter`, lines, and the delimiter. */
export function readAssignments(text: string): Record<string, string> {
  const values: Record<string, string> = {}
  const lines = text.split('\n')
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    if (line === '') continue
    const [, name = '', kind, rest = ''] = /^(.*?)(=|<<)(.*)$/.exec(line) ?? []
    if (kind === undefined) throw new Error(`the runner refuses the line "${line}"`)
    if (kind === '=') values[name] = rest
    else {
      const end = lines.indexOf(rest)
      if (end < 0) throw new Error(`the delimiter of ${name} is missing`)
      values[name] = lines
        .splice(0, end + 1)
        .slice(0, -1)
        .join('\n')
    }
  }
  return values
}

const COMMANDS = [
  ...['add-mask', 'add-matcher', 'add-path', 'debug', 'echo', 'endgroup', 'error', 'group', 'notice'],
  ...['remove-matcher', 'save-state', 'set-env', 'set-output', 'stop-commands', 'warning'],
]

/**
 * Takes workflow commands out of what a step printed. As in GitHub's runner, `::` may have spaces before it, `##[` may be
 * anywhere in a line, and between `stop-commands` and its token nothing is a command.
 */
export function takeCommands(printed: string): { log: string; commands: Command[] } {
  const commands: Command[] = []
  const rest: string[] = []
  let stopped: string | undefined
  for (const line of printed.split(/\r\n|[\r\n]/)) {
    if (stopped !== undefined) {
      if (line.trim() === `::${stopped}::`) stopped = undefined
      else rest.push(line)
      continue
    }
    const [, command = '', properties = '', data = ''] =
      /^\s*::([\w-]+)(?: (.*?))?::(.*)$/.exec(line) ?? /##\[([\w-]+)(?: (.*?))?\](.*)$/.exec(line) ?? []
    if (!COMMANDS.includes(command.toLowerCase())) rest.push(line)
    else if (command === 'stop-commands') stopped = data
    else commands.push({ command, properties: readProperties(properties), data: unescapeData(data) })
  }
  return { log: rest.join('\n'), commands }
}

function readProperties(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split(',')
      .filter(Boolean)
      .map((pair) => {
        const [name = '', ...value] = pair.split('=')
        return [name.trim(), unescapeData(value.join('=').replaceAll('%3A', ':').replaceAll('%2C', ','))]
      }),
  )
}

function unescapeData(text: string): string {
  return text.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%')
}

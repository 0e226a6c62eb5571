import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { needs } from './requirements.ts'
import { createServedWorld, install, type ServedWorld, writeScript } from './stories/built-program.ts'

/**
 * Runs every command block of the documents, from the top of a page to its end, each page with a sandbox of its own:
 *
 * - `sh` and `bash` blocks are scripts, which stop at a failure; `sh` is dash, in which bash's own syntax fails. A script has to
 *   exit with 0, or with N if `exit=N` follows the block's language.
 * - `console` blocks are transcripts: a command after `$` is run on a terminal of 80 columns, and has to print the lines below
 *   it. `…` stands for any text, and lines may break elsewhere. A command that fails has to be followed by `echo $?`.
 * - `skip="why"` after the language leaves a block out, and the test report lists the reason.
 * - `<!-- before: command -->` is run before the next block, for steps outside of the page such as adding a record to DNS.
 *
 * Other blocks (`json`, `yaml`, `text`) hold no commands.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url))

const SHELLS = {
  sh: ['dash', '-eu'],
  bash: ['bash', '-euo', 'pipefail'],
} as const
type Shell = keyof typeof SHELLS

interface Block {
  readonly line: number
  readonly kind: 'console' | Shell
  /** Reason why the block is not run. */
  readonly skip: string | undefined
  readonly exit: number
  readonly text: string
  readonly before: readonly string[]
}

function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  let before: string[] = []
  let open: { line: number; info: string; text: string[] } | undefined
  readFileSync(join(ROOT, page), 'utf8')
    .split('\n')
    .forEach((line, at) => {
      if (open === undefined) {
        const fence = /^```(\S.*)?$/.exec(line)
        if (fence !== null) open = { line: at + 1, info: fence[1] ?? '', text: [] }
        else before.push(...(/^<!-- before: (.*) -->$/.exec(line)?.slice(1) ?? []))
        return
      }
      if (line !== '```') {
        open.text.push(line)
        return
      }
      const [, kind, exit, skip] = /^(\w+)(?: exit=(\d+))?(?: skip="(.+)")?$/.exec(open.info) ?? []
      if (kind === 'sh' || kind === 'bash' || kind === 'console') {
        const { line: start, text } = open
        blocks.push({ line: start, kind, skip, exit: Number(exit ?? 0), text: text.join('\n'), before })
        before = []
      } else if (!['json', 'jsonl', 'yaml', 'text', 'ts', 'powershell'].includes(open.info)) {
        throw new Error(
          `${page}:${open.line}: a block of the kind "${open.info}" is neither run nor left out`,
        )
      }
      open = undefined
    })
  return blocks
}

/** Splits a transcript into its commands, each with its output. */
function transcript(text: string): { command: string; printed: string }[] {
  const steps: { command: string; printed: string }[] = []
  for (const line of text.split('\n')) {
    const step = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), printed: '' })
    else if (step?.command.endsWith('\\') && step.printed === '') step.command += `\n${line}`
    else if (step !== undefined) step.printed += `${line}\n`
  }
  return steps
}

/** Creates a pattern of an expected output: `…` matches any text, and spaces and line breaks are equal. */
function pattern(printed: string): RegExp {
  const words = printed
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '[^]*?'))
  return new RegExp(
    `^\\s*${words.join('\\s+').replaceAll('[^]*?\\s+', '[^]*?\\s*').replaceAll('\\s+[^]*?', '\\s*[^]*?')}\\s*$`,
  )
}

/** Runs a command on a terminal of 80 columns, and returns both streams interleaved. */
function onTerminal(command: string, world: ServedWorld): { code: number; printed: string } {
  writeFileSync(join(world.home, 'step.sh'), `set -o pipefail\n${command}\n`)
  const { status, stdout } = spawnSync(
    'script',
    ['-qec', 'stty cols 80 rows 60 -onlcr; bash step.sh', '/dev/null'],
    {
      cwd: world.home,
      env: { ...world.env, TERM: 'dumb', NO_COLOR: '1' },
      encoding: 'utf8',
      input: '',
      timeout: 50_000,
    },
  )
  return { code: status ?? -1, printed: stdout.replaceAll('\r', '') }
}

function asScript(text: string, exit: number, world: ServedWorld, shell: Shell = 'bash'): void {
  const [program, ...options] = SHELLS[shell]
  const { status, signal, stdout, stderr } = spawnSync(program, [...options, '-c', text], {
    cwd: world.home,
    env: world.env,
    encoding: 'utf8',
    input: '',
    timeout: 50_000,
  })
  // Without pipefail, a failing command before a pipe is noticed only by its error message.
  const failsUnseen = shell === 'sh' && exit === 0 && !text.includes('||') && /^error: /m.test(stderr)
  if (status !== exit || failsUnseen) {
    throw new Error(`ended with ${signal ?? status} instead of ${exit}:
${text}
${stdout}${stderr}`)
  }
}

function asTranscript(text: string, world: ServedWorld): void {
  let code = 0
  for (const { command, printed } of transcript(text)) {
    if (command === 'echo $?') {
      expect(`${code}`).toBe(printed.trim())
      code = 0
      continue
    }
    expect(code, 'a command that fails has to be followed by echo $?').toBe(0)
    const seen = onTerminal(command, world)
    code = seen.code
    expect(seen.printed, command).toMatch(pattern(printed))
  }
  expect(code, 'a command that fails has to be followed by echo $?').toBe(0)
}

async function createReader(): Promise<ServedWorld> {
  const world = await createServedWorld(['--auto-approve'])
  install(world)
  mkdirSync(join(world.home, 'bin'), { recursive: true })
  world.env['MAILCLAIM_API_KEY'] = world.service.api_key
  // Stands in for the reader's steps at the DNS provider.
  const publish = (body: string) =>
    `exec curl -sS -f -o /dev/null -X POST "$MAILCLAIM_BASE_URL/_sandbox/claims/\${2:-$1}/publish" --data ${body}`
  writeScript(join(world.home, 'bin'), 'publish', publish(`'{}'`))
  writeScript(
    join(world.home, 'bin'),
    'plant',
    `set -- "$1" example.com; ${publish(`"{\\"mistake\\":\\"$1\\"}"`)}`,
  )
  return world
}

const PAGES = [
  ...['README.md', 'AGENTS.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

describe.runIf(needs('bash', 'dash', 'script', 'curl', 'jq'))('the command blocks of the documents', () => {
  const pages = PAGES.map((page) => ({ page, blocks: blocksOf(page) })).filter(
    ({ blocks }) => blocks.length > 0,
  )

  test.each(
    pages.map(({ page, blocks }) => [page, blocks.filter((block) => block.skip === undefined)] as const),
  )(
    'the command blocks of %s end with the exit codes and print the output that the page shows',
    async (page, blocks) => {
      const world = await createReader()
      for (const { line, kind, exit, text, before } of blocks) {
        try {
          for (const command of before) asScript(command, 0, world)
          if (kind === 'console') asTranscript(text, world)
          else asScript(text, exit, world, kind)
        } catch (error) {
          if (error instanceof Error) error.message = `${page}:${line}: ${error.message}`
          throw error
        }
      }
    },
    180_000,
  )

  for (const { page, blocks } of pages) {
    for (const { line, skip } of blocks.filter((block) => block.skip !== undefined)) {
      // Make each skipped block a test, so that the test report lists it with its reason.
      test(`the command block at ${page}:${line} is not run: ${skip}`, () => expect(skip).toMatch(/\w+ \w+/))
    }
  }
})

test('no example in the documents passes a credential as an argument of curl, where other users can read it', () => {
  for (const page of PAGES)
    expect(readFileSync(join(ROOT, page), 'utf8'), page).not.toMatch(
      /(-H|--header|--oauth2-bearer|-u)[ =]*["']?(Authorization|\$)/i,
    )
})

test('the documents have less than 19,000 words in total', () => {
  const words = PAGES.map((page) => readFileSync(join(ROOT, page), 'utf8').split(/\s+/).length)
  expect(words.reduce((sum, count) => sum + count)).toBeLessThan(19_000)
})

test('a documented transcript matches output with other line breaks, and with any text in place of the ellipsis (…)', () => {
  const [first, second] = transcript('$ one \\\n  more\na …\nb\n$ echo $?\n8')
  expect(first).toEqual({ command: 'one \\\n  more', printed: 'a …\nb\n' })
  expect(second).toEqual({ command: 'echo $?', printed: '8\n' })
  expect('a and\nmore b').toMatch(pattern('a … b'))
  expect('a\n  b').toMatch(pattern('a b'))
  expect('a x').not.toMatch(pattern('a b'))
  expect('a b c').not.toMatch(pattern('a b'))
  expect('a b c').toMatch(pattern('a …'))
  expect('a b c').toMatch(pattern('… c'))
  expect('').toMatch(pattern(''))
})

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { needs } from '../requirements.ts'
import { ACTION_DIRECTORY, readAssignments, takeCommands } from './runner.ts'

const LINES = [
  '::error::x',
  '##[error]x',
  'EOF',
  'result<<EOF',
  'a=b',
  '%',
  '%0A',
  '%3A',
  ' ',
  ':',
  ',',
  '\r',
  'ü',
]
/** Any text that a variable can have, with much that the runner would act on. */
const text = fc
  .array(fc.oneof(fc.constantFrom(...LINES), fc.string({ unit: 'binary' })), { maxLength: 6 })
  .map((lines) => lines.join('\n').replaceAll('\0', ''))

/** Runs functions of action/workflow-commands.sh, with texts as `$1` and so on. */
function inBash(script: string, ...texts: string[]): { printed: string; output: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-action-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const output = join(directory, 'output')
  writeFileSync(output, '')
  const source = `set -euo pipefail; . '${join(ACTION_DIRECTORY, 'action/workflow-commands.sh')}'; ${script}`
  const printed = execFileSync('bash', ['-c', source, 'bash', ...texts], {
    env: { ...process.env, GITHUB_OUTPUT: output, LC_ALL: 'C.UTF-8' },
    encoding: 'utf8',
  })
  return { printed, output: readFileSync(output, 'utf8') }
}

describe.runIf(needs('posix', 'bash'))('the workflow commands of the action', () => {
  test('an output is its value, whatever that is, and no other output', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        const { output } = inBash('set_output one "$1"; set_output other "$2"', one, other)
        expect(readAssignments(output)).toEqual({ one, other })
      }),
      { numRuns: 40 },
    )
  })

  test('the line that ends an output is another one each time', () => {
    const { output } = inBash('set_output one 1; set_output two 2')
    const [one, two] = [...output.matchAll(/<<end-([0-9a-f]{32})$/gm)].map(([, random]) => random)
    expect(two).toMatch(/./)
    expect(one).not.toBe(two)
  })

  test('an annotation is one command with its title and text, whatever they are', () => {
    fc.assert(
      fc.property(text, text, (title, data) => {
        const { printed } = inBash('annotate error "$1" "$2"', title, data)
        expect(takeCommands(printed)).toEqual({
          log: '',
          commands: [{ command: 'error', properties: { title }, data }],
        })
      }),
      { numRuns: 40 },
    )
  })

  test('nothing that a program prints is a command, and its exit code is kept', () => {
    fc.assert(
      fc.property(text, (printed) => {
        const seen = inBash(
          'code=0; without_commands sh -c \'printf %s "$1"; exit 3\' sh "$1" || code=$?; annotate notice t "$code"',
          printed,
        )
        expect(takeCommands(seen.printed).commands).toEqual([
          { command: 'notice', properties: { title: 't' }, data: '3' },
        ])
      }),
      { numRuns: 40 },
    )
  })
})

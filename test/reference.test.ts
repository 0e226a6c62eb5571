import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { commandsPage, manualPage } from '../scripts/reference.ts'
import { everyCommand } from '../src/cli/line.ts'
import { needs } from './requirements.ts'

const words = [...everyCommand()].map((command) => command.words.join(' '))

test('docs/commands.md and the manual page are up to date with the definitions', async () => {
  const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')
  const { version } = JSON.parse(read('package.json')) as { version: string }
  expect(read('docs/commands.md')).toBe(await commandsPage())
  expect(read('man/mailclaim.1')).toBe(await manualPage(version))
})

test.each(words)('%s is in the manual page and in docs/commands.md', async (command) => {
  expect(await manualPage('0')).toContain(`.SS mailclaim ${command}\n`)
  expect(await commandsPage()).toContain(`\n## mailclaim ${command}\n`)
})

describe.runIf(needs('groff'))('troff', () => {
  test('troff formats the manual page without a warning, and every example is in it', async () => {
    const page = await manualPage('0.0.0')
    const { stdout, stderr } = spawnSync('groff', ['-man', '-Kutf8', '-Tutf8', '-ww', '-rLL=200n'], {
      input: page,
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    const plain = stdout.replace(/\u001b\[\d*m|.\u0008/g, '')
    for (const { leaf } of everyCommand()) {
      for (const line of Object.keys((await leaf.load()).examples)) expect(plain).toContain(line)
    }
  })
})

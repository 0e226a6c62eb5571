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

describe('examples', () => {
  const page = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')

  test('no example passes a credential in an argument, which other users can read', async () => {
    const pages = [
      await commandsPage(),
      ...['README', 'docs/scripting', 'docs/ci'].map((name) => page(`${name}.md`)),
    ]
    for (const text of pages)
      expect(text).not.toMatch(/(-H|--header|--oauth2-bearer|-u)[ =]*["']?(Authorization|\$)/i)
  })

  test('the example for CI gives the API key to the one step that needs it', () => {
    const { version } = JSON.parse(page('package.json')) as { version: string }
    const [job = ''] = page('docs/ci.md').match(/```yaml\n[^`]*/) ?? []
    const [before = '', step = ''] = job.split(/(?=- run: mailclaim )/)
    expect(before).toContain('permissions: {}')
    expect(before).toContain(`npm install --global --ignore-scripts mailclaim@${version}`)
    expect(before).not.toContain('API_KEY')
    expect(step).toContain('secrets.MAILCLAIM_API_KEY')
  })
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

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { command } from '../../src/commands/sandbox.ts'
import { SCOPES, SEEDED_CLIENTS } from '../../src/sandbox/clients.ts'
import { FAULT_KINDS } from '../../src/sandbox/faults.ts'
import { MISTAKES } from '../../src/sandbox/mistakes.ts'
import { sandboxForTest } from './start-sandbox.ts'

const text = readFileSync(new URL('../../docs/sandbox.md', import.meta.url), 'utf8')

test.each([
  { what: 'option', words: (command.options ?? []).map(({ flags }) => flags.split(' ')[0] ?? '') },
  { what: 'kind of fault', words: FAULT_KINDS },
  { what: 'mistake', words: MISTAKES.map(({ id }) => id).filter((id) => id !== 'none') },
  { what: 'scope', words: SCOPES },
  { what: 'client', words: Object.values(SEEDED_CLIENTS).map(({ id }) => `…${id.slice(-4)}`) },
])('the documentation of the sandbox names every $what', ({ words }) => {
  expect(words.length).toBeGreaterThan(0)
  expect(words.filter((word) => !new RegExp(`[\`, ]${word}[\`, ]`).test(text))).toEqual([])
})

test('every request in docs/sandbox.md is answered', async () => {
  const sandbox = await sandboxForTest()
  const lines = [...text.matchAll(/^curl -sS (.*)$/gm)].map((match) => match[1] ?? '')
  expect(lines.length).toBeGreaterThan(5)
  for (const line of lines) {
    const method = /-X (\w+)/.exec(line)?.[1] ?? 'GET'
    const path = /"\$MAILCLAIM_BASE_URL([^"]+)"/.exec(line)?.[1] ?? ''
    const body = /--data '([^']+)'/.exec(line)?.[1]
    const response = await fetch(`${sandbox.baseUrl}${path}`, {
      method,
      ...(body === undefined ? {} : { body }),
    })
    expect([line, response.ok]).toEqual([line, true])
  }
})

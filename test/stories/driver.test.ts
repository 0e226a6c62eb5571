import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type ServedWorld, shareSandbox } from './built-program.ts'
import { type Assignment, claimDomain } from './driver.ts'

const serve = shareSandbox()

async function descriptionFrom(world: ServedWorld) {
  const { stdout } = await world.run(['commands', '--json'])
  return JSON.parse(stdout)
}

/** Somebody at the sandbox, and what was done there. */
function assign(world: ServedWorld, domain: string, mistakes: readonly string[] = []) {
  const { base_url, api_key, dns } = world.service
  const typed: string[] = []
  const slept: number[] = []
  /** What the reports of checks say about when to check again. */
  const told: (number | null)[] = []
  const left = [...mistakes]
  const bare = { PATH: world.env['PATH'], HOME: world.env['HOME'] }
  for (const name of Object.keys(world.env)) if (!(name in bare)) delete world.env[name]
  const assignment: Assignment = {
    domain,
    facts: {
      'address of the service': base_url,
      'an API key': api_key,
      'DNS resolvers': dns,
      'port of authoritative name servers': dns.split(':').at(-1) ?? '',
    },
    async run(words, env) {
      typed.push(words.join(' '))
      const ended = await world.run(words, { env })
      if (words.includes('check')) told.push(JSON.parse(ended.stdout).retry_after_seconds)
      return ended
    },
    async addRecord(record) {
      expect(record).toMatchObject({ type: 'TXT', name: domain })
      await publish(left.shift() ?? 'none')
    },
    async sleep(seconds) {
      slept.push(seconds)
      // Meanwhile, the other name server has the record as well.
      if (slept.length > 1) await publish('none')
    },
  }
  async function publish(mistake: string) {
    await fetch(`${base_url}/_sandbox/claims/${domain}/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ mistake }),
    })
  }
  return { assignment, typed, slept, told }
}

test('a program that knows only mailclaim commands --json and the schemas claims a domain', async () => {
  const world = serve()
  const { assignment, typed } = assign(world, 'driven.example')
  const last = await claimDomain(await descriptionFrom(world), assignment)
  expect(last).toMatchObject({ name: 'driven.example', status: 'completed' })
  expect(typed[0]).toBe('claims create driven.example --format json')
  expect(typed.filter((line) => line.startsWith('claims check'))).toHaveLength(2)
})

test('it waits as long as the reports say, until the last name server has the record', async () => {
  const world = serve()
  const { assignment, slept, told } = assign(world, 'behind.example', ['second_outdated'])
  const last = await claimDomain(await descriptionFrom(world), assignment)
  expect(last).toMatchObject({ status: 'completed' })
  expect(slept).toHaveLength(2)
  expect(told).toEqual([...slept, null])
})

test('it stops where the exit code says so, and names the error', async () => {
  const world = serve()
  const { assignment, typed } = assign(world, 'own.example')
  await expect(claimDomain(await descriptionFrom(world), assignment)).rejects.toThrow(
    /the service refused the request: .*domain_already_owned/,
  )
  expect(typed).toHaveLength(1)
})

test('the program has no name of a command, an option, a variable, a field, or an exit code in it', async () => {
  const description = await descriptionFrom(serve())
  const source = readFileSync(new URL('driver.ts', import.meta.url), 'utf8')
  const literals = source.slice(source.indexOf('export async function'))
  for (const { command, options, fields } of description.data) {
    if (command.includes(' ')) expect(literals).not.toContain(`${command} `)
    for (const { name } of options) expect(literals).not.toContain(name)
    if (command === 'claims check' || command === 'claims create')
      for (const field of fields.filter((one: string) => /[._]/.test(one)))
        expect(literals).not.toContain(field)
  }
  for (const { name } of description.environment) expect(literals).not.toContain(name)
  expect(literals).not.toMatch(/--[a-z]|MAILCLAIM|code === \d/)
})

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { createServedWorld, install } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const ADDRESS = /http:\/\/\S+\/oauth\/authorize\S+/

/** Commands of the section "Quick start", one per line. */
function quickStart(): string[] {
  const screen = README.split(/^## /m).find((section) => section.startsWith('Quick start')) ?? ''
  return [...screen.matchAll(/^```sh.*\n([^`]*)^```$/gm)].flatMap(([, text = '']) => text.trim().split('\n'))
}

describe.runIf(needs('tmux'))("the README's quick start", () => {
  test("the README's quick start completes a claim from an empty home directory in at most ten commands", async () => {
    const world = await createServedWorld(['--auto-approve'])
    const { base_url, client_id } = world.service
    // Unset the variables that a user of a real account doesn't have. The sandbox's DNS addresses must stay.
    delete world.env['MAILCLAIM_BASE_URL']
    delete world.env['MAILCLAIM_CLIENT_ID']
    delete world.env['MAILCLAIM_STORE']
    install(world)

    const commands = quickStart()
    expect(commands.length).toBeLessThanOrEqual(10)
    expect(commands[0]).toBe('npm install --global mailclaim')
    const [login = '', claim = '', ...others] = commands.slice(1)
    expect(others).toEqual([])

    const typed = login.replace('https://api.example.net', base_url).replace('YOUR_CLIENT_ID', client_id)
    const signIn = openTerminal(world, typed, { columns: 120 })
    // This machine has no keychain, so the login offers the file store.
    await signIn.until(/Keep the secret in a file that only you can read instead\?/)
    signIn.keys('y', 'Enter')
    await signIn.until(ADDRESS)
    const address = ADDRESS.exec(signIn.lines().join('\n'))?.[0] ?? ''
    await fetch(address)
    expect(await signIn.exit(), signIn.screen()).toBe(0)

    const following = openTerminal(world, claim, { columns: 120 })
    await following.until(/Add this TXT record to DNS:/)
    await world.control('POST', 'claims/example.com/publish', {})
    expect(await following.exit(), following.screen()).toBe(0)
    expect(following.screen()).toContain('✔ Completed')

    const claims = await world.run(['claims', 'list', '--fields', 'name,status'])
    expect(claims.stdout).toBe('name\tstatus\nexample.com\tcompleted\n')
  })
})

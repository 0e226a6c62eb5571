import { describe, expect, it } from 'vitest'
import { type LoginCommandOptions, loginCommand } from '../../src/settings/login-command.ts'

describe('the command that signs in again', () => {
  it.each<[string, LoginCommandOptions, string]>([
    ['names no defaults', { profile: 'default', store: 'keychain' }, 'mailclaim login'],
    [
      'names the profile and the store',
      { profile: 'work', store: 'file' },
      'mailclaim login --profile work --store file',
    ],
    [
      'names the service',
      { profile: 'default', baseUrl: 'https://api.example', clientId: 'c 1', issuer: 'https://auth.example' },
      "mailclaim login --base-url https://api.example --client-id 'c 1' --issuer https://auth.example",
    ],
    [
      'repeats what was typed, and adds only what is missing or has changed',
      {
        profile: 'work',
        store: 'file',
        issuer: 'https://two.example',
        typed: ['--json', 'login', '--scope', 'a b', '--profile=work', '--issuer', 'https://one.example'],
      },
      "mailclaim --json login --scope 'a b' --profile=work --issuer https://one.example --store file --issuer https://two.example",
    ],
  ])('the login command %s', (_what, options, command) => {
    expect(loginCommand(options, 'linux')).toBe(command)
  })

  it('the login command is quoted for PowerShell and cmd.exe on Windows', () => {
    expect(loginCommand({ profile: 'default', clientId: 'c $1' }, 'win32')).toBe(
      'mailclaim login --client-id "c `$1"',
    )
  })
})

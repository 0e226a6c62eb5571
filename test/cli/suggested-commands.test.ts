import { describe, expect, it } from 'vitest'
import { everyCommand } from '../../src/cli/line.ts'
import { run } from '../../src/cli.ts'
import { commandWith, withGivenOptions } from '../../src/settings/suggested-commands.ts'
import { createFakeDns, smallWorld } from '../dns/fake-dns.ts'
import {
  createFakeClock,
  createFakeContext,
  createFakeKeychain,
  type FakeContextOptions,
  jsonResponse,
} from '../fake-context.ts'

const DOMAIN_ID = 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'
const GIVEN = ['--profile', 'ci', '--resolver', '127.0.0.1:1', '--authoritative-port', '5353']

/** A service whose claim and import are always in this state. */
function service(status = 'pending', more: object = {}): NonNullable<FakeContextOptions['respond']> {
  return ({ method, url }) => {
    if (url.pathname.startsWith('/contacts/imports'))
      return jsonResponse(200, { object: 'contact_import', id: 'i-1', status: 'in_progress' })
    return jsonResponse(method === 'POST' ? 201 : 200, {
      object: 'domain_claim',
      id: 'claim-1',
      name: 'example.com',
      status,
      domain_id: DOMAIN_ID,
      record: { type: 'TXT', name: 'example.com', value: 'prefix=token' },
      ...more,
    })
  }
}

const signedIn = {
  environment: { settings: { base_url: 'http://127.0.0.1:1', client_id: 'client-1' }, apiKey: 'key-1' },
}

/** Runs the command lines one after the other in one home, and gives what the last one said. */
async function say(lines: readonly string[], options: FakeContextOptions = {}) {
  let ran = { code: 0, stderr: '', stdout: '' }
  let home: string | undefined
  for (const line of lines) {
    const clock = createFakeClock()
    const dns = createFakeDns(
      smallWorld(() => []),
      clock,
    )
    const context = createFakeContext({ ...signedIn, clock, dns, ...options, ...(home && { home }) })
    home ??= context.directories.config.replace(/.config$/, '')
    const code = await run(line.split(' '), context)
    ran = { code, stderr: context.stderr.text, stdout: context.stdout.text }
  }
  return ran
}

/** The commands in the messages, each up to where prose goes on. */
const commandsIn = (text: string) =>
  [...text.matchAll(/\bmailclaim (?:auth|claim|config|doctor|grants|imports|log)[^;,()\n]*/g)].map(
    ([found]) => found,
  )

describe('the commands that messages suggest', () => {
  it.each([
    ['claims create', 'claims create example.com', service()],
    ['claims create, verified', 'claims create example.com', service('verified')],
    ['claims create, blocked', 'claims create example.com', service('blocked')],
    ['a block', `claims watch ${DOMAIN_ID}`, service('blocked')],
    ['the end of a claim', `claims watch ${DOMAIN_ID}`, service('canceled')],
    ['a newer claim', `claims watch ${DOMAIN_ID}`, service('superseded')],
    ['an ended claim before verifying', `claims verify ${DOMAIN_ID}`, service('failed')],
    ['the timeout of claims watch', `claims watch ${DOMAIN_ID} --timeout 1`, service()],
    ['the timeout of claims verify', `claims verify ${DOMAIN_ID} --no-check --wait --timeout 1`, service()],
    ['claims verify', `claims verify ${DOMAIN_ID} --no-check`, service()],
    ['the timeout of imports watch', 'imports watch i-1 --timeout 1', service()],
    ['a claim that nobody knows', 'claims get unknown.example', service()],
    ['no claims', 'claims list', service()],
    ['no domain', 'claims get', service()],
    ['a warning about a settled claim', `claims record ${DOMAIN_ID} --format value`, service('canceled')],
    ['a claim without a record', `claims record ${DOMAIN_ID}`, service('pending', { record: null })],
    ['a setting that is missing', 'config get resolver', service()],
    ['a timeout of claim', 'claim example.com --no-check --timeout 1', service()],
  ])('keep the options that were given: %s', async (_what, line, respond) => {
    const { stderr } = await say([`${line} ${GIVEN.join(' ')}`], { respond })
    const commands = commandsIn(stderr)
    expect(commands, stderr).not.toEqual([])
    for (const command of commands) {
      expect(command).toContain('--profile ci')
      if (/^mailclaim claim/.test(command)) {
        expect(command).toContain('--resolver 127.0.0.1:1')
        expect(command).toContain('--authoritative-port 5353')
      }
      expect(command.match(/--profile/g)).toHaveLength(1)
    }
  })

  it('keep them in a warning of claim, above its steps', async () => {
    const options = '--profile ci --timeout 1'
    const { stderr } = await say(
      [
        'claims create example.com --profile ci',
        `claim example.com --tracking-subdomain t --no-check ${options}`,
      ],
      { respond: service() },
    )
    expect(stderr).toContain('use these options with: mailclaim claims create --profile ci example.com\n')
  })

  it('keep them in errors as JSON', async () => {
    const { stderr } = await say(['claims get unknown.example --profile=ci --json'], { respond: service() })
    expect(JSON.parse(stderr).error.hint).toContain('mailclaim claims check --profile ci unknown.example')
  })

  it('are unchanged if no options were given', async () => {
    const { stderr } = await say(['claims create example.com'], { respond: service() })
    expect(stderr).toContain('then run: mailclaim claims check example.com\n')
  })

  it.each(
    [...everyCommand()].filter(({ words }) => !/^(sandbox|completion|commands)$/.test(words.join(' '))),
  )('are recognized: $words', ({ words }) => {
    const isForEveryProfile = /^auth (list|switch)$/.test(words.join(' '))
    expect(withGivenOptions(`run: mailclaim ${words.join(' ')} x`, ['--profile', 'ci'], 'linux')).toBe(
      `run: mailclaim ${words.join(' ')}${isForEveryProfile ? '' : ' --profile ci'} x`,
    )
  })

  it.each([
    ['has it already', 'mailclaim login --profile work, or not', 'mailclaim login --profile work, or not'],
    ['has it after a quoted list', "mailclaim imports list --fields 'a; b' --profile ci", undefined],
    ['is prose', 'another mailclaim has the lock', undefined],
    ['is a synopsis', 'usage: mailclaim claims get <claim> [options]', undefined],
    [
      'changes a setting',
      'mailclaim config set resolver 9.9.9.9',
      'mailclaim config set --profile ci resolver 9.9.9.9',
    ],
  ])('get no option that they cannot use: a text that %s', (_what, text, expected = text) => {
    const given = ['--profile', 'ci', '--', '--base-url', 'http://127.0.0.1:1']
    expect(withGivenOptions(text, given, 'linux')).toBe(expected)
  })

  it('get every resolver, quoted where needed', () => {
    const given = ['--resolver', '192.0.2.1', '--resolver=192.0.2.2 192.0.2.3']
    expect(withGivenOptions('mailclaim doctor', given, 'linux')).toBe(
      "mailclaim doctor --resolver 192.0.2.1 --resolver '192.0.2.2 192.0.2.3'",
    )
  })

  it.each([
    ['login --no-browser', 'mailclaim login --issuer https://id.example --scope emails:send'],
    ['login --store file', 'mailclaim login --issuer https://id.example --scope emails:send --store file'],
    [
      'login --with-api-key < key.txt',
      'mailclaim login --issuer https://id.example --with-api-key < key.txt',
    ],
    ['auth status', 'mailclaim auth status'],
  ])('sign in with the options of the sign-in that failed: %s', (command, expected) => {
    const given = ['login', '--scope=emails:send', '--issuer', 'https://id.example']
    const rest = command.endsWith('--no-browser') ? ' --no-browser' : ''
    expect(withGivenOptions(`run mailclaim ${command}`, given, 'linux')).toBe(`run ${expected}${rest}`)
  })

  it('keep the options of a sign-in where there is no keychain', async () => {
    const keychain = createFakeKeychain()
    keychain.trouble = 'no_bus'
    const line = 'login --base-url http://127.0.0.1:1 --client-id c1 --scope a --profile ci'
    const { stderr } = await say([line], { keychain, environment: {} })
    expect(stderr).toContain(
      'mailclaim login --base-url http://127.0.0.1:1 --client-id c1 --scope a --profile ci --store file\n',
    )
    const withKey = await say(['login --with-api-key --profile ci --base-url http://127.0.0.1:1'], {
      keychain,
      environment: {},
    })
    expect(withKey.stderr).toContain(
      'mailclaim login --with-api-key --profile ci --base-url http://127.0.0.1:1 --store file\n',
    )
  })

  it('never repeat a value that the setting refuses, such as an address with a password', () => {
    const given = ['--base-url', 'https://user:secret@api.example', '--profile', '../x', '--resolver']
    expect(withGivenOptions('run mailclaim doctor', given, 'linux')).toBe('run mailclaim doctor')
  })
})

describe('how to continue', () => {
  it.each(['claims', 'imports'])('%s watch repeats the whole command at the timeout', async (group) => {
    const line = `${group} watch ${group === 'claims' ? DOMAIN_ID : 'i-1'} --timeout 1 --interval 1${group === 'claims' ? ' --through-blocked' : ''}`
    const { code, stderr } = await say([line], { respond: service() })
    expect(code).toBe(8)
    expect(stderr).toContain(`to keep watching: mailclaim ${line}`)
  })

  it('claims verify --wait goes on with a watch that waits through a block, too', async () => {
    const line = `claims verify ${DOMAIN_ID} --no-check --wait --timeout 1 --through-blocked`
    const { stderr } = await say([line], { respond: service() })
    expect(stderr).toContain('to keep watching: mailclaim claims watch example.com --through-blocked\n')
  })

  it.each([`claims watch ${DOMAIN_ID}`, 'imports watch i-1'])(
    'Ctrl-C says how to continue: %s',
    async (line) => {
      const context = createFakeContext({
        ...signedIn,
        respond: (request) => {
          setTimeout(() => context.interrupt())
          return service()(request)
        },
      })
      expect(await run(line.split(' '), context)).toBe(130)
      expect(context.stderr.text).toContain(
        'hint: nothing is lost; to continue, run the same command again\n',
      )
    },
  )

  it.each(['record', 'get', 'verify', 'watch'])('claims %s says how to start a claim', async (command) => {
    const { code, stderr } = await say([`claims ${command} new.example`])
    expect(code).toBe(5)
    expect(stderr).toContain('to start one: mailclaim claim new.example;')
    expect((await say([`claims ${command}`])).stderr).toContain('to start one: mailclaim claim <domain>')
  })

  it('claims check never suggests to claim a domain: it may be that of a customer', async () => {
    const { stderr } = await say(['claims check'])
    expect(stderr).toContain('none is known on this machine')
    expect(stderr).not.toMatch(/mailclaim claim |create/)
  })
})

describe('a claim that another profile made', () => {
  it('claims check names the profile that knows the value', async () => {
    const lines = ['claims create example.com --profile ci', 'claims check example.com']
    const { stderr } = await say(lines, { respond: service() })
    expect(stderr).toContain(
      'hint: profile ci has a claim of example.com: mailclaim claims check example.com --profile ci\n',
    )
    const other = await say(['claims create other.example --profile ci', 'claims check third.example'], {
      respond: service(),
    })
    expect(other.stderr).not.toContain('profile ci')
  })
})

describe('a claim that only another profile made', () => {
  it.each([
    ['get', ''],
    ['record', ''],
    ['verify', ''],
    ['watch', ''],
    ['publish', ' --with ./publish.sh'],
  ])('claims %s names that profile, and does not offer to start one for this team', async (command, more) => {
    const lines = ['claims create example.com --profile ci', `claims ${command} example.com${more}`]
    const { code, stderr } = await say(lines, { ...signedIn, respond: service() })
    expect(code).toBe(5)
    expect(stderr).toContain('error: profile default has no claim of example.com\n')
    expect(stderr).toContain(
      `hint: profile ci has a claim of example.com: mailclaim claims ${command} example.com${more} --profile ci\n`,
    )
    expect(stderr).not.toContain('to start one')
  })

  it('one domain of several has a hint for itself alone, with the options that were given', async () => {
    const lines = [
      'claims create example.com --profile ci',
      'claims watch --interval 7 example.com other.example --json',
    ]
    const { stdout, stderr } = await say(lines, { ...signedIn, respond: service() })
    expect(stdout + stderr).toContain(
      'profile ci has a claim of example.com: mailclaim claims watch --interval 7 --json example.com --profile ci',
    )
  })
})

describe('a claim that is known at another service only', () => {
  const create = 'claims create example.com --base-url https://staging.example'

  it.each(['get', 'record', 'verify --wait', 'watch'])('claims %s names that service', async (command) => {
    const { code, stderr } = await say([create, `claims ${command} example.com`], {
      ...signedIn,
      respond: service(),
    })
    expect(code).toBe(5)
    expect(stderr).toContain(
      'error: no claim of example.com at http://127.0.0.1:1 is known on this machine; another service, https://staging.example, has one\n',
    )
    expect(stderr).toContain(
      `hint: for the claim at https://staging.example: mailclaim claims ${command} example.com --base-url https://staging.example\n`,
    )
    expect(stderr).not.toContain('to start one')
  })

  it('claims check names that service', async () => {
    const { stderr } = await say([create, 'claims check example.com --base-url http://127.0.0.1:1'], {
      respond: service(),
    })
    expect(stderr).toContain(
      'hint: for the claim at https://staging.example: mailclaim claims check example.com --base-url https://staging.example\n',
    )
  })
})

describe('a sign-in on a machine without a keychain', () => {
  it.each(['', ' --json'])('the hint repeats the login%s with all its options', async (json) => {
    const keychain = createFakeKeychain()
    keychain.trouble = 'no_bus'
    const line = `login --profile work --no-browser --timeout 900${json}`
    const { code, stderr } = await say([line], { keychain })
    expect(code).toBe(4)
    expect(stderr).toContain(`mailclaim ${line} --store file`)
    expect(stderr.match(/--profile work/g)).toHaveLength(1)
  })
})

describe('a mistyped profile', () => {
  const configured = ['config set base-url https://api.example.com --profile prod']
  const without = { environment: { settings: {} } }

  it('claims list warns that it does not exist, instead of only showing nothing', async () => {
    for (const line of ['claims list --profile prdo', 'claims list --profile prdo --json']) {
      const { code, stderr } = await say([...configured, line], without)
      expect(code).toBe(0)
      expect(stderr).toContain('warning: there is no profile prdo; did you mean prod?\n')
    }
    const { stderr } = await say([...configured, 'claims list --profile other'], without)
    expect(stderr).toContain('warning: there is no profile other\n')
  })

  it.each(['claims list --profile prod', 'claims list'])('%s warns of nothing', async (line) => {
    expect((await say([...configured, line], without)).stderr).not.toContain('there is no profile')
  })

  it('with an API key, any profile will do', async () => {
    const { stderr } = await say([...configured, 'claims list --profile prdo'], signedIn)
    expect(stderr).not.toContain('there is no profile')
  })

  it('auth switch asks whether another one was meant', async () => {
    const { code, stderr } = await say([...configured, 'auth switch prdo'])
    expect(code).toBe(5)
    expect(stderr).toContain('error: there is no profile prdo; did you mean prod?\n')
  })
})

describe('claim, run again', () => {
  it('on a completed claim, no step is left open', async () => {
    const terminal = { columns: 100 }
    const environment = { ...signedIn.environment, noColor: true, term: 'xterm' }
    const { code, stderr } = await say(['claims create example.com', 'claim example.com'], {
      respond: service('completed'),
      terminal,
      environment,
    })
    expect(code).toBe(0)
    expect(stderr).toContain('✔ Completed')
    expect(stderr.slice(stderr.lastIndexOf('✔ Claim'))).not.toContain('○')
  })

  it('once a claim is blocked, the reason it waited for is gone', async () => {
    let asked = 0
    const { code, stderr } = await say(['claim example.com --no-check'], {
      terminal: { columns: 100 },
      environment: { ...signedIn.environment, noColor: true, term: 'xterm' },
      respond: (request) => {
        const isBlocked = request.method === 'GET' && asked++ > 0
        return service(isBlocked ? 'blocked' : 'pending')(request)
      },
    })
    expect(code).toBe(9)
    expect(stderr).toContain('waiting for the service to check the TXT record')
    expect(stderr.slice(stderr.lastIndexOf('✔ Claim'))).not.toContain('waiting for the service')
  })

  it('on a blocked claim, nothing asks for the record, and verification is not called done', async () => {
    const { code, stderr } = await say(['claims create example.com', 'claim example.com'], {
      respond: service('blocked', { blocked_reason: 'grace_period' }),
    })
    expect(code).toBe(9)
    expect(stderr).not.toContain('Add this TXT record')
    expect(stderr).not.toContain('Verification:')
    expect(stderr).toMatch(/^error: example\.com is blocked/m)
  })
})

describe('the command that was typed, with another value of an option', () => {
  it('keeps every word and quotes special characters', () => {
    expect(
      commandWith(
        ['imports', 'list', '--profile', "o'brien", '--after', 'x', '--json'],
        { '--after': 'a b$c' },
        'linux',
      ),
    ).toBe(`mailclaim imports list --profile 'o'\\''brien' --json --after 'a b$c'`)
    expect(commandWith(['grants', 'list', '--before=x', '--limit=5'], { '--before': 'y' }, 'linux')).toBe(
      'mailclaim grants list --limit=5 --before y',
    )
  })

  it('has the option in front of --, after which all words are arguments', () => {
    expect(commandWith(['claims', 'get', '--', 'example.com'], { '--profile': 'ci' }, 'linux')).toBe(
      'mailclaim claims get --profile ci -- example.com',
    )
  })

  it('is quoted for PowerShell and cmd.exe on Windows', () => {
    expect(commandWith(['imports', 'list', '--profile', "o'brien"], { '--after': 'a b$c' }, 'win32')).toBe(
      'mailclaim imports list --profile "o\'brien" --after "a b`$c"',
    )
  })
})

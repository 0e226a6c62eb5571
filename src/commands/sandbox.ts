import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { MAX_PORT, parseInteger } from '../settings/parse-value.ts'
import { plainColumns } from '../terminal/columns.ts'
import { hasOwnLayout } from '../terminal/output.ts'
import { defineCommand } from './definition.ts'

const COLUMNS = plainColumns('base_url', 'dns', 'client_id', 'api_key')

export const command = defineCommand({
  description: 'Runs a local service with the interface of the real one, HTTP and DNS, to try things out.',
  options: [
    { flags: '--port <n>', description: 'HTTP port', default: 'a free one', parse: parsePort },
    {
      flags: '--dns-port <n>',
      description: 'DNS port, UDP and TCP',
      default: 'a free one',
      parse: parsePort,
    },
    { flags: '--auto-approve', description: 'approve every sign-in without the consent page' },
    { flags: '--auto-publish', description: 'publish the record of each new claim at once' },
    { flags: '--imports <n>', description: 'number of contact imports', default: '25', parse: parseInteger },
    { flags: '--grants <n>', description: 'number of OAuth grants', default: '3', parse: parseInteger },
    {
      flags: '--access-token-seconds <n>',
      description: 'lifetime of access tokens',
      default: '900',
      parse: (text, name) => parseInteger(text, name, 1),
    },
    { flags: '--exit-with-stdin', description: 'end when standard input closes' },
  ],
  examples: {
    'mailclaim sandbox': 'start it, and paste what it prints into another terminal',
    'mailclaim sandbox --auto-approve --json': 'for scripts: one line of JSON as soon as it is ready',
    'mailclaim sandbox --imports 100000': 'with a list long enough for many pages',
  },
  output: { columns: COLUMNS, schema: 'sandbox' },
  errors: ['sandbox'],

  async run({ options }, io) {
    const { startSandbox } = await import('../sandbox/sandbox.ts')
    const log = (line: string) => void io.warn(line).catch(() => {})
    const sandbox = await startSandbox({ ...options, log }).catch((error: unknown) => {
      throw toPortError(error)
    })
    const { baseUrl, dns, clientId, apiKey } = sandbox
    const ready = { base_url: baseUrl, dns, client_id: clientId, api_key: apiKey }
    try {
      if (hasOwnLayout(io.settings)) await io.stdout.write(readyText(sandbox, io.platform))
      else await io.write(ready, COLUMNS)
      await waitForEnd(io, options.exitWithStdin === true)
    } finally {
      await sandbox.close()
    }
  },
})

function readyText({ baseUrl, dns, clientId, apiKey }: Sandbox, platform: NodeJS.Platform): string {
  const variables = {
    MAILCLAIM_BASE_URL: baseUrl,
    MAILCLAIM_CLIENT_ID: clientId,
    MAILCLAIM_RESOLVER: dns,
    MAILCLAIM_AUTHORITATIVE_PORT: dns.split(':')[1] ?? '',
  }
  const lines = (before: string, between: string, after = '') =>
    Object.entries(variables)
      .map(([name, value]) => `  ${before}${name}${between}${value}${after}`)
      .join('\n')
  const paste =
    platform === 'win32'
      ? `${lines('$env:', ' = "', '"')}\n\nor, if that is cmd and not PowerShell:\n\n${lines('set "', '=', '"')}`
      : lines('export ', '=')
  return `The sandbox is ready.

Paste this into another terminal:

${paste}

Then sign in and claim a domain:

  mailclaim login
  mailclaim claims create example.com

Add the TXT record at

  ${baseUrl}/_sandbox/dns

API key, for scripts:

  ${apiKey}

Press Ctrl-C to end it.
`
}

/**
 * Waits for an interrupt, then rejects with its error (exit 130 for Ctrl-C, 143 for SIGTERM or SIGHUP), which
 * is printed only in JSON.
 *
 * @param withStdin whether the end of standard input ends the wait successfully
 */
async function waitForEnd({ interrupts, stdin }: Context, withStdin: boolean): Promise<void> {
  await new Promise<void>((done, fail) => {
    const interrupted = () => fail((interrupts.signal.reason as CliError).with({ silent: true }))
    if (interrupts.signal.aborted) interrupted()
    interrupts.signal.addEventListener('abort', interrupted, { once: true })
    if (!withStdin) return
    for (const event of ['end', 'close']) stdin.stream.once(event, () => done())
    stdin.stream.resume()
  })
}

function toPortError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code !== 'EADDRINUSE' && code !== 'EACCES') return error
  const why = code === 'EACCES' ? 'requires permissions that this user does not have' : 'is in use'
  return new CliError('port_unavailable', `a port for the sandbox ${why}`, {
    hint: 'choose other ports with --port and --dns-port, or omit them for free ones',
    cause: error,
  })
}

/** Parses a port number; 0 lets the system choose a free port. @throws CliError exit 2 */
function parsePort(text: string, name: string): number {
  return parseInteger(text, name, 0, MAX_PORT)
}

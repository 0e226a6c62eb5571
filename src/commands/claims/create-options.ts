import { usageError } from '../../errors.ts'
import { type ClaimRequest, REGIONS } from '../../service/types.ts'
import type { OptionDefinition, OptionValues } from '../../settings/option.ts'
import { commandLine } from '../../shell-quote.ts'
import type { Io } from '../../terminal/io.ts'

/** The options of `claims create`; `claim` takes them too. */
export const CREATE_OPTIONS = [
  {
    flags: '--region <region>',
    description: 'region that serves the domain',
    choices: REGIONS,
    default: 'us-east-1',
  },
  {
    flags: '--custom-return-path <label>',
    description: 'label of the Return-Path address',
    default: 'send',
    parse: parseLabel,
  },
  { flags: '--open-tracking', description: 'track opens; requires a verified tracking subdomain' },
  { flags: '--no-open-tracking', description: "don't track opens" },
  { flags: '--click-tracking', description: 'track clicks; requires a verified tracking subdomain' },
  { flags: '--no-click-tracking', description: "don't track clicks" },
  {
    flags: '--tracking-subdomain <label>',
    description: 'label of the tracking subdomain',
    parse: parseLabel,
  },
] as const satisfies readonly OptionDefinition[]

/**
 * The request that starts a claim: only what was given, so that the service's defaults apply.
 *
 * @param name the domain in its ASCII form
 * @param region what its line in a list says instead of the option, if anything
 */
export function claimRequest(
  name: string,
  flags: OptionValues<typeof CREATE_OPTIONS>,
  region: string | undefined = flags.region,
): ClaimRequest {
  return {
    name,
    ...(region === undefined ? {} : { region }),
    ...(flags.customReturnPath === undefined ? {} : { custom_return_path: flags.customReturnPath }),
    ...(flags.openTracking === undefined ? {} : { open_tracking: flags.openTracking }),
    ...(flags.clickTracking === undefined ? {} : { click_tracking: flags.clickTracking }),
    ...(flags.trackingSubdomain === undefined ? {} : { tracking_subdomain: flags.trackingSubdomain }),
  }
}

function parseLabel(text: string, name: string): string {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(text)) return text
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a DNS label`,
    'use up to 63 letters, digits and hyphens, with no hyphen at the start or the end',
  )
}

/** Asks a person for the missing domain. @throws CliError exit 2 if nobody can be asked. */
export async function askForDomain(io: Io): Promise<string> {
  const { settings, platform, prompts } = io
  if (!settings.interactive)
    throw usageError('the domain is missing', commandLine([...settings.argv, 'example.com'], platform))
  const { checkName } = await import('../../dns/wire/name.ts')
  return prompts.input({
    message: 'Domain to claim:',
    validate: (text) => {
      const name = checkName(text)
      return name.ok || `${name.problem}. ${name.fix}`
    },
  })
}

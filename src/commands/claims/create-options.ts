import { usageError } from '../../errors.ts'
import { CLAIM_REGIONS, type CreateClaimRequest } from '../../service/types.ts'
import type { OptionDefinition, OptionValues } from '../../settings/option.ts'
import { mailclaimCommand } from '../../shell-quote.ts'
import type { Io } from '../../terminal/io.ts'

/** Options of a new claim, for `claims create` and `claim`. */
export const NEW_CLAIM_OPTIONS = [
  {
    flags: '--region <region>',
    description: 'region that serves the domain; a new claim keeps that of the open one',
    choices: CLAIM_REGIONS,
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
 * Returns the body of the request that creates a claim. Fields of omitted options are left out, so that the service applies its
 * defaults.
 *
 * @param name the domain in A-label form (RFC 5890)
 * @param region the region in the domain's line of a list; default: `--region`
 */
export function createClaimRequest(
  name: string,
  flags: OptionValues<typeof NEW_CLAIM_OPTIONS>,
  region: string | undefined = flags.region,
): CreateClaimRequest {
  return {
    name,
    ...(region === undefined ? {} : { region }),
    ...(flags.customReturnPath === undefined ? {} : { custom_return_path: flags.customReturnPath }),
    ...(flags.openTracking === undefined ? {} : { open_tracking: flags.openTracking }),
    ...(flags.clickTracking === undefined ? {} : { click_tracking: flags.clickTracking }),
    ...(flags.trackingSubdomain === undefined ? {} : { tracking_subdomain: flags.trackingSubdomain }),
  }
}

/** Returns the text if it is a DNS label (RFC 1123 section 2.1). @throws CliError `usage`, exit 2 */
function parseLabel(text: string, name: string): string {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(text)) return text
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a DNS label`,
    'use up to 63 letters, digits and hyphens, with no hyphen at the start or the end',
  )
}

/** Prompts for the missing domain. @throws CliError `usage`, exit 2, if prompts aren't allowed */
export async function askForDomain(io: Io): Promise<string> {
  const { settings, platform, prompts } = io
  if (!settings.interactive)
    throw usageError('the domain is missing', mailclaimCommand([...settings.argv, 'example.com'], platform))
  const { parseDomainName } = await import('../../dns/wire/name.ts')
  return prompts.input({
    message: 'Domain to claim:',
    validate: (text) => {
      const name = parseDomainName(text)
      return name.ok || `${name.problem}. ${name.fix}`
    },
  })
}

import { domainToASCII } from 'node:url'
import { validationError } from './problems.ts'

/** The body of a claim creation with its defaults (interface, section 4.5). */
export interface ClaimRequest {
  readonly name: string
  readonly region: string
  readonly customReturnPath: string
  readonly openTracking: boolean | null
  readonly clickTracking: boolean | null
  readonly trackingSubdomain: string | null
}

const REGIONS = ['us-east-1', 'eu-west-1', 'sa-east-1', 'ap-northeast-1']
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Reads the body of a claim creation. Fields that the interface does not know are ignored.
 * @throws Problem 422 for a field that is missing or malformed.
 */
export function readClaimRequest(body: unknown): ClaimRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw validationError('The body must be a JSON object.')
  }
  const fields: Record<string, unknown> = { ...body }
  const name = fields['name']
  if (typeof name !== 'string' || name === '') throw validationError('The `name` field is missing.')
  const region = fields['region'] ?? 'us-east-1'
  if (typeof region !== 'string' || !REGIONS.includes(region)) {
    throw validationError(`The \`region\` field must be one of ${REGIONS.join(', ')}.`)
  }
  return {
    name: domainName(name),
    region,
    customReturnPath: label(fields, 'custom_return_path') ?? 'send',
    openTracking: flag(fields, 'open_tracking'),
    clickTracking: flag(fields, 'click_tracking'),
    trackingSubdomain: label(fields, 'tracking_subdomain'),
  }
}

function domainName(text: string): string {
  const ascii = /^[^\s/:@?#%\\]+$/.test(text) ? domainToASCII(text).replace(/\.$/, '') : ''
  const labels = ascii.split('.')
  const valid =
    labels.length >= 2 &&
    ascii.length <= 253 &&
    labels.every((part) => LABEL.test(part)) &&
    !/^[0-9]+$/.test(labels.at(-1) ?? '')
  if (!valid) throw validationError('The `name` field is not a valid domain name.')
  return ascii
}

function flag(fields: Record<string, unknown>, name: string): boolean | null {
  const value = fields[name] ?? null
  if (value === null || typeof value === 'boolean') return value
  throw validationError(`The \`${name}\` field must be true or false.`)
}

function label(fields: Record<string, unknown>, name: string): string | null {
  const value = fields[name] ?? null
  if (value === null) return null
  if (typeof value === 'string' && LABEL.test(value.toLowerCase())) return value.toLowerCase()
  throw validationError(`The \`${name}\` field must be one label of a domain name.`)
}

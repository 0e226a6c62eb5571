import type { DnsAddress } from '../../context.ts'
import {
  groupByOutcome,
  isDnsData,
  type ResolverObservation,
  type ZoneObservations,
} from '../observation/observations.ts'
import type { DnssecObservation, InvalidSignatures } from '../observation/observe-dnssec.ts'
import { formatDnsAddress } from '../wire/address.ts'
import { isWithin } from '../wire/name.ts'
import type { Finding } from './finding.ts'

/** Whether validating resolvers accept the zone, going by its keys, its signatures, the parent zone, and resolvers. */
export function dnssecFindings(observations: ZoneObservations): Finding[] {
  const { dnssec, resolvers } = observations
  const failing = resolvers.filter(failsValidation)
  if (dnssec?.wrongClock === true && failing.length === 0) return [wrongClock(observations, dnssec)]
  const cause = dnssec === undefined ? undefined : causeOf(dnssec, observations)
  if (cause !== undefined) return [bogus(observations, cause, failing)]
  const partial = partialCause(observations)
  if (partial !== undefined) return [bogus(observations, partial, failing, 'some')]
  if (groupByOutcome(observations.servers).withRecord.length === 0) return []
  if (failing.length > 0)
    return failing.map((resolver) => bogus(observations, saidBy(observations, resolver), [resolver]))
  return unvalidated(observations)
}

/** Whether the resolver returns the answer only with checking disabled. */
export function failsValidation(resolver: ResolverObservation): boolean {
  return (
    resolver.outcome === 'servfail' &&
    resolver.withCheckingDisabled !== undefined &&
    isDnsData(resolver.withCheckingDisabled.outcome)
  )
}

interface Cause {
  readonly reason: string
  readonly message: string
  readonly fix: string
  /** More evidence. */
  readonly details?: Finding['details']
}

const day = (seconds: number | undefined) =>
  seconds === undefined ? '' : new Date(seconds * 1000).toISOString().slice(0, 10)

/** What is wrong with the keys or signatures; undefined if nothing is. */
function causeOf(
  { state, date, keyTags, unsignedTxt }: DnssecObservation,
  { name, zone }: ZoneObservations,
): Cause | undefined {
  if (unsignedTxt)
    return {
      reason: 'signature_missing',
      message: `The TXT records at ${name} have no signature (RRSIG), while the SOA record of ${zone} has one`,
      fix: `Have the DNS provider sign the zone ${zone} again; its DS record is right`,
    }
  const ds = `${keyTags.length === 1 ? 'The DS record' : 'The DS records'} of ${zone} at the registry (key tag ${keyTags.join(', ')})`
  switch (state) {
    case 'no-key':
      return {
        reason: 'ds_without_key',
        message: `${ds} ${keyTags.length === 1 ? 'says' : 'say'} that the zone is signed, but it isn't: its servers have no DNSKEY record. This happens when a DS record is left behind in a move to another provider`,
        fix: `Remove the DS record of ${zone} at the registrar, or turn DNSSEC on at the DNS provider and enter its DS record there`,
      }
    case 'wrong-ds':
      return {
        reason: 'wrong_ds',
        message: `${ds} ${keyTags.length === 1 ? 'matches' : 'match'} no key of the zone`,
        fix: `Replace the DS record of ${zone} at the registrar with the one that the DNS provider shows, or remove it`,
      }
    case 'no-signature':
      return {
        reason: 'signature_missing',
        message: `The zone ${zone} has a DS record and keys, but its records aren't signed`,
        fix: `Have the DNS provider sign the zone ${zone} again, or remove the DS record at the registrar`,
      }
    case 'expired':
      return {
        reason: 'signature_expired',
        message: `The DNSSEC signatures of ${zone} expired on ${day(date)}`,
        fix: `Check this machine's clock. If it's right, have the DNS provider sign the zone ${zone} again, and find out why it wasn't signed automatically`,
      }
    case 'not-yet-valid':
      return {
        reason: 'signature_not_yet_valid',
        message: `The DNSSEC signatures of ${zone} aren't valid until ${day(date)}`,
        fix: `Check the clocks of this machine and of the server that signs ${zone}, and have the zone signed again`,
      }
    default:
      return undefined
  }
}

function wrongClock({ zone }: ZoneObservations, { state, date, keyTags }: DnssecObservation): Finding {
  return {
    code: 'dnssec_bogus',
    severity: 'warning',
    message: `This machine's clock is probably wrong: by it, the DNSSEC signatures of ${zone} ${state === 'expired' ? 'expired on' : "aren't valid until"} ${day(date)}, and those of the zone above aren't valid either`,
    fix: "Set this machine's clock, and check again",
    details: { reason: 'local_clock', zone, key_tags: [...keyTags], resolvers: [] },
  }
}

const SIGNATURE_REASONS = {
  'no-signature': 'signature_missing',
  expired: 'signature_expired',
  'not-yet-valid': 'signature_not_yet_valid',
  'other-keys': 'other_keys',
  'unshared-keys': 'unshared_keys',
} as const

/** Only some servers have invalid signatures, such as a copy of the zone that is no longer updated. */
function partialCause(observations: ZoneObservations): Cause | undefined {
  const { dnssec, zone } = observations
  const [first] = dnssec?.invalid ?? []
  if (first === undefined) return undefined
  const invalid = dnssec?.invalid?.filter(({ state }) => state === first.state) ?? []
  if (first.state === 'unshared-keys') return unsharedKeys(observations, invalid)
  const names = invalid.map(({ server }) => nameOf(server, observations))
  const what = {
    'no-signature': 'are missing',
    expired: `expired on ${day(first.date)}`,
    'not-yet-valid': `aren't valid until ${day(first.date)}`,
    'other-keys': 'are made with keys that neither the DS record nor the other name servers have',
  }[first.state]
  return {
    reason: SIGNATURE_REASONS[first.state],
    message: `The DNSSEC signatures of ${zone} at ${names.join(', ')} ${what}; those at the other name servers are valid`,
    fix: `${first.state === 'other-keys' ? `Have all DNS providers of ${zone} publish each other's keys (DNSKEY), and add the DS record of each at the registrar;` : `Have ${names.length === 1 ? 'this server' : 'these servers'} copy the zone ${zone} again,`} or remove ${names.length === 1 ? 'it' : 'them'} from the zone's NS records`,
  }
}

/** Each of several providers has its DS record, but not all of them publish the keys of the others. */
function unsharedKeys(observations: ZoneObservations, invalid: readonly InvalidSignatures[]): Cause {
  const { zone } = observations
  const keys = invalid.flatMap(({ server, missing }) =>
    missing === undefined ? [] : [{ server, ...missing }],
  )
  const list = keys.map(
    ({ server, keyTag, at }) =>
      `key ${keyTag} of ${nameOf(server, observations)} isn't at ${nameOf(at, observations)}`,
  )
  return {
    reason: SIGNATURE_REASONS['unshared-keys'],
    message: `The name servers of ${zone} sign with keys that not all of them publish (DNSKEY), although DS records cover the keys of each: ${[...new Set(list)].join('; ')}. Resolvers that have cached the keys of one reject what another signs`,
    fix: `Have each DNS provider of ${zone} publish the keys of the others as well (RFC 8901 section 2.1), or use the name servers of only one provider`,
    details: {
      unshared_keys: keys.map(({ server, keyTag, at }) => ({
        key_tag: keyTag,
        signed_by: formatDnsAddress(server),
        missing_at: formatDnsAddress(at),
      })),
    },
  }
}

function nameOf(server: DnsAddress, { servers }: ZoneObservations): string {
  const host = servers.find((other) => other.server?.address === server.address)?.host
  return host === undefined ? formatDnsAddress(server) : `${host} (${formatDnsAddress(server)})`
}

/** RFC 8914 section 4. */
const EXTENDED_ERRORS: Readonly<Record<number, string>> = {
  7: 'a signature has expired',
  8: 'a signature is not valid yet',
  9: 'no key matches the DS record',
  10: 'signatures are missing',
  11: 'no key is allowed to sign the zone',
  12: 'the proof that a record does not exist is missing',
}

/** The resolver rejects what looks right from here. */
function saidBy(observations: ZoneObservations, resolver: ResolverObservation): Cause {
  // The resolver doesn't say which of the two zones it rejects.
  const target = observations.alias?.targets.at(-1)
  const other = target !== undefined && !isWithin(target, observations.zone)
  const zones = `${observations.zone}${other ? `, or of the zone of ${target}` : ''}`
  const why = EXTENDED_ERRORS[resolver.extendedError?.code ?? -1]
  const because = why === undefined ? '' : `: ${why}`
  if (observations.dnssec?.state === 'ok' && !other)
    return {
      reason: 'rejected',
      message: `At least one DNSSEC signature of ${zones} is invalid${because}`,
      fix: `Have the DNS provider sign the zone ${zones} again; the DS record at the registry matches its key`,
    }
  return {
    reason: 'rejected',
    message: `The DNSSEC signatures of ${zones}${other ? ',' : ''} are invalid${because}`,
    fix: `Fix the DNSSEC of ${zones}: have the zone signed again, or correct or remove the DS record at the registrar`,
  }
}

/** @param where whether it concerns all servers of the zone or only some. */
function bogus(
  observations: ZoneObservations,
  cause: Cause,
  failing: readonly ResolverObservation[],
  where: 'all' | 'some' = 'all',
): Finding {
  const resolvers = failing.map((resolver) => formatDnsAddress(resolver.resolver)).join(', ')
  const rejected =
    failing.length === 0
      ? ''
      : `. ${resolvers} ${failing.length === 1 ? 'answers' : 'answer'} SERVFAIL, and ${failing.length === 1 ? 'returns' : 'return'} the record only with checking disabled`
  // A resolver has just validated the answer, so it isn't broken for everyone.
  const isValidated = observations.resolvers.some((resolver) => resolver.authenticated)
  return {
    code: 'dnssec_bogus',
    severity: isValidated || (where === 'some' && failing.length === 0) ? 'warning' : 'error',
    message: `${consequence(observations, failing, where)}${cause.message}${rejected}`,
    fix: `${cause.fix}. Until then, validating resolvers ${where === 'all' && !isValidated ? "can't see this zone" : 'may fail to see this zone'}`,
    details: {
      reason: cause.reason,
      zone: observations.zone,
      key_tags: [...(observations.dnssec?.keyTags ?? [])],
      ...cause.details,
      ...(where === 'some'
        ? {
            servers: [
              ...new Set(observations.dnssec?.invalid?.map(({ server }) => formatDnsAddress(server))),
            ],
          }
        : {}),
      resolvers: failing.map((resolver) => ({
        resolver: formatDnsAddress(resolver.resolver),
        with_checking: 'SERVFAIL',
        with_checking_disabled: resolver.withCheckingDisabled?.outcome ?? null,
        extended_error: resolver.extendedError ?? null,
      })),
    },
  }
}

/** What it means for the record, no more certain than what the resolvers showed. */
function consequence(
  { servers, resolvers }: ZoneObservations,
  failing: readonly ResolverObservation[],
  where: 'all' | 'some',
): string {
  if (groupByOutcome(servers).withRecord.length === 0) return ''
  if (where === 'some') return 'The record is there, but a validating resolver may reject it. '
  const answering = resolvers.filter((resolver) => resolver.outcome === 'match')
  if (failing.length > 0 || answering.length === 0)
    return 'The record is there, but validating resolvers reject it. '
  const addresses = answering.map((resolver) => formatDnsAddress(resolver.resolver)).join(', ')
  return `The record is there, and ${addresses} ${answering.length === 1 ? 'returns' : 'return'} it, but validating resolvers may reject it. `
}

/** Nobody verified the signatures: the check compares dates and digests, and leaves the rest to resolvers. */
function unvalidated({ dnssec, resolvers, alias, zone }: ZoneObservations): Finding[] {
  const answering = resolvers.filter((resolver) => resolver.outcome === 'match')
  const isSigned = dnssec?.state === 'ok' && alias === undefined
  if (!isSigned || answering.length === 0 || answering.some((resolver) => resolver.authenticated)) return []
  const addresses = answering.map((resolver) => formatDnsAddress(resolver.resolver))
  return [
    {
      code: 'not_validated',
      severity: 'info',
      message: `The zone ${zone} is signed with DNSSEC, but ${addresses.join(', ')} ${addresses.length === 1 ? "doesn't" : "don't"} say that the answer was validated, so the signatures haven't been verified`,
      fix: 'No action needed. To have them verified, use a validating resolver: --resolver 9.9.9.9',
      details: { zone, resolvers: addresses },
    },
  ]
}

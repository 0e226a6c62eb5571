import type { DnsAddress } from '../../context.ts'
import { formatDnsAddress } from '../wire/address.ts'
import type { ResolverReply } from './zone-search.ts'

/**
 * What resolvers said in a search that found no zone, for a message: "192.0.2.53 answers SERVFAIL; 192.0.2.54 didn't answer".
 *
 * @param resolvers all that were to be asked
 */
export function describeReplies(replies: readonly ResolverReply[], resolvers: readonly DnsAddress[]): string {
  const said = replies.map(({ resolver, level, reply }) => ({
    address: formatDnsAddress(resolver),
    level,
    rcode: reply.kind === 'answer' ? reply.message.rcode : undefined,
  }))
  const denial = said.find(({ rcode }) => rcode === 'NXDOMAIN')
  if (denial !== undefined)
    return `${denial.address} denies names that exist (${denial.level} NS gives NXDOMAIN), like a private root or a filter`
  return resolvers
    .map(formatDnsAddress)
    .map((address) => {
      const rcode = said.findLast((one) => one.address === address)?.rcode
      if (rcode === undefined) return `${address} didn't answer`
      return rcode === 'NOERROR' ? `${address} gave no usable answer` : `${address} answers ${rcode}`
    })
    .join('; ')
}

import packet from 'dns-packet'
import type { Run } from './program.ts'

/** The names in the queries with recursion desired, which are those to resolvers. */
export function namesAskedOfResolvers({ exchanges }: Run): string[] {
  return exchanges.flatMap(({ message }) => {
    try {
      const { flag_rd, questions } = packet.decode(Buffer.from(message, 'base64'))
      return flag_rd ? (questions ?? []).map(({ name }) => name.toLowerCase()) : []
    } catch {
      return []
    }
  })
}

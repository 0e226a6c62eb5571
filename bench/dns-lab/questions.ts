import packet from 'dns-packet'
import type { Run } from './program.ts'

/** A question as the program sent it, and the first answer to it. */
export interface Question {
  readonly name: string
  readonly type: string
  readonly server: string
  readonly transport: 'udp' | 'tcp'
  /** With recursion desired: asked at a resolver. */
  readonly recursive: boolean
  /** In ms of the program's process. */
  readonly at: number
  readonly answered: number | undefined
  readonly answer: packet.DecodedPacket | undefined
}

/** The questions of a run in the order in which they were sent. */
export function questionsOf(run: Run): Question[] {
  return run.exchanges.flatMap((exchange) => {
    const sent = decode(exchange.message)
    const [asked] = sent?.questions ?? []
    if (asked === undefined) return []
    const [first] = exchange.answers
    return [
      {
        name: asked.name.toLowerCase(),
        type: asked.type,
        server: exchange.address,
        transport: exchange.transport,
        recursive: sent?.flag_rd === true,
        at: exchange.at,
        answered: first?.at,
        answer: first === undefined ? undefined : decode(first.message),
      },
    ]
  })
}

function decode(message: string): packet.DecodedPacket | undefined {
  try {
    return packet.decode(Buffer.from(message, 'base64'))
  } catch {
    return undefined
  }
}

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type DecodedPacket, decode, encode, type Packet } from 'dns-packet'

const TIMEOUT_MS = 1000

/**
 * The verifier's DNS lookup: asks the server at 127.0.0.1:`port` for the TXT records of a name, by UDP and, if that is
 * truncated, by TCP. Returns the records with their strings joined; empty if the name has none or no answer came.
 */
export async function lookUpTxt(port: number, id: number, name: string): Promise<string[]> {
  const query: Packet = {
    type: 'query',
    id,
    questions: [{ type: 'TXT', name }],
    additionals: [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize: 1232,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  }
  let answer = await askByUdp(port, encode(query), id)
  if (answer?.flag_tc === true) answer = await askByTcp(port, encode(query), id)
  return (answer?.answers ?? []).flatMap((record) => {
    if (record.type !== 'TXT') return []
    const strings = Array.isArray(record.data) ? record.data : [record.data]
    return [Buffer.concat(strings.map((piece) => Buffer.from(piece))).toString('utf8')]
  })
}

function readAnswer(message: Buffer, id: number): DecodedPacket | undefined {
  try {
    const packet = decode(message)
    return packet.id === id && packet.flag_qr ? packet : undefined
  } catch {
    return undefined
  }
}

function askByUdp(port: number, query: Buffer, id: number): Promise<DecodedPacket | undefined> {
  return new Promise((done) => {
    const socket = createSocket('udp4')
    const finish = (answer: DecodedPacket | undefined) => {
      clearTimeout(timer)
      socket.removeAllListeners('message')
      socket.close()
      done(answer)
    }
    const timer = setTimeout(() => finish(undefined), TIMEOUT_MS)
    socket.once('error', () => finish(undefined))
    socket.on('message', (message) => {
      const answer = readAnswer(message, id)
      if (answer !== undefined) finish(answer)
    })
    socket.send(query, port, '127.0.0.1')
  })
}

function askByTcp(port: number, query: Buffer, id: number): Promise<DecodedPacket | undefined> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1')
    let received: Buffer = Buffer.alloc(0)
    const finish = (answer: DecodedPacket | undefined) => {
      socket.destroy()
      done(answer)
    }
    socket.setTimeout(TIMEOUT_MS, () => finish(undefined))
    socket.once('error', () => finish(undefined))
    socket.once('close', () => done(undefined))
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      finish(readAnswer(received.subarray(2), id))
    })
    const length = Buffer.alloc(2)
    length.writeUInt16BE(query.length)
    socket.write(Buffer.concat([length, query]))
  })
}

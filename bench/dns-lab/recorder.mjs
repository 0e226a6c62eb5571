// Loaded into the program under test (NODE_OPTIONS=--import): records each DNS query and answer with its time.
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'

const file = process.env['DNS_LAB_RECORD']
const exchanges = []

function record(transport, address, message) {
  const entry = {
    transport,
    address,
    message: Buffer.from(message).toString('base64'),
    at: performance.now(),
  }
  exchanges.push({ ...entry, answers: [] })
  return exchanges.at(-1)
}

subscribe('udp.socket', ({ socket }) => {
  let entry
  let address = ''
  const { send, connect } = socket
  socket.connect = (port, host, ...rest) => {
    address = host
    return connect.call(socket, port, host, ...rest)
  }
  socket.send = (message, ...rest) => {
    entry = record('udp', rest.find((word) => typeof word === 'string') ?? address, message)
    return send.call(socket, message, ...rest)
  }
  socket.on('message', (answer) => {
    entry?.answers.push({ at: performance.now(), message: answer.toString('base64') })
  })
})

subscribe('net.client.socket', ({ socket }) => {
  let entry
  const { write } = socket
  socket.write = (data, ...rest) => {
    if (entry === undefined && socket.remotePort === 53 && Buffer.isBuffer(data)) {
      entry = record('tcp', socket.remoteAddress, data.subarray(2))
      socket.on('data', (piece) => {
        const message = piece.subarray(2, 1500).toString('base64')
        if (entry.answers.length === 0) entry.answers.push({ at: performance.now(), message })
      })
    }
    return write.call(socket, data, ...rest)
  }
})

process.on('exit', () => {
  const { maxRSS } = process.resourceUsage()
  writeFileSync(file, JSON.stringify({ exchanges, maxRssKiB: maxRSS, ms: performance.now() }))
})

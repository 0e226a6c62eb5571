import { readFileSync } from 'node:fs'
import { createServer, request as send } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'

/** Stands before a member with the member's own certificate, and loses what passes. */
export interface Gateway {
  readonly url: string
  /** What was asked, in order. */
  readonly paths: string[]
  /**
   * What becomes of a request: `lost` doesn't reach the member; `unanswered` is done, and the connection ends before the
   * answer.
   */
  decide: (path: string) => 'pass' | 'lost' | 'unanswered'
  close(): Promise<void>
}

export async function startGateway(cluster: Cluster, url: string): Promise<Gateway> {
  const tls = (name: string) => readFileSync(join(cluster.directory, 'tls', name))
  const server = createServer(
    { cert: tls('server.pem'), key: tls('server.key'), ca: tls('ca.pem'), requestCert: true },
    (request, response) => {
      const path = request.url ?? ''
      gateway.paths.push(path)
      const fate = gateway.decide(path)
      if (fate === 'lost') return void request.socket.destroy()
      const { method = 'POST', headers } = request
      const onward = send(
        new URL(path, url),
        { method, headers, ca: tls('ca.pem'), cert: tls('client.pem'), key: tls('client.key') },
        (answer) => {
          const pieces: Buffer[] = []
          answer.on('data', (piece: Buffer) => pieces.push(piece))
          answer.on('end', () => {
            if (fate === 'unanswered') return void request.socket.destroy()
            response.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' })
            response.end(Buffer.concat(pieces))
          })
        },
      )
      onward.on('error', () => request.socket.destroy())
      request.pipe(onward)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const gateway: Gateway = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths: [],
    decide: () => 'pass',
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return gateway
}

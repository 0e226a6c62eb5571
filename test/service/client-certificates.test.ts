import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { TransportError } from '../../src/context.ts'
import { createTransport } from '../../src/service/transport.ts'
import { needs } from '../requirements.ts'

describe.runIf(needs('openssl'))('a server that asks for a client certificate', () => {
  let directory: string
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'mailclaim-client-certificates-'))
    for (const name of ['server', 'stranger']) {
      execFileSync(
        'openssl',
        ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
          .concat(['-subj', '/O=mailclaim', '-addext', 'subjectAltName=IP:127.0.0.1'])
          .concat(['-keyout', `${name}.key`, '-out', `${name}.pem`]),
        { cwd: directory, stdio: 'pipe' },
      )
    }
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /** Starts one that trusts only its own certificate; returns its URL. */
  async function listen(version: string): Promise<URL> {
    const server = spawn(
      'openssl',
      ['s_server', '-accept', '127.0.0.1:0', version, '-cert', 'server.pem', '-key', 'server.key'].concat([
        '-CAfile',
        'server.pem',
        '-Verify',
        '1',
        '-verify_return_error',
      ]),
      { cwd: directory, stdio: ['pipe', 'pipe', 'ignore'] },
    )
    onTestFinished(() => void server.kill())
    let said = ''
    for await (const piece of server.stdout) {
      said += piece
      const port = /^ACCEPT 127\.0\.0\.1:(\d+)$/m.exec(said)?.[1]
      if (port !== undefined) return new URL(`https://127.0.0.1:${port}/`)
    }
    throw new Error(`openssl doesn't listen: ${said}`)
  }

  it.each([['-tls1_2', 'stranger', 'unknown ca']])(
    'and gets another one is named with its alert, not as a closed connection: %s, %s',
    async (version, name, alert) => {
      const url = await listen(version)
      const transport = createTransport({})
      onTestFinished(() => transport.close())
      const own = name === 'none' ? {} : { cert: read(`${name}.pem`), key: read(`${name}.key`) }
      const tls = { ca: read('server.pem'), ...own }
      const request = { method: 'POST', url, headers: {}, body: 'x', timeoutMs: 5000, tls } as const
      const failure = (await transport.send(request).catch((error: unknown) => error)) as TransportError
      expect(failure).toMatchObject({
        kind: 'certificate',
        message: `the service asks for a client certificate that it accepts (TLS alert: ${alert})`,
      })
    },
  )

  it('is named if its own certificate is not trusted', async () => {
    const url = await listen('-tls1_3')
    const transport = createTransport({})
    onTestFinished(() => transport.close())
    const request = {
      method: 'GET',
      url,
      headers: {},
      timeoutMs: 5000,
      tls: { ca: read('stranger.pem') },
    } as const
    await expect(transport.send(request)).rejects.toMatchObject({
      kind: 'certificate',
      sent: 'no',
      message: expect.stringContaining('is not signed by a certificate authority that this machine trusts'),
    })
  })
})

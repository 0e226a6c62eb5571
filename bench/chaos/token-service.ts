import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/** State of the service; restoring a copy resets the service to the moment of the copy. */
interface Memory {
  readonly codes: Map<string, { challenge: string; redirectUri: string; scope: string }>
  readonly refreshTokens: Map<string, { grant: string; used: boolean }>
  readonly accessTokens: Map<string, { grant: string; scope: string; usable: boolean }>
  readonly grants: Map<string, { scope: string; revoked: boolean }>
}

export interface RequestCounts {
  /** Number of bytes received in POST requests, such as token requests, complete or not. */
  bytes: number
  /** Number of token requests that were processed: each issued a new refresh token. */
  processed: number
  /** Number of requests with a refresh token that was already rotated; each revoked the token's grant. */
  reuse: number
  /** Number of requests that sent a refresh token elsewhere than to the token endpoint. */
  leaks: number
}

/** Answer to one token request in place of the service's usual one. */
export interface ScriptedAnswer {
  /** Whether the service processes the request, and so rotates the refresh token, before it answers. */
  readonly process: boolean
  /** Writes the answer and ends the connection. @param tokens token response as JSON; empty if the service issued no tokens */
  write(socket: Socket, tokens: string): Promise<void> | void
}

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** Lifetime of a sign-in's access token in seconds: so short that the next command has to refresh. */
const SIGN_IN_SECONDS = 0.001
const REFRESHED_SECONDS = 900

/**
 * A service with what a session needs: authorization, a token endpoint that rotates refresh tokens, and one list. Shares no code
 * with the client or the sandbox, because a mistake in shared code would go unnoticed.
 */
export class TokenService {
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #connections = new Set<Socket>()
  #memory: Memory = {
    codes: new Map(),
    refreshTokens: new Map(),
    accessTokens: new Map(),
    grants: new Map(),
  }
  #counts: RequestCounts = noCounts()
  #scripted: ScriptedAnswer | undefined
  #received = 0
  #servedGrant: string | undefined
  #before: Memory = this.#memory

  private constructor() {
    this.#server.on('connection', (socket) => this.#watch(socket))
    // Give no answer to a client that disconnects in the middle of a request, as a killed process does; Node would answer 400.
    this.#server.on('clientError', (_, socket) => socket.destroy())
  }

  static async start(): Promise<TokenService> {
    const service = new TokenService()
    service.#server.listen(0, '127.0.0.1')
    await once(service.#server, 'listening')
    return service
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get counts(): Readonly<RequestCounts> {
    return this.#counts
  }

  stop(): void {
    for (const socket of this.#connections) socket.destroy()
    this.#server.close()
  }

  remember(): Memory {
    return structuredClone(this.#memory)
  }

  /** Restores a remembered state, with all counts at 0 and no scripted answer. */
  rewind(memory: Memory): void {
    for (const socket of this.#connections) socket.destroy()
    this.#before = memory
    this.#memory = structuredClone(memory)
    this.#counts = noCounts()
    this.#scripted = undefined
    this.#received = 0
    this.#servedGrant = undefined
  }

  /** Scripts the answer to the next token request; later requests are answered as usual. */
  answerWith(answer: ScriptedAnswer): void {
    this.#scripted = answer
  }

  /** Returns the scope of an issued access token. */
  scopeOf(accessToken: string): string | undefined {
    return this.#memory.accessTokens.get(accessToken)?.scope
  }

  /** Whether the last successful request for the list used an access token of a grant from after the last rewind. */
  get servedNewGrant(): boolean {
    return this.#servedGrant !== undefined && !this.#before.grants.has(this.#servedGrant)
  }

  /** Returns the refresh tokens that the service still accepts. */
  liveRefreshTokens(): string[] {
    return [...this.#memory.refreshTokens]
      .filter(([, { used, grant }]) => !used && this.#memory.grants.get(grant)?.revoked === false)
      .map(([token]) => token)
  }

  /**
   * Waits, for at most two seconds, until no connection is open and the bytes of ended processes have arrived.
   *
   * @param bytes number of bytes that the processes are known to have sent since the last rewind
   */
  async settled(bytes = 0): Promise<void> {
    const end = performance.now() + 2_000
    await sleep(2)
    while ((this.#connections.size > 0 || this.#received < bytes) && performance.now() < end) await sleep(2)
  }

  #watch(socket: Socket): void {
    this.#connections.add(socket)
    socket.on('close', () => this.#connections.delete(socket))
    socket.on('error', () => socket.destroy())
    let isPost: boolean | undefined
    socket.on('data', (chunk: Buffer) => {
      isPost ??= chunk[0] === 'P'.charCodeAt(0)
      this.#received += chunk.length
      if (isPost) this.#counts.bytes += chunk.length
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await text(request).catch(() => undefined)
    if (form === undefined) return
    const url = new URL(request.url ?? '', this.base)
    const isForTokens = request.method === 'POST' && url.pathname === '/oauth/token'
    const respond = () => {
      if (isForTokens) return this.#exchange(new URLSearchParams(form))
      if (/refresh_token|rt_/.test(form)) this.#counts.leaks++
      if (url.pathname === '/oauth/authorize') return this.#authorize(url.searchParams)
      if (url.pathname === '/oauth/grants') return this.#list(request.headers.authorization)
      return { status: 404, body: '{"statusCode":404,"name":"not_found","message":"There is nothing here"}' }
    }
    const scripted = this.#scripted
    if (isForTokens && scripted !== undefined) {
      this.#scripted = undefined
      const answer = scripted.process ? respond() : undefined
      await scripted.write(request.socket, answer?.status === 200 ? answer.body : '')
      return
    }
    const { status, headers, body }: Answer = respond()
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers, connection: 'close' })
      .end(body)
  }

  #authorize(query: URLSearchParams): Answer {
    const code = `code_${randomUUID()}`
    const redirectUri = query.get('redirect_uri') ?? ''
    this.#memory.codes.set(code, {
      challenge: query.get('code_challenge') ?? '',
      redirectUri,
      scope: query.get('scope') ?? '',
    })
    const location = new URL(redirectUri)
    location.searchParams.set('code', code)
    location.searchParams.set('state', query.get('state') ?? '')
    return { status: 302, headers: { location: location.href }, body: '' }
  }

  #list(authorization: string | undefined): Answer {
    const token = this.#memory.accessTokens.get(authorization?.replace(/^Bearer /, '') ?? '')
    const grant = token && this.#memory.grants.get(token.grant)
    if (!token?.usable || grant === undefined || grant.revoked)
      return { status: 401, body: '{"statusCode":401,"name":"unauthorized","message":"Not this token"}' }
    this.#servedGrant = token.grant
    return { status: 200, body: '{"object":"list","has_more":false,"data":[]}' }
  }

  #exchange(form: URLSearchParams): Answer {
    if (form.get('grant_type') === 'authorization_code') return this.#exchangeCode(form)
    const { refreshTokens, grants } = this.#memory
    const found = refreshTokens.get(form.get('refresh_token') ?? '')
    const grant = found && grants.get(found.grant)
    if (found === undefined || grant === undefined) return refused('invalid_grant', 'unknown refresh token')
    if (found.used) {
      this.#counts.reuse++
      grant.revoked = true
      return refused('invalid_grant', 'refresh token reused; grant revoked')
    }
    if (grant.revoked) return refused('invalid_grant', 'grant revoked')
    const scope = form.get('scope') ?? grant.scope
    if (scope.split(' ').some((one) => !grant.scope.split(' ').includes(one)))
      return refused('invalid_scope', 'more than the grant has')
    found.used = true
    return this.#issue(found.grant, scope, REFRESHED_SECONDS)
  }

  #exchangeCode(form: URLSearchParams): Answer {
    const code = this.#memory.codes.get(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (code?.challenge !== challenge || code.redirectUri !== form.get('redirect_uri'))
      return refused('invalid_grant', 'not this code')
    this.#memory.codes.delete(form.get('code') ?? '')
    const grant = randomUUID()
    this.#memory.grants.set(grant, { scope: code.scope, revoked: false })
    return this.#issue(grant, code.scope, SIGN_IN_SECONDS)
  }

  #issue(grant: string, scope: string, expires_in: number): Answer {
    this.#counts.processed++
    const access_token = `at_${randomUUID()}`
    const refresh_token = `rt_${randomUUID()}`
    const usable = expires_in !== SIGN_IN_SECONDS
    this.#memory.accessTokens.set(access_token, { grant, scope, usable })
    this.#memory.refreshTokens.set(refresh_token, { grant, used: false })
    return {
      status: 200,
      body: JSON.stringify({ access_token, token_type: 'Bearer', expires_in, refresh_token, scope }),
    }
  }
}

const noCounts = (): RequestCounts => ({ bytes: 0, processed: 0, reuse: 0, leaks: 0 })

function refused(error: string, description: string): Answer {
  return { status: 400, body: JSON.stringify({ error, error_description: description }) }
}

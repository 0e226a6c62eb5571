/** What the sandbox gets from its caller. Not a `Context`: it shares nothing with the client. */
export interface SandboxRuntime {
  readonly clock: SandboxClock
  readonly random: { bytes(length: number): Uint8Array }
  /** Prints a diagnostic line for the person who runs the sandbox. */
  readonly log: (line: string) => void
}

export interface SandboxClock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs `run` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, run: () => void): () => void
}

/** A random (version 4) UUID, RFC 9562, section 5.4. */
export function randomUuid(random: SandboxRuntime['random']): string {
  const bytes = Buffer.from(random.bytes(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** A random string that is safe in URLs and headers; `length` counts bytes of randomness, not characters. */
export function randomToken(random: SandboxRuntime['random'], length: number): string {
  return Buffer.from(random.bytes(length)).toString('base64url')
}

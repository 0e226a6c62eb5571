import { consume } from '../service/follow.ts'
import type { ClaimRequest } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { CLAIM_COLUMNS, MANY_CLAIM_COLUMNS } from './columns.ts'
import type { ManyOptions } from './definition.ts'
import { claimsNamed } from './ledger.ts'
import { judge } from './lifecycle.ts'
import { parseDomain, startClaim } from './load.ts'
import { completedBefore, runForAll } from './many.ts'
import { beginClaim, withoutEffect } from './workflow.ts'
import { noteEvent, writeClaim } from './write.ts'

/** The request for a domain in its ASCII form. @param region what its line in a list says, if anything */
type RequestFor = (name: string, region?: string) => ClaimRequest

/** Starts the claim of one domain, and shows it with the record to add. */
export async function createOne(domain: string, requestFor: RequestFor, io: Io): Promise<void> {
  const request = requestFor(parseDomain(domain))
  const { name } = request
  const [newest] = await claimsNamed(name, io)
  const events = beginClaim(request, newest?.claim, connect(io), io)
  const claim = await consume(events, (event) => noteEvent(event, io))
  await writeClaim(claim, io)
  if (io.settings.quiet) return
  if (judge(claim, io.clock.now()).needsRecord)
    await io.hint(`add the TXT record, then run: mailclaim claim ${name}`)
  else await io.hint(`to follow it: mailclaim claims watch ${name}`)
}

/** Starts the claims of several domains. An open claim isn't started again: the new one would end it. */
export async function createSeveral(
  domains: readonly string[],
  flags: ManyOptions,
  requestFor: RequestFor,
  io: Io,
): Promise<void> {
  // The record is what people need next.
  const columns = [
    ...CLAIM_COLUMNS.slice(0, 2),
    ...['record.name', 'record.value'].map((field): Column => ({ field, kind: 'id', only: 'people' })),
    ...MANY_CLAIM_COLUMNS.slice(2),
  ]
  await runForAll(
    domains,
    flags,
    {
      columns,
      takesIds: false,
      async perform({ domain, region }, { io, client, warn }) {
        const now = io.clock.now()
        const [newest] = await claimsNamed(domain, io)
        const done = completedBefore(newest, now)
        if (done !== undefined) return done
        const before = newest && judge(newest.claim, now)
        if (newest !== undefined && before?.isOpen) {
          const why = withoutEffect(requestFor(domain, region), newest.claim)
          if (why !== undefined) await warn(`${domain}: ${why}`)
          return { label: 'open before', item: { ...newest.claim, seen_at: newest.seen_at } }
        }
        // Another claim would end the newer one, which may be somebody else's: that takes the command for this domain.
        if (newest !== undefined && before?.phase === 'superseded')
          return { label: 'superseded', item: newest.claim, error: before.error }
        const { claim, created } = await startClaim(requestFor(domain, region), client(), io)
        return { label: created ? 'created' : 'open before', item: claim }
      },
    },
    io,
  )
}

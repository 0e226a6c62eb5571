import { claimWithRecord } from '../../claims/known-claim.ts'
import { asArgument, endOf, nameOf, stateOf } from '../../claims/lifecycle.ts'
import { recordOf } from '../../claims/record.ts'
import { resolveClaim } from '../../claims/resolve.ts'
import { Exit, usageError } from '../../errors.ts'
import type { Column } from '../../terminal/columns.ts'
import { hint, note, withWaitingNote } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { CLAIM_ARGUMENT, defineCommand, ownOutput, SERVICE_EXITS } from '../definition.ts'
import { PUBLISH_OPTIONS, type PublishFlags, publisher } from '../publish-options.ts'

interface Flags extends PublishFlags {
  readonly with?: string
}

const COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Full name', kind: 'id' },
  { field: 'zone', kind: 'id' },
  { field: 'value', kind: 'id' },
  { field: 'ran', title: 'Program run' },
]

export const command = defineCommand<Flags>({
  description: `Adds the TXT record of a claim to DNS with a program of yours, which gets the record in MAILCLAIM_RECORD_… variables
and none of the program's secrets. No shell reads the command. What the program prints goes to standard error. It isn't run
if the record is in DNS already, nor if the TXT values to keep, such as SPF, can't be seen (exit 8). docs/publish.md has
programs for nsupdate, aws, gcloud, az, flarectl, doctl and hcloud.`,
  arguments: [CLAIM_ARGUMENT],
  options: [
    {
      flags: '--with <command>',
      description: 'the program, with arguments in quotation marks where they have spaces',
      completion: 'files',
    },
    ...PUBLISH_OPTIONS,
  ],
  output: ownOutput(COLUMNS, { schema: 'published-record' }),
  account: 'sometimes',
  examples: {
    'mailclaim claims publish example.com --with ./publish.sh': 'with a script in this directory',
    "mailclaim claims publish example.com --with './publish.sh --view external'": 'with an argument',
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  async run({ arguments: [argument], options }, context, settings) {
    if (options.with === undefined)
      throw usageError(
        '--with is missing',
        'name a program that adds the record, such as --with ./publish.sh',
      )
    const publish = publisher(
      'publish',
      { option: '--with', command: options.with },
      options,
      context,
      settings,
    )
    const claim = await claimWithRecord(await resolveClaim(argument, context, settings), context, settings)
    const end = endOf(claim, context.clock.now())
    if (end !== undefined) throw end
    if (stateOf(claim).phase === 'completed') {
      await note(`the claim is completed: ${nameOf(claim)} no longer needs its record`, context, settings)
      const { name = null, value = null } = claim.record ?? {}
      return writeObject(context, settings, { name, zone: null, value, ran: false }, COLUMNS)
    }
    const record = recordOf(claim)
    const { ran, zone, message } = await withWaitingNote(
      `looking up the TXT values of ${record.name}, then running the program`,
      context,
      settings,
      publish(record),
    )
    await note(message, context, settings)
    await writeObject(context, settings, { name: record.name, zone, value: record.value, ran }, COLUMNS)
    await hint(
      `to wait for the record and verify the claim: mailclaim claim${asArgument(claim)}`,
      context,
      settings,
    )
  },
})

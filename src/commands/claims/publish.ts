import { type ClaimReader, createClaimReader } from '../../claims/current-claim.ts'
import { claimToUse, outdatedWarning } from '../../claims/known-claim.ts'
import { asArgument, completedText, stateOf } from '../../claims/lifecycle.ts'
import { doubtOf } from '../../claims/many/done-claim.ts'
import type { ManyWork } from '../../claims/many/run-many.ts'
import { recordOf } from '../../claims/record.ts'
import type { Context } from '../../context.ts'
import { type CliError, Exit, usageError } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Column } from '../../terminal/columns.ts'
import { hint, note, warn, withWaitingNote } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { CLAIM_ARGUMENTS, defineCommand, SERVICE_EXITS } from '../definition.ts'
import {
  labeledOutput,
  PUBLISH_OPTIONS,
  type Publish,
  type PublishFlags,
  publisher,
  requireProgram,
} from '../publish-options.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './many.ts'

interface Flags extends PublishFlags, ManyFlags {
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
and none of mailclaim's secrets. No shell reads the command. What the program prints goes to standard error. It isn't run
if the record is in DNS already, nor if the TXT values to keep, such as SPF, can't be seen (exit 8), nor for a claim that
has ended (exit 9), which the service is asked about if this machine last saw it more than a minute ago. docs/publish.md has
programs for nsupdate, aws, gcloud, az, flarectl, doctl and hcloud.`,
  arguments: [CLAIM_ARGUMENTS],
  options: [
    {
      flags: '--with <command>',
      description: 'the program, with arguments in quotation marks where they have spaces',
      completion: 'files',
    },
    ...PUBLISH_OPTIONS,
    ...MANY_OPTIONS,
  ],
  output: {
    fields: [...COLUMNS.map(({ field }) => field), ...ERROR_FIELDS],
    columns: COLUMNS,
  },
  account: 'sometimes',
  changes: true,
  examples: {
    'mailclaim claims publish example.com --with ./publish.sh': 'with a script in this directory',
    "mailclaim claims publish example.com --with './publish.sh --view external'": 'with an argument',
    'mailclaim claims publish --all --with ./publish.sh': 'for all open claims',
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    const { with: command } = options
    if (command === undefined)
      throw usageError(
        '--with is missing',
        'name a program that adds the record, such as --with ./publish.sh',
      )
    await requireProgram('--with', command, context)
    const publishWith = (context: Context) =>
      publisher('publish', { option: '--with', command }, options, context, settings)
    const publish = publishWith(context)
    if (isMany(domains, options)) {
      let latest: ClaimReader | undefined
      const work: ManyWork['perform'] = async ({ domain }, { context, settings, inTurn }) => {
        latest ??= createClaimReader(context, settings)
        const program = publishWith(labeledOutput(domain, context))
        const seen = await claimToUse(domain, latest, context, settings)
        const { item } = await publishOne(
          seen.claim,
          (record) => inTurn(() => program(record)),
          context,
          settings,
        )
        return { label: item.ran ? 'published' : 'nothing to do', item, ...doubtOf(seen) }
      }
      return runForAll(domains, options, { ...PUBLISH_MANY, perform: work }, context, settings)
    }
    const seen = await claimToUse(domains[0], createClaimReader(context, settings), context, settings)
    const { claim } = seen
    const outdated = outdatedWarning(seen, context)
    if (outdated !== undefined) await warn(outdated, context, settings)
    const { item, message } = await publishOne(claim, publish, context, settings)
    await note(message, context, settings)
    await writeObject(context, settings, item, COLUMNS)
    if (stateOf(claim).phase !== 'completed')
      await hint(
        `to wait for the record and verify the claim: mailclaim claim${asArgument(claim)}`,
        context,
        settings,
      )
  },
})

const PUBLISH_MANY = {
  command: 'claims publish',
  columns: [...COLUMNS, { field: 'error.code', only: 'programs' }],
  rowsForPeople: false,
  emptyItem: (name: string, { code }: CliError) => {
    const ran = ['publish_failed', 'publish_timeout'].includes(code)
    return { name, zone: null, value: null, ran }
  },
  resumes: true,
  waits: false,
  takesIds: true,
  notDone: "aren't published",
} as const

/** Publishes the record of a claim, unless the claim is completed. @throws CliError what `publish` throws */
async function publishOne(
  claim: DomainClaim,
  publish: Publish,
  context: Context,
  settings: Settings,
): Promise<{ readonly item: PublishedRecord; readonly message: string }> {
  if (stateOf(claim).phase === 'completed') {
    const { name = null, value = null } = claim.record ?? {}
    return { item: { name, zone: null, value, ran: false }, message: completedText(claim) }
  }
  const record = recordOf(claim)
  const { ran, zone, message } = await withWaitingNote(
    `looking up the TXT values of ${record.name}, then running the program`,
    context,
    settings,
    publish(record),
  )
  return { item: { name: record.name, zone, value: record.value, ran }, message }
}

interface PublishedRecord {
  readonly name: string | null
  readonly zone: string | null
  readonly value: string | null
  readonly ran: boolean
}

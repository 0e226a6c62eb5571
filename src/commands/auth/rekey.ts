import { keyName } from '../../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../../errors.ts'
import { maybeElsewhere, notSignedIn } from '../../session/messages.ts'
import { sealAgain } from '../../session/shared/replace.ts'
import { SharedVault } from '../../session/shared/vault.ts'
import { isShared } from '../../settings/shared-store.ts'
import type { Column } from '../../terminal/columns.ts'
import { note, warn } from '../../terminal/notices.ts'
import { writeOutcome } from '../../terminal/output.ts'
import { defineCommand, ownOutput } from '../definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'profile' }, { field: 'key_id', title: 'Key', kind: 'id' }]

export const command = defineCommand({
  description: `Encrypts the session in etcd again, with the first of the keys in MAILCLAIM_STORE_KEY or in the file of
--store-key-file. To rotate the key: add the new one behind the old one on every machine, put it first everywhere, run this
once, and remove the old one.`,
  examples: {
    'mailclaim auth rekey': 'encrypt with the first of the keys',
    'mailclaim auth rekey --json --fields key_id': 'which key encrypts now, for a script',
  },
  output: ownOutput(COLUMNS, {}),
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.unavailable],
  account: 'signed_in',
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const profile = settings.profile.value
    if (!isShared(settings)) {
      throw new CliError(
        'store_not_configured',
        Exit.notConfigured,
        `profile ${profile} doesn't keep its session in etcd, so there is nothing to encrypt again`,
        {
          hint: 'choose the profile that does with --profile, or set MAILCLAIM_STORE=etcd and MAILCLAIM_STORE_URL',
        },
      )
    }
    const vault = new SharedVault(context, settings)
    if (!(await sealAgain(vault))) throw notSignedIn(settings)
    const id = keyName(vault.keys[0])
    await note(`The session in etcd is encrypted with the key ${id}.`, context, settings)
    const { silent } = vault.client
    if (silent.length > 0) await warn(maybeElsewhere(silent), context, settings)
    await writeOutcome(context, settings, { profile, key_id: id }, COLUMNS)
  },
})

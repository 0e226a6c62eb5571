import { usageError } from '../errors.ts'
import type { Column } from '../terminal/columns.ts'
import { writeObject } from '../terminal/output.ts'
import { completionScript, isShell, SHELLS } from './completion-scripts.ts'
import { defineCommand, ownOutput, VALUE } from './definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'shell' }, { field: 'script' }]

export const command = defineCommand({
  description: `Prints the completion script of a shell. Tab then completes commands, options, statuses, regions, formats,
profiles and the domains known on this machine. The script asks mailclaim itself, so an update of mailclaim needs no new
script.`,
  arguments: [{ syntax: '<shell>', description: 'bash, zsh, fish or powershell', completion: SHELLS }],
  examples: {
    "echo 'source <(mailclaim completion bash)' >> ~/.bashrc": 'bash',
    "echo 'source <(mailclaim completion zsh)' >> ~/.zshrc": 'zsh',
    'mailclaim completion fish > ~/.config/fish/completions/mailclaim.fish': 'fish',
    'mailclaim completion powershell | Out-String | Invoke-Expression':
      'PowerShell; add the line to $PROFILE to keep it',
  },
  output: ownOutput(COLUMNS, { ...VALUE }),
  exits: [],
  toleratesDamagedConfig: 'silently',
  async run({ arguments: [shell = ''] }, io) {
    const [context, settings] = [io, io.settings]
    if (!isShell(shell)) {
      throw usageError(
        `there is no completion for ${JSON.stringify(shell)}`,
        `the shells are ${SHELLS.join(', ')}`,
      )
    }
    const script = completionScript(shell)
    if (settings.format === 'value') return context.stdout.write(script)
    await writeObject(context, settings, { shell, script }, COLUMNS)
  },
})

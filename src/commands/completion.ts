import { usageError } from '../errors.ts'
import type { Column } from '../terminal/columns.ts'
import { completionScript, isShell, SHELLS } from './completion-scripts.ts'
import { defineCommand, ownOutput, VALUE } from './definition.ts'

const COLUMNS: readonly Column[] = [{ field: 'shell' }, { field: 'script' }]

export const command = defineCommand({
  description: 'Prints the completion script of a shell, for commands, options, profiles and known domains.',
  arguments: [{ syntax: '<shell>', description: 'bash, zsh, fish or powershell', completion: SHELLS }],
  examples: {
    'mailclaim completion bash >> ~/.bashrc': 'or zsh, for ~/.zshrc',
    'mailclaim completion fish > ~/.config/fish/completions/mailclaim.fish': 'fish',
    'mailclaim completion powershell | Out-String | Invoke-Expression': 'in $PROFILE',
  },
  output: ownOutput(COLUMNS, VALUE),
  exits: [],
  toleratesDamagedConfig: true,
  async run({ arguments: [shell = ''] }, io) {
    if (!isShell(shell)) {
      throw usageError(
        `there is no completion for ${JSON.stringify(shell)}`,
        `the shells are ${SHELLS.join(', ')}`,
      )
    }
    const script = completionScript(shell)
    if (io.settings.format === 'value') return io.stdout.write(script)
    await io.write({ shell, script }, COLUMNS)
  },
})

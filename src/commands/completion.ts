import { usageError } from '../errors.ts'
import { completionScript, isShell, SHELLS } from './completion-scripts.ts'
import { defineCommand } from './definition.ts'

export const command = defineCommand({
  description: `Prints the completion script of a shell: commands, options, statuses, regions, formats, profiles and the
domains that this machine knows are completed with Tab. The script asks mailclaim itself, so it need not be renewed
when mailclaim is.`,
  arguments: [{ syntax: '<shell>', says: 'bash, zsh, fish or powershell', completion: SHELLS }],
  examples: [
    { command: `echo 'source <(mailclaim completion bash)' >> ~/.bashrc`, says: 'bash' },
    { command: `echo 'source <(mailclaim completion zsh)' >> ~/.zshrc`, says: 'zsh' },
    { command: 'mailclaim completion fish > ~/.config/fish/completions/mailclaim.fish', says: 'fish' },
    {
      command: 'mailclaim completion powershell | Out-String | Invoke-Expression',
      says: 'PowerShell; put the line into $PROFILE to keep it',
    },
  ],
  exits: [],
  async run({ arguments: [shell = ''] }, context) {
    if (!isShell(shell)) {
      throw usageError(
        `there is no completion for ${JSON.stringify(shell)}`,
        `the shells are ${SHELLS.join(', ')}`,
      )
    }
    await context.stdout.write(completionScript(shell))
  },
})

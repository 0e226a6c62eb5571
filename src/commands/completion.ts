import { parseChoice } from '../settings/parse-value.ts'
import { plainColumns } from '../terminal/columns.ts'
import { defineCommand, SINGLE_VALUE_OUTPUT } from './definition.ts'

const COLUMNS = plainColumns('shell', 'script')

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

export const command = defineCommand({
  description: 'Prints the completion script of a shell, for commands, options, profiles and known domains.',
  arguments: [{ syntax: '<shell>', description: 'bash, zsh, fish or powershell', completion: SHELLS }],
  examples: {
    'mailclaim completion bash >> ~/.bashrc': 'or zsh, for ~/.zshrc',
    'mailclaim completion fish > ~/.config/fish/completions/mailclaim.fish': 'fish',
    'mailclaim completion powershell | Out-String | Invoke-Expression': 'in $PROFILE',
  },
  output: { columns: COLUMNS, ...SINGLE_VALUE_OUTPUT },
  toleratesDamagedConfig: true,
  async run({ arguments: [shell = ''] }, io) {
    const script = SCRIPTS[parseChoice(shell, 'shell', SHELLS)]
    if (io.settings.format === 'value') return io.stdout.write(script)
    await io.write({ shell, script }, COLUMNS)
  },
})

/** Completion script for bash 3.2 (macOS) and later; the bash-completion package isn't required. */
const BASH = String.raw`# bash completion for mailclaim
_mailclaim() {
  local words word current prefix line files at
  words=()
  # Readline also splits words at "=" and ":": join them.
  for ((at = 1; at <= COMP_CWORD; at++)); do
    word="${'$'}{COMP_WORDS[at]}"
    if ((${'$'}{#words[@]} > 0)) && [[ "$word" == [=:]* || "${'$'}{COMP_WORDS[at - 1]}" == [=:] ]]; then
      words[${'$'}{#words[@]} - 1]+="$word"
    else
      words+=("$word")
    fi
  done
  # Readline replaces only the last part of the word at the cursor: remove the rest from the answers.
  current="${'$'}{COMP_WORDS[COMP_CWORD]}"
  if [[ "$current" == [=:] ]]; then current=""; fi
  word="${'$'}{words[${'$'}{#words[@]} - 1]}"
  prefix="${'$'}{word%"$current"}"
  COMPREPLY=()
  files=""
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      files=1
    else
      line="${'$'}{line%%$'\t'*}"
      COMPREPLY+=("${'$'}{line#"$prefix"}")
    fi
  done < <(mailclaim __complete -- "${'$'}{words[@]}" 2>/dev/null)
  if [[ -n "$files" ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do
      COMPREPLY+=("$line")
    done < <(compgen -f -- "$current")
  fi
}
complete -o nosort -F _mailclaim mailclaim 2>/dev/null || complete -F _mailclaim mailclaim
`

const ZSH = String.raw`#compdef mailclaim
# zsh completion for mailclaim
_mailclaim() {
  local line value files=0
  local -a described
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      files=1
    else
      value="${'$'}{line%%$'\t'*}"
      described+=("${'$'}{value//:/\\:}:${'$'}{line#*$'\t'}")
    fi
  done < <(mailclaim __complete -- "${'$'}{(@Q)words[2,CURRENT]}" 2>/dev/null)
  if ((files)); then
    _files
  else
    _describe -V 'mailclaim' described
  fi
}
if [[ "${'$'}{funcstack[1]}" == "_mailclaim" ]]; then
  _mailclaim "$@"
else
  # Sourced rather than found by name: start the completion system if nobody has.
  if ! ((${'$'}{+functions[compdef]})); then
    autoload -Uz compinit && compinit
  fi
  compdef _mailclaim mailclaim
fi
`

const FISH = String.raw`# fish completion for mailclaim
function __mailclaim_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (mailclaim __complete -- $before[2..-1] "$current" 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
complete -c mailclaim -e
complete -k -c mailclaim -f -a '(__mailclaim_complete)'
`

const POWERSHELL = `# PowerShell completion for mailclaim
Register-ArgumentCompleter -Native -CommandName mailclaim -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    # A dot before each word, because PowerShell drops empty arguments.
    $words = @($commandAst.CommandElements |
        Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition -or ($_.Extent.EndOffset -eq $cursorPosition -and $wordToComplete -eq '') } |
        ForEach-Object { '.' + $_.Extent.Text.Trim('"', "'") })
    $words += '.' + $wordToComplete
    mailclaim __complete --dotted @words 2>$null | ForEach-Object {
        if ($_ -eq ':files') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
        } else {
            $value, $description = $_ -split "${'`'}t", 2
            if (-not $description) { $description = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $description)
        }
    }
}
`

/**
 * Completion scripts by shell. Each offers the candidates that `mailclaim __complete` prints. No script may evaluate a candidate as
 * shell code, because candidates include domain names from the service.
 */
const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH, powershell: POWERSHELL }

import { expect } from 'vitest'
import { isCommandGroup, splitArgv } from '../src/cli/line.ts'
import { runCli } from '../src/cli.ts'
import { collectCommandErrorCodes } from '../src/commands/commands.ts'
import { loadCommandWithSettingOptions } from '../src/commands/options.ts'
import { ERRORS, type ErrorCode } from '../src/errors.ts'

/** Runs a command. Fails the test for an exit code, or an error code in JSON output, that the command's definition doesn't list. */
export const run: typeof runCli = async (argv, context) => {
  let text = ''
  const heard = <Output extends { write(piece: string): Promise<void> }>(output: Output): Output => ({
    ...output,
    write(piece) {
      text += piece
      return output.write(piece)
    },
  })
  const exit = await runCli(argv, {
    ...context,
    stdout: heard(context.stdout),
    stderr: heard(context.stderr),
  })
  const { path, node } = splitArgv(argv)
  if (node === undefined || isCommandGroup(node)) return exit
  const declared = collectCommandErrorCodes(await loadCommandWithSettingOptions(path, node))
  const exits = declared.map((code) => ERRORS[code][1])
  const codes = text.split('\n').flatMap((line) => /^\{.*"error":\{"code":"(\w+)"/.exec(line)?.[1] ?? [])
  // Ignore codes that aren't in `ERRORS`: the service chose them.
  const undeclared = codes.filter((code) => code in ERRORS && !declared.includes(code as ErrorCode))
  expect(undeclared, `errors that ${path.join(' ')} doesn't name`).toEqual([])
  if (exit !== 0 && !exits.includes(null)) expect(exits, `exit codes of ${path.join(' ')}`).toContain(exit)
  return exit
}

// Begins the scripts here and in bench/: a script that fails prints one line on stderr and exits with 1; only its own bug prints a stack.
import { existsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..')
/** Lines on npm's stderr that come before the reason of a failure. */
const NPM_CONTEXT = /^($|> |npm (warn|notice|error (code|errno|syscall|path|command)))/

/**
 * Parses the script's arguments, and makes an uncaught error end the process with one sentence and exit code 1.
 * A script imports packages dynamically after this call, so that a missing package is one sentence as well.
 *
 * @param config the options and positional arguments that `parseArgs` accepts; none by default
 */
export function beginScript(config = {}) {
  process.on('uncaughtException', (error) => {
    writeSync(2, `${sentenceOf(error)}\n`)
    process.exit(1)
  })
  return parseArgs(config)
}

/** Returns the text to print for an error: one line, or the stack of a mistake in a script. */
export function sentenceOf(error) {
  // fetch throws a TypeError whose cause is the network's error; parseArgs throws a TypeError with a code.
  const reason = error?.cause ?? error
  const isMistake = reason instanceof TypeError || reason instanceof ReferenceError
  if (!(reason instanceof Error) || (isMistake && !/^ERR_PARSE_ARGS/.test(reason.code)))
    return reason?.stack ?? reason
  const [first, ...rest] = reason.message.trim().split('\n')
  if (reason.code === 'ERR_MODULE_NOT_FOUND') return `${first.replace(/ imported from .*/, '')}: run npm ci`
  if (/^ERR_PARSE_ARGS/.test(reason.code)) return first.split('. ')[0]
  if (/^spawn/.test(reason.syscall)) return `can't start ${reason.path}: ${reason.code}`
  if (!first.startsWith('Command failed: ')) return first.replace(/:$/, '')
  // `rest` is the command's stderr: take the line of an uncaught error, or else the first line that isn't about npm itself.
  const told = rest.find((line) => /^\w*error\b/i.test(line)) ?? rest.find((line) => !NPM_CONTEXT.test(line))
  return `${first.replace('Command failed: ', '')} failed${told === undefined ? '' : `: ${told}`}`
}

/** Returns the path of the program in this tree. @throws if the tree isn't built */
export function builtProgram() {
  if (!existsSync(join(root, 'dist', 'main.js'))) throw new Error('dist/ is missing: run npm run build')
  return join(root, 'bin', 'mailclaim.js')
}

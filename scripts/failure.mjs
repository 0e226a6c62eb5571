// Failures of the scripts in this directory and in bench/: one sentence on stderr and exit 1. Only a mistake in a script has a stack.
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Ends this process on the first error that nothing catches. A script calls it before it does anything else. */
export function failInOneSentence() {
  process.on('uncaughtException', (error) => {
    writeSync(2, `${sentenceOf(error) ?? error?.stack ?? error}\n`)
    process.exit(1)
  })
}

/** Returns the first line of an error's message; undefined for a mistake in a script. */
export function sentenceOf(error) {
  if (error?.code === 'ERR_MODULE_NOT_FOUND')
    return `a package isn't installed: ${error.message.replace(/ imported from .*/, '')}; run npm ci`
  // fetch throws a TypeError whose cause is the network's error.
  const reason = error instanceof TypeError && error.cause !== undefined ? error.cause : error
  const isMistake = [TypeError, ReferenceError, RangeError].some((kind) => reason instanceof kind)
  return reason instanceof Error && !isMistake ? reason.message.split('\n')[0] : undefined
}

/** Returns the path of the program in this tree. @throws if the tree isn't built */
export function builtProgram() {
  if (!existsSync(join(root, 'dist', 'main.js'))) throw new Error('dist/ is missing: run npm run build')
  return join(root, 'bin', 'mailclaim.js')
}

/** Reads a JSON file. @throws an error that names the file if it isn't JSON */
export function readJson(path) {
  const text = readFileSync(path, 'utf8')
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${path} isn't JSON: ${error.message}`)
  }
}

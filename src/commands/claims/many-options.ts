import { DEFAULT_JOBS } from '../../claims/definition.ts'
import { parseCount } from '../../settings/parse-value.ts'
import type { OptionDefinition } from '../definition.ts'

const MAX_JOBS = 500

const FROM: OptionDefinition = {
  flags: '--from <file>',
  description: 'read the domains from a list, domain[,value] on each line; - is standard input',
  completion: 'files',
}
const ALL: OptionDefinition = {
  flags: '--all',
  description: 'every open claim known on this machine',
  conflicts: ['--from'],
}
const JOBS: OptionDefinition = {
  flags: '--jobs <n>',
  description: 'of several domains, work on this many at once',
  default: String(DEFAULT_JOBS),
  parse: (text, name) => parseCount(text, name, 1, MAX_JOBS),
}

/** The options of a command that takes several domains. */
export const MANY_OPTIONS: readonly OptionDefinition[] = [FROM, ALL, JOBS]

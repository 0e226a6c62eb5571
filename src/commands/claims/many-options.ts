import { DEFAULT_JOBS } from '../../claims/definition.ts'
import { parseCount } from '../../settings/parse-value.ts'
import type { OptionDefinition } from '../definition.ts'

const MAX_JOBS = 500

/** The options of a command that takes several domains. */
export const MANY_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--from <file>',
    description: 'read the domains from a list, domain[,value] on each line; - is standard input',
    completion: 'files',
  },
  { flags: '--all', description: 'every open claim known on this machine', conflicts: ['--from'] },
  {
    flags: '--jobs <n>',
    description: 'of several domains, work on this many at once',
    default: String(DEFAULT_JOBS),
    parse: (text, name) => parseCount(text, name, 1, MAX_JOBS),
  },
]

/** Parts of the definitions of claim commands, in a module of their own so that help doesn't load the commands' implementation. */

import type { OptionDefinition, OptionValues } from '../settings/option.ts'
import { parseInteger } from '../settings/parse-value.ts'

/** Meanings of the events of `claim --format jsonl`, for the documentation. */
export const CLAIM_EVENT_MEANINGS = {
  created: 'the claim exists, with `earlier` if an open one may have ended in favor of it',
  record: 'the TXT record to add to DNS',
  published: 'the --publish command ended without an error, or the record was in DNS already',
  waiting: 'what it waits for, when that changes or a minute has passed; for DNS, with the report',
  warning: "a problem that doesn't stop it, with the error",
  dns: 'the record is visible in DNS',
  verification: 'the service was asked to verify, or is past that',
  status: 'the status of the claim, at the start and when it changes',
  done: 'the claim is completed, blocked or ended, with the error',
} as const

const { dns, verification, status, waiting, warning, done } = CLAIM_EVENT_MEANINGS

/** Meanings of the events of `claims watch --format jsonl`. */
export const WATCH_EVENT_MEANINGS = { status, waiting, warning, done } as const

/** Meanings of the events of `claims verify --format jsonl`. */
export const VERIFY_EVENT_MEANINGS = {
  ...{ dns, verification, ...WATCH_EVENT_MEANINGS },
  // `claims verify` checks DNS only once, so its `waiting` events are about the service alone.
  waiting: 'what it waits for at the service, when that changes or a minute has passed',
} as const

/** Default of `--jobs`: number of domains to work on at once. */
export const DEFAULT_JOBS = 16
const MAX_JOBS = 500

/** Options of the commands that take several domains; `claims create` has no `--all`. */
export const BATCH_OPTIONS = [
  {
    flags: '--from <file>',
    description: 'read the domains from a list, domain[,value] on each line; - is standard input',
    completion: 'files',
  },
  { flags: '--all', description: 'every open claim known on this machine', conflicts: ['--from'] },
  {
    flags: '--jobs <n>',
    description: 'number of domains to work on at once',
    default: String(DEFAULT_JOBS),
    parse: (text: string, name: string) => parseInteger(text, name, 1, MAX_JOBS),
  },
] as const satisfies readonly OptionDefinition[]

export type BatchOptions = OptionValues<typeof BATCH_OPTIONS>

/** Whether the command line requests a run over several domains: more than one argument, `--from` or `--all`. */
export const isBatch = (domains: readonly string[], { from, all }: BatchOptions): boolean =>
  domains.length > 1 || from !== undefined || all === true

/** Default `--timeout` of `claim` and `claims check --wait` in seconds. */
export const DEFAULT_CLAIM_TIMEOUT_SECONDS = 3600

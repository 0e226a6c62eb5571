import type { FORMATS } from '../settings/settings.ts'
import { PROFILE_AND_SETTINGS, settingName } from '../settings/table.ts'

/** The variables that the program reads; an option overrides them. */
export const ENVIRONMENT: readonly { readonly name: string; readonly description: string }[] = [
  ...PROFILE_AND_SETTINGS.flatMap(([key, { variable, description, flags }]) =>
    variable
      ? { name: variable, description: flags ? `${description}, as --${settingName(key)}` : description }
      : [],
  ),
  { name: 'MAILCLAIM_API_KEY', description: 'an API key; overrides a stored session and is never saved' },
  { name: 'MAILCLAIM_STORE_KEY', description: 'the key that encrypts the session in etcd' },
  { name: 'MAILCLAIM_STORE_USER', description: 'the user of etcd' },
  { name: 'MAILCLAIM_STORE_PASSWORD', description: 'the password of that user' },
  { name: 'MAILCLAIM_CONFIG_DIR', description: 'directory of the settings' },
  { name: 'MAILCLAIM_STATE_DIR', description: 'directory of sessions and remembered claims' },
  {
    name: 'NO_COLOR, FORCE_COLOR',
    description: 'no color, or color even without a terminal; FORCE_COLOR overrides NO_COLOR',
  },
  {
    name: 'FORCE_HYPERLINK',
    description: '1: addresses are hyperlinks in a terminal that is not known to have them; 0: none are',
  },
  { name: 'PAGER', description: 'the pager for long lists, if MAILCLAIM_PAGER is not set' },
  { name: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY', description: 'the proxy, and the hosts that bypass it' },
  { name: 'NODE_EXTRA_CA_CERTS', description: 'a file with more certificate authorities' },
]

/** What counts if a setting is made in several places. */
export const PRECEDENCE =
  'An option overrides the environment, which overrides the profile, which overrides the default.'

/** What each format is. */
export const FORMAT_MEANINGS: Readonly<Record<(typeof FORMATS)[number], string>> = {
  table: 'for people',
  json: 'one document: the object, or a list as {"object":"list","has_more":…,"data":[…]}',
  jsonl: 'an object per line, as it arrives; of a command that waits, an event per line',
  csv: 'commas and quotation marks, as in RFC 4180',
  tsv: 'a header and a line per item, tab-separated',
}

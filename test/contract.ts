const MANY = '--from --jobs'
const CREATE =
  '--region --custom-return-path --open-tracking --no-open-tracking --click-tracking --no-click-tracking --tracking-subdomain'

/** Flags of each command's own options, separated by spaces; scripts rely on them. */
export const COMMAND_FLAGS: Readonly<Record<string, string>> = {
  login:
    '--base-url --client-id --scope --resource --redirect-uri --issuer --authorization-endpoint --no-browser --timeout --store --store-url --store-cert --store-cert-key --store-key-file --with-api-key',
  logout: '--all',
  'auth status': '--online',
  'auth token': '--scope --min-lifetime',
  'auth refresh': '--retry-interrupted',
  'auth list': '',
  'auth switch': '',
  'grants list': '--state --limit --all --after --before',
  'imports list': '--status --limit --all --after --before',
  'imports get': '',
  'imports watch': '--timeout',
  'claims create': `${CREATE} ${MANY}`,
  'claims list': '--refresh',
  'claims get': '',
  'claims forget': '',
  'claims record': `--all ${MANY}`,
  'claims check': `--name --value --wait --timeout --public-resolvers --all ${MANY}`,
  'claims verify': `--no-check --wait --timeout --through-blocked --all ${MANY}`,
  'claims watch': `--timeout --through-blocked --all ${MANY}`,
  claim: `--publish --no-check --timeout --through-blocked --all ${CREATE} ${MANY}`,
  sandbox:
    '--auto-approve --auto-publish --port --dns-port --imports --grants --access-token-seconds --exit-with-stdin',
  doctor: '',
  'config list': '',
  'config get': '',
  'config set': '',
  'config unset': '',
  completion: '',
  commands: '',
}

/** Flags of the options that every command has, separated by spaces; scripts rely on them. */
export const GLOBAL_FLAGS =
  '--profile --base-url --client-id --format --json --fields --quiet --verbose --no-input --no-color --http-timeout --resolver --authoritative-port'

/** The commands that scripts rely on, with the options that each of them promises. */
export const COMMANDS: Readonly<Record<string, string>> = {
  login:
    '--base-url --client-id --scope --resource --port --redirect-uri --no-browser --timeout --profile --store --store-url --store-prefix --store-ca --store-cert --store-key-file --issuer --with-api-key --no-check',
  logout: '--all --yes',
  'auth status': '--online',
  'auth token': '',
  'auth refresh': '--scope --retry-interrupted',
  'auth rekey': '',
  'auth list': '',
  'auth switch': '',
  'grants list': '--state --limit --all --after --before',
  'imports list': '--status --limit --all --after --before',
  'imports get': '',
  'imports watch': '',
  'claims create':
    '--region --custom-return-path --open-tracking --no-open-tracking --click-tracking --no-click-tracking --tracking-subdomain --from --jobs --fail-fast',
  'claims list': '--refresh',
  'claims get': '',
  'claims record': '--provider --only-new --from --all --jobs --fail-fast',
  'claims publish': '--with --publish-timeout --only-new --from --all --jobs --fail-fast',
  'claims check':
    '--name --value --wait --interval --timeout --public-resolvers --from --all --jobs --fail-fast',
  'claims verify':
    '--no-check --force --wait --interval --timeout --through-blocked --public-resolvers --from --all --jobs --fail-fast',
  'claims watch': '--interval --timeout --through-blocked --from --all --jobs --fail-fast',
  claim:
    '--interval --timeout --through-blocked --no-check --public-resolvers --publish --unpublish --publish-timeout --only-new --from --all --jobs --fail-fast',
  sandbox: '--auto-approve --auto-publish --rate-limit',
  doctor: '',
  'config list': '',
  'config get': '',
  'config set': '',
  'config unset': '',
  'config path': '',
  completion: '',
  commands: '',
}

/** The options that every command promises. */
export const GLOBAL_FLAGS =
  '--profile --base-url --format --json --fields --quiet --verbose --no-input --no-color --no-pager --http-timeout --resolver --authoritative-port'

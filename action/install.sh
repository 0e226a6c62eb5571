#!/usr/bin/env bash
# Installs mailclaim for this job, and puts it into the PATH of its next steps.
set -euo pipefail
. "$(dirname "$0")/workflow-commands.sh"

fail() {
  annotate error mailclaim "$1"
  set_output result error
  set_output exit-code 2
  exit 2
}

version=$MAILCLAIM_ACTION_VERSION
directory=$RUNNER_TEMP/mailclaim
mkdir -p "$directory"
# Where claim.sh has mailclaim keep the claims. In a container, the expression runner.temp is another path than this variable.
set_output claims "$directory/state/claims"

node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' ||
  fail 'mailclaim needs Node 20.19 or later: add a step with actions/setup-node before this one'

if [ "$version" = checkout ]; then
  mkdir -p "$directory/bin"
  printf '#!/bin/sh\nexec node "%s" "$@"\n' "$GITHUB_ACTION_PATH/bin/mailclaim.js" >"$directory/bin/mailclaim"
  chmod +x "$directory/bin/mailclaim"
  printf '%s\n' "$directory/bin" >>"$GITHUB_PATH"
  exit
fi

if [ -z "$version" ]; then
  version=$(node -p 'require(process.argv[1]).version' "$GITHUB_ACTION_PATH/package.json")
fi
# A version or a tag of the registry, not an address or an option of npm.
case $version in
  *[!0-9A-Za-z.-]* | [!0-9A-Za-z]*) fail 'version: give one such as 1.2.3' ;;
esac

# In a directory of its own, where npm doesn't read the workspace's .npmrc. Without its one optional package, the system's
# keychain, nothing else is installed. No script of a package runs, and npm doesn't get the API key.
unset MAILCLAIM_API_KEY
npm install --prefix "$directory" --ignore-scripts --omit=optional --no-audit --no-fund "mailclaim@$version" ||
  fail "npm couldn't install mailclaim@$version: the log of this step says why"
printf '%s\n' "$directory/node_modules/.bin" >>"$GITHUB_PATH"

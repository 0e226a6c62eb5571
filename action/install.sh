#!/usr/bin/env bash
# Installs the version of mailclaim that this action belongs to, for this job alone; a built checkout runs itself.
set -euo pipefail
work=$RUNNER_TEMP/mailclaim
mkdir -p "$work/bin"
# In a container, the expression runner.temp is another path than this variable.
printf 'known=%s\n' "$work/domain-id" >>"$GITHUB_OUTPUT"
program=$GITHUB_ACTION_PATH
if [ ! -f "$program/dist/main.js" ]; then
  version=$(node -p 'require(process.argv[1]).version' "$GITHUB_ACTION_PATH/package.json")
  # In a directory of its own, where npm doesn't read the workspace's .npmrc. No script of a package runs.
  npm install --prefix "$work" --ignore-scripts --omit=optional --no-audit --no-fund "mailclaim@$version"
  program=$work/node_modules/mailclaim
fi
printf '#!/bin/sh\nexec node "%s" "$@"\n' "$program/bin/mailclaim.js" >"$work/bin/mailclaim"
chmod +x "$work/bin/mailclaim"

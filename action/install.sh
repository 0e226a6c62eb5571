#!/usr/bin/env bash
# Installs the version of mailclaim that this action belongs to, for this job only: from npm, or, if npm fails (no Node, or an old Node),
# from the archive, which has its own Node.
set -euo pipefail
work=$RUNNER_TEMP/mailclaim
mkdir -p "$work/bin"
# Pass the path as an output, because the expression runner.temp and the variable RUNNER_TEMP differ in a container.
printf 'known=%s\n' "$work/domain-id" >>"$GITHUB_OUTPUT"
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$GITHUB_ACTION_PATH/package.json")

# The prefix is a separate directory, so that npm doesn't read the workspace's .npmrc. No script of a package runs.
if npm install --prefix "$work" --ignore-scripts --engine-strict --no-audit --no-fund "mailclaim@$version"; then
  node=$(command -v node) program=$work/node_modules/mailclaim
elif problem=$(PREFIX=$work/archive VERSION=$version sh "$GITHUB_ACTION_PATH/install.sh" 2>&1); then
  program=$(echo "$work"/archive/lib/mailclaim/*)
  node=$program/node/node
else
  printf '::error title=mailclaim::npm and Node 20.19, 22.3 or later (actions/setup-node) are missing, or did not work, and %s\n' "${problem#error: }"
  exit 1
fi
printf '#!/bin/sh\nexec "%s" "$@"\n' "$node" >"$work/node"
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$node" "$program/bin/mailclaim.js" >"$work/bin/mailclaim"
chmod +x "$work/node" "$work/bin/mailclaim"

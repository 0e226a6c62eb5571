#!/usr/bin/env bash
# Claims a domain, writes the outputs, and exits with mailclaim's exit code. Has to run in bash 3.2, which macOS has.
set -euo pipefail
domain=$MAILCLAIM_ACTION_DOMAIN work=$RUNNER_TEMP/mailclaim
# The path in the form that PATH needs: on Windows, RUNNER_TEMP has a drive letter and backslashes.
bin=$(cd "$work/bin" && pwd)
# Use separate directories, so that sessions and settings of the runner's user have no effect.
export PATH=$bin:$PATH MAILCLAIM_STATE_DIR=$work/state MAILCLAIM_CONFIG_DIR=$work/config MAILCLAIM_NO_INPUT=1
unset MAILCLAIM_PROFILE

# escape TEXT: prints TEXT on one line, escaped for a workflow command of the runner.
escape() { local text=${1//'%'/%25}; text=${text//$'\r'/%0D}; printf '%s' "${text//$'\n'/%0A}"; }
if [ -n "$MAILCLAIM_API_KEY" ]; then printf '::add-mask::%s\n' "$(escape "$MAILCLAIM_API_KEY")"; fi
# Make the runner ignore workflow commands in the output of mailclaim and of the publish command, up to the line ::TOKEN::.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '::stop-commands::%s\n' "$token"

# Saves the claim of an earlier run in mailclaim's list of known claims, unless the service no longer has that claim.
if [ -s "$work/domain-id" ]; then mailclaim claims get --quiet -- "$(cat "$work/domain-id")" || true; fi
options=(--timeout "$MAILCLAIM_ACTION_TIMEOUT")
if [ -n "$MAILCLAIM_ACTION_REGION" ]; then options+=("--region=$MAILCLAIM_ACTION_REGION"); fi
if [ -n "$MAILCLAIM_ACTION_PUBLISH" ]; then options+=("--publish=$MAILCLAIM_ACTION_PUBLISH"); fi
code=0
mailclaim claim "${options[@]}" -- "$domain" 2>&1 | tee "$work/messages" || code=${PIPESTATUS[0]}
printf '\n::%s::\n' "$token"

# shellcheck disable=SC2016 # The dollar signs belong to JavaScript.
# Reads the result from the known claims, without a request. A random line ends each output, so that text from the service can't end
# one output and begin another.
mailclaim claims list --json | "$work/node" -e '
  const { appendFileSync, readFileSync, writeFileSync } = require("fs")
  const { domainToASCII } = require("url")
  const plain = (form, text) => (form.test(text ?? "") ? `${text}` : "")
  const [name, code, known] = process.argv.slice(1)
  const claims = JSON.parse(readFileSync(0, "utf8")).data
  const asked = name.toLowerCase().replace(/\.$/, "")
  // The service may write an internationalized domain name in another form.
  const claim = claims.find((one) => one.name === asked) ?? (/[^\x00-\x7f]/.test(asked) ? claims[0] : undefined) ?? {}
  const results = { 0: "completed", 8: "not-yet", 9: claim.status === "superseded" ? "superseded" : "ended" }
  const id = plain(/^[\w-]{1,128}$/, claim.domain_id)
  if (id !== "") writeFileSync(known, id)
  // After an error, output no value from the service.
  const { status, record } = results[code] === undefined ? {} : claim
  const outputs = { result: results[code] ?? "error", "exit-code": code, status: plain(/^[a-z_]{1,40}$/, status) }
  outputs["domain-id"] = results[code] === undefined ? "" : id
  // Output the record only if it is complete and valid, as for --publish.
  const type = plain(/^TXT$/, record?.type)
  const recordName = plain(/^\w[\w-]*(\.\w[\w-]*)*$/, domainToASCII(`${record?.name ?? ""}`.replace(/\.$/, "")))
  const value = plain(/^(?!v=)[a-z0-9][\w.-]*=[\w+/-]+={0,2}$/i, record?.value)
  const isWhole = type && value && `.${recordName}`.endsWith(`.${domainToASCII(asked)}`)
  const parts = isWhole ? [type, recordName, value] : ["", "", ""]
  for (const part of ["type", "name", "value"]) outputs[`record-${part}`] = parts.shift()
  for (const [key, text] of Object.entries(outputs)) {
    const end = crypto.randomUUID()
    appendFileSync(process.env.GITHUB_OUTPUT, `${key}<<${end}\n${text}\n${end}\n`)
  }
  if (results[code] === "superseded") console.log("::error title=mailclaim::a newer claim has replaced this one: if the domain is yours, remove this step, else delete the cache entry")
' -- "$domain" "$code" "$work/domain-id"
problem=$(sed -n '/^error: /,$p' "$work/messages")
if [ "$code" != 0 ] && [ -n "$problem" ]; then printf '::error title=mailclaim::%s\n' "$(escape "$problem")"; fi
exit "$code"

#!/usr/bin/env bash
# Claims a domain, and writes the outputs, the annotations and the job summary. The exit code is that of mailclaim, or 0 if
# the input fail-on leaves its result out. Runs with the bash 3.2 of macOS.
set -euo pipefail
. "$(dirname "$0")/workflow-commands.sh"
. "$(dirname "$0")/summary.sh"

domain=$MAILCLAIM_ACTION_DOMAIN
mode=$MAILCLAIM_ACTION_MODE
title="mailclaim: $domain"
fail_on=" $(printf '%s' "$MAILCLAIM_ACTION_FAIL_ON" | tr ',\r\n' '   ') "

# refuse TEXT: a mistake in the inputs.
refuse() {
  annotate error "$title" "$1"
  set_output result error
  set_output exit-code 2
  exit 2
}

case $mode in
  claim | wait) timeout=$MAILCLAIM_ACTION_TIMEOUT ;;
  create)
    timeout=1
    [ -z "$MAILCLAIM_ACTION_PUBLISH$MAILCLAIM_ACTION_UNPUBLISH" ] || refuse 'publish and unpublish: not with mode create'
    ;;
  *) refuse 'mode: claim, create or wait' ;;
esac
for word in $fail_on; do
  case $word in
    not-yet | ended | none) ;;
    *) refuse 'fail-on: not-yet, ended, both, or none' ;;
  esac
done

if [ -n "$MAILCLAIM_ACTION_API_KEY" ]; then export MAILCLAIM_API_KEY=$MAILCLAIM_ACTION_API_KEY; fi
if [ -n "$MAILCLAIM_ACTION_BASE_URL" ]; then export MAILCLAIM_BASE_URL=$MAILCLAIM_ACTION_BASE_URL; fi
if [ -z "${MAILCLAIM_API_KEY:-}" ]; then refuse 'api-key: missing; give it from a secret'; fi
printf '::add-mask::%s\n' "$(escape_data "$MAILCLAIM_API_KEY")"

# Nothing of the machine's own sessions and settings. Two uses of the action in a job share the claims.
export MAILCLAIM_STATE_DIR=$RUNNER_TEMP/mailclaim/state MAILCLAIM_CONFIG_DIR=$RUNNER_TEMP/mailclaim/config
unset MAILCLAIM_PROFILE
files=$(mktemp -d "$RUNNER_TEMP/mailclaim/run.XXXXXX")
trap 'rm -rf "$files"' EXIT
data=$files/claim.tsv messages=$files/messages
touch "$data" "$messages" "$files/check"

# Runs mailclaim: its data are added to $data, and what it says is shown and kept in $messages.
run() {
  mailclaim "$@" 2>&1 >>"$data" | tee "$messages" || return "${PIPESTATUS[0]}"
}

CLAIM_FIELDS=(--format tsv --fields 'domain_id,status,blocked_reason,failure_reason,name')
# The column of the claim as last seen.
claim_field() {
  tail -n 1 "$data" | cut -f "$1"
}

# is_other_name INPUT NAME: whether they differ, if the input is ASCII as the service's names are.
is_other_name() {
  local typed
  typed=$(LC_ALL=C tr 'A-Z' 'a-z' <<<"${1%.}")
  [ -z "$(LC_ALL=C tr -d 'a-z0-9._\n-' <<<"$typed")" ] && [ "$typed" != "$2" ]
}

arguments=(--timeout "$timeout")
if [ -n "$MAILCLAIM_ACTION_PUBLISH" ]; then arguments+=("--publish=$MAILCLAIM_ACTION_PUBLISH"); fi
if [ -n "$MAILCLAIM_ACTION_UNPUBLISH" ]; then arguments+=("--unpublish=$MAILCLAIM_ACTION_UNPUBLISH"); fi
while IFS= read -r option; do
  option=${option%$'\r'}
  case ${option%%=*} in
    --json) refuse 'options: not --json; the outputs of the action have what it prints' ;;
    --*[[:space:]]*) refuse "options: an option and its value are joined by =, without a space: ${option/[[:space:]]/=}" ;;
    ?*) arguments+=("$option") ;;
  esac
done <<<"$MAILCLAIM_ACTION_OPTIONS"

code=0
known=$MAILCLAIM_ACTION_DOMAIN_ID
if [ "$mode" = wait ]; then known=${known:-$domain}; fi
if [ -n "$known" ]; then
  # `claim` would start another claim if this one has ended or isn't the domain's. So ask how it is, then for its record: exit 9
  # if it has ended, and 5 if the domain isn't its own.
  without_commands run claims get --quiet "${CLAIM_FIELDS[@]}" -- "$known" || code=$?
  if [ "$code" = 0 ]; then
    data=/dev/null without_commands run claims record --quiet -- "$domain" || code=$?
    owner=$(claim_field 5)
    if [ -n "$MAILCLAIM_ACTION_DOMAIN_ID" ] && { [ "$code" = 5 ] || is_other_name "$domain" "$owner"; }; then
      refuse "domain-id: this is the claim of $owner, not of $domain"
    fi
  fi
fi
if [ "$code" = 0 ]; then
  without_commands run claim "${arguments[@]}" "${CLAIM_FIELDS[@]}" -- "$domain" || code=$?
fi
# A claim that was made before something failed.
if ! [ -s "$data" ]; then mailclaim claims get --quiet "${CLAIM_FIELDS[@]}" -- "$domain" >"$data" 2>/dev/null || true; fi

status=$(claim_field 2)
# Such as --help among the options.
if [ "$code" = 0 ] && [ "$status" != completed ]; then
  without_commands cat "$data"
  refuse 'options: mailclaim did something other than to claim the domain'
fi
case $code in
  0) result=completed ;;
  8) result=not-yet ;;
  9) result=ended ;;
  *) result=error ;;
esac
reason=$(claim_field 3)
if [ -z "$reason" ]; then reason=$(claim_field 4); fi

# From the claims of this machine, without a request.
record=$(mailclaim claims record --quiet --format tsv --fields type,name -- "$domain" 2>/dev/null | tail -n 1) || record=
value=$(mailclaim claims record --quiet --format value -- "$domain" 2>/dev/null) || value=
name=$(cut -f 2 <<<"$record")
verdict='' zone='' host=''
if [ -n "$name" ]; then
  check=$(mailclaim claims check --quiet --format tsv --fields verdict,zone -- "$domain" 2>"$files/check" | tail -n 1) || true
  zone=$(cut -f 2 <<<"$check")
  if [ "$result" != completed ]; then verdict=$(cut -f 1 <<<"$check"); fi
fi
case $name in
  "$zone") if [ -n "$zone" ]; then host=@; fi ;;
  *".$zone") if [ -n "$zone" ]; then host=${name%".$zone"}; fi ;;
esac

set_output result "$result"
set_output exit-code "$code"
set_output status "$status"
set_output reason "$reason"
set_output verdict "$verdict"
set_output domain-id "$(claim_field 1)"
set_output record-type "$(cut -f 1 <<<"$record")"
set_output record-name "$name"
set_output record-host "$host"
set_output record-zone "$zone"
set_output record-value "$value"

# The last error in a file, and the hints after it. Lines of the user's program begin with its name.
problem_in() {
  awk '/^error: / { text = substr($0, 8); next } text != "" { text = text "\n" $0 } END { print text }' "$1"
}
dns_problem=$(problem_in "$files/check")
problem=$(problem_in "$messages")
# What is wrong in DNS and how to fix it, rather than that the time is up.
if [ "$result" = not-yet ]; then problem=${dns_problem:-$problem}; fi
# A block first: it decides, whatever is in DNS.
if [ "$status $result" = 'blocked not-yet' ]; then problem="the claim is blocked${reason:+: $reason}"$'\n'"$problem"; fi
if [ "$code" != 0 ] && [ -z "$problem" ]; then problem="mailclaim ended with exit code $code"; fi
# What to do here: the hints are about commands, on a machine that knows the claim.
if [ "$status $result" = 'blocked ended' ]; then problem+=$'\nto wait in this action until the block lifts: options: --through-blocked'; fi
if [ "$status $result" != 'blocked ended' ] && { [ "$result" = ended ] || [ "$code" = 5 ]; }; then
  if [ -n "$MAILCLAIM_ACTION_DOMAIN_ID" ]; then
    problem+=$'\nin this action: remove the input domain-id and use mode: claim to start another'
  elif [ "$mode" = wait ]; then
    case "$code $problem" in
      9* | *'the service no longer has the claim'*) problem+=$'\nin this action: use mode: claim to start another' ;;
      *) problem+=$'\nin this action: give the input domain-id of the earlier run, or use mode: claim to start a claim' ;;
    esac
  fi
fi

write_summary >>"$GITHUB_STEP_SUMMARY"

sed -n 's/^warning: //p' "$messages" | while IFS= read -r warning; do annotate warning "$title" "$warning"; done
if [ "$result" = completed ] || [ "$mode $result" = 'create not-yet' ]; then exit 0; fi
if [ "$result" = error ] || [[ $fail_on == *" $result "* ]]; then
  annotate error "$title" "$problem"
  exit "$code"
fi
annotate warning "$title" "$problem"

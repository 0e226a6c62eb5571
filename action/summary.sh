# The job summary in Markdown. Sourced by claim.sh, whose variables it shows.

# Text of others as a code span, on one line: it can't become a link, an image or a mention.
code_span() {
  local text=${1//$'\n'/ } fence='`'
  while [[ $text == *"$fence"* ]]; do fence+='`'; done
  printf '%s %s %s' "$fence" "$text" "$fence"
}

# detail LABEL TEXT: a line of the list, unless there is no text.
detail() {
  if [ -n "$2" ]; then printf -- '- **%s:** %s\n' "$1" "$2"; fi
}

write_summary() {
  local result_text line label=Problem
  case $result in
    completed) result_text='the domain is yours' ;;
    not-yet) result_text='not yet: the record is not in DNS, or the service has not finished' ;;
    ended) result_text='the claim is blocked, or ended unsuccessfully' ;;
    *) result_text='an error' ;;
  esac
  printf '## mailclaim: %s\n\n' "$(code_span "$domain")"
  detail Result "$result_text (exit code $code)"
  if [ -n "$status" ]; then detail Status "$(code_span "$status${reason:+: $reason}")"; fi
  if [ -n "$value" ] && [ "$result" != completed ]; then
    detail Record "TXT at $(code_span "$name") with the value $(code_span "$value")"
  fi
  if [ -n "$(claim_field 1)" ]; then detail 'Domain id' "$(code_span "$(claim_field 1)")"; fi
  # The report below has the problem of DNS.
  if [ "$problem" != "$dns_problem" ] && [ "$mode $result" != 'create not-yet' ]; then
    while IFS= read -r line; do
      if [ -n "$line" ]; then detail "$label" "$(code_span "${line#hint: }")"; fi
      label=Next
    done <<<"$problem"
  fi
  printf '\n'
  if [ -n "$verdict" ]; then
    # It has everything from outside in code spans.
    mailclaim claims check --quiet --format markdown -- "$domain" 2>/dev/null || true
    printf '\n'
  fi
}

# What a step tells the runner: workflow commands on standard output, and outputs in a file. Sourced by the other scripts.

# 128 random bits in hexadecimal.
random() {
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# The text of a workflow command: on one line, and nothing in it is a command.
escape_data() {
  local text=${1//\%/%25}
  text=${text//$'\r'/%0D}
  printf '%s' "${text//$'\n'/%0A}"
}

# annotate LEVEL TITLE TEXT: LEVEL is error, warning or notice.
annotate() {
  local title
  title=$(escape_data "$2")
  title=${title//:/%3A}
  printf '::%s title=%s::%s\n' "$1" "${title//,/%2C}" "$(escape_data "$3")"
}

# set_output NAME VALUE: nobody can guess the line that ends the value.
set_output() {
  local delimiter
  delimiter=end-$(random)
  printf '%s<<%s\n%s\n%s\n' "$1" "$delimiter" "$2" "$delimiter" >>"$GITHUB_OUTPUT"
}

# without_commands COMMAND...: runs it, and the runner looks for no commands in what it prints.
without_commands() {
  local token status=0
  token=$(random)
  printf '::stop-commands::%s\n' "$token"
  "$@" || status=$?
  printf '\n::%s::\n' "$token"
  return "$status"
}

# shellcheck shell=bash
# For tests of the command line: a temporary working folder, and checks of a command's result.
# Source it from a script whose first argument is the program.
set -uo pipefail
# shellcheck disable=SC2034
lambcast=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0 checks=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND...: the exit code, and a line that matches on stdout (code 0 and 3) or
# on stderr. Errors are one line and leave stdout empty.
expect() {
  local code=$1 pattern=$2 got=0 stream=err
  shift 2
  checks=$((checks + 1))
  timeout 60 "$@" >out 2>err </dev/null || got=$?
  [ "$got" -eq "$code" ] || fail "exit code $got, not $code: $*"$'\n'"$(tail -3 err)"
  case $code in
    0 | 3) stream=out ;;
    *)
      [ -s out ] && fail "an error prints to stdout: $*"
      [ "$(wc -l <err)" -eq 1 ] ||
        fail "not one line: $*"$'\n'"$(cat err)"
      grep -q '^lambcast: ' err || fail "does not name itself: $*"
      ;;
  esac
  grep -qE -- "$pattern" "$stream" || fail "no '$pattern' in the output of: $*"$'\n'"$(head -5 "$stream")"
}

summary() {
  echo "$checks checks, $failures failures"
  [ "$failures" -eq 0 ]
}

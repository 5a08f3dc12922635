#!/usr/bin/env bash
# The standard streams may be closed, full or without a reader: there is no abort, no truncated
# result that counts as complete, and no failure because of an unread message.
#
#   standard_streams_test.sh LAMBCAST
set -uo pipefail
lambcast=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0 checks=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
is() {  # WANTED GOT WHAT
  checks=$((checks + 1))
  [ "$1" -eq "$2" ] || fail "exit code $2, not $1: $3"
}

cat >table.csv <<'END'
# collective: all_gather
# ranks: 2
# nodes: 2
size_bytes,time_us
1024,30
1048576,900
67108864,54000
END
what=(--model bert-large --cluster commodity-10gbe --gpus 4 --optimizer onebit_lamb --micro-batch 8)
cat >sweep.toml <<'END'
name = "short"
[base]
model = "bert-large"
cluster = "commodity-10gbe"
micro_batch = 8
grad_accum = 1
optimizer = "adam"
steps = 1000
[grid]
gpus = [2, 4]
END

awk 'BEGIN {
  print "step,layer,norm,elements"
  for (k = 10; k <= 2000; k += 10) printf "%d,all,%.17g,9000\n", k, 1 + 5 * 0.98 ^ k
}' >losses.csv

# A pipe whose reader has certainly ended.
exec 7> >(:)
wait $!

# Commands with results on stdout. Written files must not prevent a second run.
every() {
  check "$lambcast" --help
  check "$lambcast" --version
  check "$lambcast" simulate --help
  check "$lambcast" measure --help
  check "$lambcast" simulate "${what[@]}" --steps 1000
  check "$lambcast" simulate "${what[@]}" --steps 1000 --format json
  check "$lambcast" advise "${what[@]}" --steps 10000
  check "$lambcast" compare --model bert-large --gpus 4 --optimizer lamb --micro-batch 8 --steps 1000 --clusters commodity-10gbe,commodity-25gbe
  check "$lambcast" sensitivity "${what[@]}" --steps 1000
  check "$lambcast" plan --model gpt2 --cluster dgx-a100-80g --gpus 8 --optimizer adamw --global-batch 64
  check "$lambcast" solve freeze_step --for speedup=0.7 "${what[@]}" --steps 1000
  check "$lambcast" freeze losses.csv --beta2 0.99
  check "$lambcast" sweep sweep.toml --dry-run
  check "$lambcast" sweep "${what[@]}" --steps 1000 --list seq_len=128,256
  check "$lambcast" help keys
  check "$lambcast" collective --cluster commodity-10gbe --gpus 4
  check "$lambcast" calibrate --cluster commodity-10gbe --force -o fitted.toml table.csv
  check "$lambcast" validate --cluster commodity-10gbe --against table.csv
  check "$lambcast" presets list
  check "$lambcast" presets show hgx-h100-ndr
}

check() {
  local code=0 said wanted=0
  "$@" >whole 2>err </dev/null || wanted=$?
  [ "$wanted" -eq 0 ] || { fail "$*: $(cat err)"; return; }
  # stdout closed or on a full disk: exit code 1, and one line with the reason.
  said=$("$@" 2>&1 >/dev/full </dev/null) || code=$?
  is 1 $code "$* >/dev/full"
  [[ $said == "lambcast: "*"No space left on device" && $said != *$'\n'* ]] || fail "$* >/dev/full says: $said"
  code=0
  said=$("$@" 2>&1 >&- </dev/null) || code=$?
  is 1 $code "$* >&-"
  [[ $said == "lambcast: "*"stdout"* && $said != *$'\n'* ]] || fail "$* >&- says: $said"
  # If the reader of stdout has closed the pipe: the exit code is that of SIGPIPE, without a
  # message.
  code=0
  said=$("$@" 2>&1 >&7 </dev/null) || code=$?
  is 141 $code "$* | (gone)"
  [ -z "$said" ] || fail "$* | (gone) says: $said"
  # Without a reader of messages, the results are the same.
  for silent in '2>&-' '2>/dev/full' '2>&7'; do
    code=0
    eval '"$@" >again </dev/null' "$silent" || code=$?
    is 0 $code "$* $silent"
    grep -v ' seconds\| in [0-9.]* s$' whole >a
    grep -v ' seconds\| in [0-9.]* s$' again >b
    cmp -s a b || fail "$* $silent: other results"
  done
  code=0
  "$@" >/dev/full 2>&- </dev/null || code=$?
  is 1 $code "$* >/dev/full 2>&-"
  code=0
  "$@" >&- 2>&- <&- || code=$?
  is 1 $code "$* with all closed"
}
every

# Errors keep their exit code without a reader of messages, and so does validate if its reader ends
# early.
for silent in '2>&-' '2>/dev/full' '2>&7'; do
  code=0
  eval '"$lambcast" simulate --model no-such-model --cluster commodity-10gbe --gpus 4' "$silent" || code=$?
  is 2 $code "an error $silent"
  code=0
  eval '"$lambcast" no-such-command' "$silent" || code=$?
  is 2 $code "a usage error $silent"
  code=0
  eval '"$lambcast" validate >&7' "$silent" || code=$?
  is 141 $code "validate | (gone) $silent"
done

# A file that is opened later does not get the descriptor of a closed stream.
"$lambcast" simulate "${what[@]}" --steps 1000 --trace trace.json >&- 2>&-
python3 -c 'import json; json.load(open("trace.json"))' || fail "a trace that another stream wrote into"

# sweep and report write files; their messages are not results.
rm -rf results
"$lambcast" sweep sweep.toml --out results --no-report >/dev/null 2>&- || fail "sweep 2>&-: $?"
rm -rf results
"$lambcast" sweep sweep.toml --out results --no-report >/dev/null 2>/dev/full || fail "sweep 2>/dev/full: $?"

[ $checks -ge 100 ] || fail "only $checks checks"
[ $failures -eq 0 ] && echo "$checks checks passed"
exit $((failures > 0))

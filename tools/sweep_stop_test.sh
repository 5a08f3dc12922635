#!/usr/bin/env bash
# A sweep stopped by a kill, a signal or a full disk continues with --resume and ends with the same
# bytes as one that was not stopped.
#
#   sweep_stop_test.sh LAMBCAST
set -uo pipefail
lambcast=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "FAILED: $*"
  exit 1
}

# 64 GPU counts x 20 sequence lengths x 5 freeze steps x 2 optimizers
cat >sweep.toml <<'END'
name = "long"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
[grid]
gpus = "4:256:4"
seq_len = "24:480:24"
freeze_step = "0%:100%:25%"
optimizer = ["onebit_lamb", "onebit_adam"]
END
points=12800

sweep() { # OUT [flags]
  local out=$1
  shift
  "$lambcast" sweep sweep.toml --no-report --jobs 2 --out "$out" "$@"
}

rows() { # whole rows on disk
  local lines
  lines=$(wc -l 2>/dev/null <"$1/results.csv") || lines=0
  echo $((lines > 0 ? lines - 1 : 0))
}

# Starts a sweep, and sends it the signal when some rows are on disk.
stop_with() { # SIGNAL OUT CODE [flags]
  local signal=$1 out=$2 code=$3 got=0 before child
  shift 3
  before=$(rows "$out")
  # Does not use sweep(), so that the signal reaches the program and not a shell around it.
  "$lambcast" sweep sweep.toml --no-report --jobs 2 --out "$out" "$@" >"$out.out" 2>"$out.err" &
  child=$!
  for _ in $(seq 2000); do
    [ "$(rows "$out")" -gt $((before + 200)) ] && break
    sleep 0.01
  done
  if [ "$signal" = INT ]; then
    sweep "$out" --resume >second.out 2>second.err && fail "two sweeps write into one folder"
    grep -q 'another sweep writes there now' second.err || fail "a second sweep: $(cat second.err)"
  fi
  kill -"$signal" "$child" || fail "the sweep was over before SIG$signal"
  wait "$child" || got=$?
  [ "$got" -eq "$code" ] || fail "exit code $got after SIG$signal, not $code"
  [ "$(rows "$out")" -lt "$points" ] || fail "the sweep was complete before SIG$signal"
  [ "$(rows "$out")" -gt "$before" ] || fail "SIG$signal left no row"
  grep -q '"complete": false' "$out/manifest.json" || fail "SIG$signal left a manifest that says complete"
}

finish() { # OUT
  sweep "$1" --resume >"$1.out" 2>"$1.err" || fail "--resume: $(cat "$1.err")"
  grep -Eq ': [1-9][0-9]* kept, [0-9]+ run now$' "$1.out" || fail "--resume does not say what it kept: $(cat "$1.out")"
  cmp whole/results.csv "$1/results.csv" || fail "$1: resumed results differ"
  cmp whole/manifest.json "$1/manifest.json" || fail "$1: the manifests differ"
}

sweep whole >out 2>err || fail "$(cat err)"
[ "$(rows whole)" -eq "$points" ] || fail "$(rows whole) rows, not $points"
grep -q "^$points points" out || fail "no summary on stdout"
# Without a terminal there is a line every ten seconds instead of a bar; then each finding on the
# points, once.
beside() { grep -vE 'points, [0-9]+ s left$|^lambcast: (note|warning): ([0-9]+ of|all) [0-9]+ points|^lambcast: more: ' "$1"; }
beside err && fail "more than progress on stderr: $(cat err)"

# SIGKILL, which cannot be caught, ends the sweep twice; then it runs to its end.
stop_with KILL killed 137
stop_with KILL killed 137 --resume
finish killed

# Signals that the program catches.
stop_with INT interrupted 130
grep -q 'go on with --resume' interrupted.err || fail "an interrupt does not say how to go on"
[ -s interrupted.out ] && fail "an interrupted sweep prints results"
finish interrupted
stop_with TERM terminated 143
finish terminated

# Without --resume existing results are not changed.
got=0
sweep killed >out 2>err || got=$?
[ "$got" -eq 2 ] || fail "exit code $got where results are there already, not 2"
grep -q 'holds results already; go on with --resume' err || fail "$(cat err)"
got=0
sweep killed --resume --list gpus=8 >out 2>err || got=$?
[ "$got" -eq 2 ] && grep -q 'of another sweep' err || fail "another sweep goes on: $got, $(cat err)"
cmp whole/results.csv killed/results.csv || fail "a refused sweep touched the results"
# Resuming a complete sweep changes nothing.
finish killed

# A changed row is detected, and all rows from there on are computed again.
sed -i '6001s/onebit/onebut/' killed/results.csv
finish killed
[ "$(beside killed.err)" = "lambcast: killed/results.csv: row 6000 does not match its checksum: 6801 rows are computed again" ] ||
  fail "a changed row: $(cat killed.err)"

# A disk that is full after 1 MiB: files cannot grow further, and the signal for that is ignored.
got=0
(trap '' XFSZ; ulimit -f 1024; sweep full >out 2>err) || got=$?
[ "$got" -eq 1 ] || fail "exit code $got on a full disk, not 1"
[ "$(beside err)" = "lambcast: full/results.csv: cannot be written: File too large" ] || fail "on a full disk: $(cat err)"
finish full

# On a terminal there is a progress bar.
if command -v script >/dev/null; then
  script -qec "'$lambcast' sweep sweep.toml --no-report --jobs 2 --out terminal >/dev/null" typescript >/dev/null ||
    fail "on a terminal: $(cat typescript)"
  grep -q '\[#\+\] 12800/12800 points' typescript || fail "no bar on a terminal: $(tail -c 300 typescript)"
else
  echo "left out, there is no script(1): the progress bar on a terminal"
fi
# Planning ten million points takes the memory of one.
(ulimit -v 500000; "$lambcast" sweep sweep.toml --dry-run --scan gpus=1:500:1 --scan seq_len=1:500:1 \
  --scan cluster.nic.bandwidth=1Gbit/s:4Gbit/s:1Gbit/s >out 2>err) || fail "ten million points: $(cat err)"
grep -q '^long: 10000000 points' out || fail "ten million points: $(cat out)"
echo "a sweep of $points points was stopped 5 times and lost nothing"

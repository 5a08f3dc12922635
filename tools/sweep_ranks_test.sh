#!/usr/bin/env bash
# A sweep on several processes of this machine writes the bytes of one process, loses nothing if
# ranks are killed, and prints each message once. Exit code 77 (skipped) without mpirun, or with a
# program without MPI.
#
#   sweep_ranks_test.sh LAMBCAST YIELD_SLEEP
set -uo pipefail
lambcast=$(readlink -f "$1")
yield_sleep=$(readlink -f "$2")
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -e "$(dirname "$lambcast")/lambcast-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "FAILED: $*"
  exit 1
}

# On one host no launch agent is needed, so none is searched (there may be no ssh).
launch=(mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl 'self,vader'
  --mca plm_rsh_agent /bin/false -x "LD_PRELOAD=$yield_sleep")

# 64 GPU counts x 64 sequence lengths x 11 freeze steps x 2 optimizers
cat >sweep.toml <<'END_OF_SWEEP'
name = "long"
[base]
model = "bert-large"
cluster = "mine.toml"
micro_batch = 16
steps = 1000
[grid]
gpus = "4:256:4"
seq_len = "8:512:8"
freeze_step = "0%:100%:10%"
optimizer = ["onebit_lamb", "onebit_adam"]
END_OF_SWEEP
"$lambcast" presets show paper-eth40-v100 >mine.toml || fail "no cluster"
points=90112
few=(--list gpus=4,16,252 --list 'seq_len=24,240') # 132 points

rows() { # whole rows on disk
  local lines
  lines=$(wc -l 2>/dev/null <"$1/results.csv") || lines=0
  echo $((lines > 0 ? lines - 1 : 0))
}
same() { # WHOLE OUT
  cmp "$1/results.csv" "$2/results.csv" || fail "$2: results differ"
  cmp "$1/manifest.json" "$2/manifest.json" || fail "$2: the manifests differ"
}
# Messages of the program itself, other than progress; mpirun has messages of its own.
found='^lambcast: (note|warning): ([0-9]+ of|all) [0-9]+ points'  # findings on the points
said() { grep '^lambcast: ' "$1" | grep -vE "$found"; }
once() { # FILE PATTERN
  [ "$(said "$1" | wc -l)" -eq 1 ] || fail "not one line: $(cat "$1")"
  said "$1" | grep -qE -- "$2" || fail "no '$2': $(cat "$1")"
}

"$lambcast" sweep sweep.toml --no-report --jobs 1 --out few "${few[@]}" >few.out 2>few.err || fail "$(cat few.err)"
for ranks in 1 2 3 5; do
  "${launch[@]}" -n $ranks "$lambcast" sweep sweep.toml --no-report --jobs 1 --out few-$ranks "${few[@]}" \
    >out 2>err || fail "$ranks ranks: $(cat err)"
  same few few-$ranks
  [ "$(sed "s/few-$ranks/few/" out)" = "$(cat few.out)" ] || fail "$ranks ranks print $(cat out)"
  [ "$(cat err)" = "$(cat few.err)" ] || fail "$ranks ranks say $(cat err)"
done

# Only rank 0 has the files; this includes a sweep from stdin.
mkdir elsewhere
"${launch[@]}" -n 1 "$lambcast" sweep - --no-report --out few-alone "${few[@]}" : \
  -n 2 -wdir "$folder/elsewhere" "$lambcast" sweep - --no-report --out few-alone "${few[@]}" \
  <sweep.toml >out 2>err || fail "files at rank 0 alone: $(cat err)"
sed -i 's/sweep - /sweep sweep.toml /; s/sweep -"/sweep sweep.toml"/' few-alone/manifest.json
same few few-alone
[ -z "$(ls elsewhere)" ] || fail "another rank has written $(ls elsewhere)"

# A table is printed once, as by one process, and a report is drawn once.
table=(--model bert-large --cluster mine.toml --optimizer onebit_lamb --micro-batch 16 --steps 1000
  --freeze-step 100 --scan gpus=4..128)
"$lambcast" sweep "${table[@]}" >alone || fail "no table"
"${launch[@]}" -n 3 "$lambcast" sweep "${table[@]}" >out 2>err || fail "$(cat err)"
cmp alone out || fail "ranks print another table"
"${launch[@]}" -n 3 "$lambcast" sweep "${table[@]}" --out drawn >out 2>err || fail "$(cat err)"
[ "$(grep -c '^report: drawn/' out)" = 1 ] || fail "not one report: $(cat out)"
"${launch[@]}" -n 3 "$lambcast" sweep sweep.toml --dry-run >out 2>err || fail "$(cat err)"
[ "$(cat out)" = "long: $points points on 3 ranks of 1 thread(s), into results" ] || fail "$(cat out)"
"${launch[@]}" -n 2 "$lambcast" sweep --help >out 2>err || fail "$(cat err)"
[ "$(grep -c -- '--resume' out)" = 1 ] || fail "help is printed more than once"

# Errors are printed once, with the exit code of a single process.
for wrong in "absent.toml" "sweep.toml --jobs 0" "sweep.toml --resum" "sweep.toml --out few" \
  "sweep.toml --list gpus=none --out none"; do
  got=0
  # shellcheck disable=SC2086
  "${launch[@]}" -n 3 "$lambcast" sweep $wrong >out 2>err || got=$?
  [ $got = 2 ] || fail "exit code $got: $wrong"
  [ -s out ] && fail "an error prints to stdout: $wrong"
  said err >said
  once said .
done
[ -e none ] && fail "a refused sweep has written"

# Several processes without MPI between them are an error.
got=0
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$lambcast" sweep sweep.toml >out 2>err || got=$?
[ $got = 4 ] || fail "exit code $got where MPI sees one process"
once err '2 processes were started, and MPI sees 1'
got=0
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$lambcast" sweep sweep.toml >out 2>err || got=$?
[ $got = 4 ] && [ ! -s err ] || fail "the second of them: $got, $(cat err)"

# Starts a sweep, and sends the signal to a rank (or to mpirun) when some rows are on disk.
stop_with() { # SIGNAL WHOM OUT [flags]
  local signal=$1 whom=$2 out=$3 before launcher
  shift 3
  before=$(rows "$out")
  rm -f pid.*
  # shellcheck disable=SC2016
  "${launch[@]}" -n 3 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec "$@"' rank \
    "$lambcast" sweep sweep.toml --no-report --out "$out" "$@" >"$out.out" 2>"$out.err" &
  launcher=$!
  for _ in $(seq 2000); do
    [ "$(rows "$out")" -gt $((before + 200)) ] && break
    sleep 0.01
  done
  case $whom in
    mpirun) kill -"$signal" $launcher ;;
    all) kill -"$signal" $launcher "$(cat pid.0)" "$(cat pid.1)" "$(cat pid.2)" ;;
    *) kill -"$signal" "$(cat "pid.$whom")" ;;
  esac || fail "the sweep was over before SIG$signal"
  wait $launcher && fail "SIG$signal to $whom: exit code 0"
  for rank in 0 1 2; do
    for _ in $(seq 500); do
      kill -0 "$(cat pid.$rank)" 2>/dev/null || break
      sleep 0.01
    done
    kill -0 "$(cat pid.$rank)" 2>/dev/null && fail "SIG$signal to $whom leaves rank $rank"
  done
  [ "$(rows "$out")" -gt "$before" ] || fail "SIG$signal left no row"
  [ "$(rows "$out")" -lt $points ] || fail "the sweep was complete before SIG$signal"
  [ -s "$out.out" ] && fail "SIG$signal prints results"
  grep -q '"complete": false' "$out/manifest.json" || fail "SIG$signal left a manifest that says complete"
}
"$lambcast" sweep sweep.toml --no-report --out whole >out 2>err || fail "$(cat err)"
finish() { # OUT
  "${launch[@]}" -n 2 "$lambcast" sweep sweep.toml --no-report --resume --out "$1" >"$1.out" 2>"$1.err" ||
    fail "--resume: $(cat "$1.err")"
  same whole "$1"
}
# When mpirun is ended or a rank ends, it gives the others a second, and may drop their messages.
at_most_once() { # FILE PATTERN
  [ -z "$(said "$1")" ] || once "$1" "$2"
}
stop_with KILL 2 killed
at_most_once killed.err 'stopped with [0-9]+ rows more on disk; go on with --resume'
stop_with KILL 0 killed --resume
stop_with KILL all killed --resume
finish killed
stop_with TERM mpirun terminated
at_most_once terminated.err 'go on with --resume'
stop_with TERM 0 terminated --resume
once terminated.err 'go on with --resume'
stop_with INT mpirun terminated --resume
at_most_once terminated.err 'go on with --resume'
finish terminated
echo "a sweep of $points points on 3 ranks was stopped 6 times and lost nothing"

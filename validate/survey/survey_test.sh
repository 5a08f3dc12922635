#!/usr/bin/env bash
# Tests a survey of 3 processes of this machine over MPI: plan, forecast, tables, and a fitted description that
# forecasts; a question that ends it; a rank that is lost; a kill. Exit code 77 (skipped) if there is no mpirun.
#
#   survey_test.sh LAMBCAST YIELD_SLEEP
set -euo pipefail
lambcast=$(readlink -f "$1")
yield_sleep=$(readlink -f "$2")
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $1"; exit 1; }

launch=(mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl 'self,vader'
  --mca plm_rsh_agent /bin/false -x "LD_PRELOAD=$yield_sleep")
survey=("$lambcast" survey --cluster commodity-10gbe --ops all_reduce,all_gather -b 4K -e 1M
  --seconds-per-size 0.02)
"${launch[@]}" -n 3 "${survey[@]}" -o mine >out 2>err || fail "the survey ends with $?: $(cat out err)"
[ "$(wc -l <mine/plan.csv)" = 21 ] || fail "not 4 tables of 5 sizes are planned: $(cat mine/plan.csv)"
[ "$(wc -l <mine/forecast.csv)" = 21 ] || fail "not every planned row is forecast"
for table in all_reduce all_gather all_reduce-uint8 all_gather-uint8; do
  [ "$(grep -c '^[0-9]' "mine/tables/$table-n1.csv")" = 5 ] || fail "$table has not 5 rows"
done
grep -q '^Median error of the forecast on sizes that were held out' out || fail "nothing is compared: $(cat out)"
[ "$(grep -c '^all_' mine/held_out.csv)" = 8 ] || fail "not 2 of 5 sizes of 4 tables are held out: $(cat mine/held_out.csv)"
"$lambcast" collective --cluster mine/cluster.toml --gpus 3 --backend mpi -b 1M -e 1M >forecast ||
  fail "the description does not forecast"

# Without --cluster the description to start from is derived from the host, and a step of a program sets its level.
"${launch[@]}" -n 2 "$lambcast" survey --ops all_reduce --types float -b 4K -e 1M --seconds-per-size 0.02 \
  --measured step_time=800ms -o derived -- --model bert-large --gpus 2 --optimizer lamb --global-batch 64 \
  --micro-batch 16 --steps 1000 --device v100-16g >derived.out 2>&1 || fail "no cluster, and $?: $(cat derived.out)"
grep -q '^--cluster is not given; derived from this host: no GPU, 2 processes a node' derived.out ||
  fail "what was derived is not told: $(cat derived.out)"
[ -s derived/cluster.toml ] && grep -q '^\[program\]' derived/program.toml || fail "no program is written: $(cat derived.out)"

# With --profile, the spread from the ranks' profiles is kept; if a rank has no GPU, the survey continues.
"${launch[@]}" -n 2 "${survey[@]}" --profile -o profiled >profiled.out 2>&1 ||
  fail "--profile ends with $?: $(cat profiled.out)"
[ -s profiled/cluster.toml ] || fail "--profile leaves no description"
grep -q 'spread of GPUs is not known\|Equal GPUs differ' profiled.out || fail "--profile says nothing: $(cat profiled.out)"

# A survey is not overwritten by mistake, and one without time left reports it.
code=0
"${launch[@]}" -n 2 "${survey[@]}" -o mine >again 2>&1 || code=$?
[ $code = 2 ] && grep -q 'holds a survey' again || fail "a survey is overwritten ($code): $(cat again)"
code=0
"${launch[@]}" -n 2 "${survey[@]}" -o none --budget 0.000001 >none.out 2>&1 || code=$?
[ $code = 1 ] && grep -q 'larger --budget' none.out || fail "no time, and $code: $(cat none.out)"
"$lambcast" survey --cluster commodity-10gbe -o alone >alone.out 2>&1 && fail "one rank surveys"
grep -q 'start it with mpirun' alone.out || fail "one rank is not told: $(cat alone.out)"

# A question behind "--" is answered after each table; the survey ends once the answer is certain.
question=(--model bert-large --gpus 64 --optimizer onebit_lamb --global-batch 4096 --micro-batch 16 --steps 5993
  --freeze-step 1000)
"${launch[@]}" -n 2 "${survey[@]}" -o asked -- "${question[@]}" >asked.out 2>&1 || fail "a question ends with $?: $(cat asked.out)"
grep -q '^Verdict: pays' asked.out || fail "no verdict: $(cat asked.out)"
[ -s asked/verdict-before.json ] && [ -s asked/verdict.json ] || fail "no verdict is written"
[ "$(ls asked/tables)" = all_reduce-n1.csv ] || fail "a certain verdict does not end the survey: $(ls asked/tables)"
"${launch[@]}" -n 2 "${survey[@]}" -o wrong -- --modle bert-large >wrong.out 2>&1 && fail "a wrong flag is accepted"
grep -q -- '--modle' wrong.out || fail "the wrong flag is not named: $(cat wrong.out)"

# A survey that loses a rank, or is killed at any moment, keeps what was finished.
begin() {  # FOLDER: returns once two tables are finished
  "${launch[@]}" -n 2 "$lambcast" survey --cluster commodity-10gbe -b 4K -e 256K -f 1.2 --ops all_gather,all_reduce,all_to_all --types float \
    --seconds-per-size 1 -o "$1" \
    >"$1.out" 2>&1 &
  launcher=$!
  for _ in $(seq 400); do [ ! -s "$1/tables/all_reduce-n1.csv" ] || break; sleep 0.1; done
  [ -s "$1/tables/all_reduce-n1.csv" ] || fail "no second table is begun within 40 s: $(cat "$1.out")"
}
child() { pgrep -P "$1" "${@:2}"; }
kept() {  # FOLDER
  code=0
  wait "$launcher" || code=$?
  [ $code != 0 ] || fail "$1: the survey was over before it could be disturbed"
  "$lambcast" collective --cluster "$1/cluster.toml" --gpus 2 --backend mpi --op all_gather -b 16K -e 16K >forecast ||
    fail "$1: no description of what was finished: $(cat "$1.out")"
}
for moment in 0 0.3; do
  begin "lost$moment"
  sleep $moment
  kill -9 "$(child "$(child "$launcher" -f 'survey' | tail -n 1)")"
  kept "lost$moment"
  begin "killed$moment"
  sleep $moment
  kill -9 "$(child "$launcher" -f 'survey' | head -n 1)"
  kept "killed$moment"
done

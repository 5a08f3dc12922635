#!/usr/bin/env bash
# Tests a survey of 3 processes of this machine over MPI: plan, forecast, tables and a fitted description that
# forecasts. Exit code 77 (skipped) if there is no mpirun.
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
[ "$(wc -l <mine/plan.csv)" = 11 ] || fail "not 2 tables of 5 sizes are planned: $(cat mine/plan.csv)"
[ "$(wc -l <mine/forecast.csv)" = 11 ] || fail "not every planned row is forecast"
for table in all_reduce all_gather; do
  [ "$(grep -c '^[0-9]' "mine/tables/$table-n1.csv")" = 5 ] || fail "$table has not 5 rows"
done
grep -q 'Median error of the forecast' out || fail "nothing is compared: $(cat out)"
"$lambcast" collective --cluster mine/cluster.toml --gpus 3 --backend mpi -b 1M -e 1M >forecast ||
  fail "the description does not forecast"

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

#!/usr/bin/env bash
# Runs every operation of the MPI backend on 4 processes of this machine; the program itself checks the results. Exit
# code 77 (skipped) if there is no mpirun.
#
#   mpi_test.sh PROGRAM YIELD_SLEEP
set -euo pipefail
program=$1
yield_sleep=$2
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }

# On one host no launch agent is needed, so none is searched for (there may be no ssh).
launch=(mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl 'self,vader'
  --mca plm_rsh_agent /bin/false -x "LD_PRELOAD=$yield_sleep")
run() {  # RANKS FLAGS...
  "${launch[@]}" -n "$1" "$program" --backend mpi "${@:2}"
}

fail() { echo "FAILED: $1"; exit 1; }

for op in all_reduce all_gather reduce_scatter all_to_all broadcast send_recv reduce ping_pong \
  compressed_allreduce; do
  out=$(run 4 --op $op -b 1K -e 256K -f 16 -n 3 -r 1)
  grep -q '# Out of bounds values : 0 OK' <<< "$out" || fail "$op has wrong results: $out"
  case $op in
    all_reduce | all_gather | reduce_scatter | all_to_all) row=' float .* 0 .* 0$' ;;
    *) row=' float .* 0 .* N/A$' ;;
  esac
  [ "$(grep -c "$row" <<< "$out")" = 3 ] || fail "$op has not 3 checked rows: $out"
  grep -q '^# Avg bus bandwidth    : [0-9]' <<< "$out" || fail "$op has no average: $out"
done
out=$(run 4 --op compressed_allreduce -b 1K -e 256K -f 16 -n 3 --staging memcpy)
grep -q '# Out of bounds values : 0 OK' <<< "$out" || fail "staging gives wrong results: $out"

# Types that training sends. MPI adds no 16-bit numbers.
for op in all_gather all_to_all broadcast; do
  out=$(run 3 --op $op -d half -b 1K -e 64K -f 8 -n 2)
  grep -q '# Out of bounds values : 0 OK' <<< "$out" || fail "$op of half has wrong results: $out"
done
out=$(run 3 --op all_reduce -d uint8 -b 1K -e 64K -f 8 -n 2 -N 2)
[ "$(grep -c ' uint8 .* 0 .* 0$' <<< "$out")" = 6 ] || fail "two cycles of uint8 have not 6 checked rows: $out"
out=$(run 2 --op all_reduce -d half 2>&1) && fail "a sum of half is accepted"
grep -q 'MPI adds no 16-bit numbers' <<< "$out" || fail "a sum of half is refused with $out"

# Several operations and types in one launch.
tables=$(mktemp -d)
run 2 --tables "$tables" --op all_reduce,all_gather -d float,half -b 1K -e 64K -f 8 -n 2
found=$(cd "$tables/tables" && echo *)
[ "$found" = "all_gather-half-n1.csv all_gather-n1.csv all_reduce-n1.csv" ] || fail "the tables are $found"
grep -q '^# options: -d half -b 1024 -e 65536 -f 8 -n 2 -w 1 -c 1 -N 1 -m 1 -G 0 -z 0 -a 1 -r 0$' "$tables/tables/all_gather-half-n1.csv" ||
  fail "the settings are not kept: $(cat "$tables/tables/all_gather-half-n1.csv")"
for table in all_gather-n1 all_reduce-n1; do
  [ "$(grep -c '^[0-9][^,]*\(,[^,]*\)\{5\},0,[0-9][^,]*\(,[^,]*\)\{2\},0$' "$tables/tables/$table.csv")" = 3 ] ||
    fail "$table has not 3 rows out of place and in place: $(cat "$tables/tables/$table.csv")"
done
rm -r "$tables"

# With an odd number of ranks, block sizes are not powers of two.
out=$(run 3 --op compressed_allreduce -b 1K -e 64K -f 8 -n 2 --format csv --statistic median -a 3)
grep -q '^# ranks: 3$' <<< "$out" || fail "3 ranks: $out"

# Rows are written as sizes finish, so a stopped run leaves whole rows. This run would take minutes.
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
"${launch[@]}" -n 2 "$program" --backend mpi -b 1K -e 1M -f 1.01 -n 1000000 \
  --seconds-per-size 0.05 --format csv > "$rows" &
launcher=$!
for _ in $(seq 300); do
  [ "$(grep -c '^[0-9]' "$rows")" -lt 3 ] || break
  sleep 0.1
done
kill -TERM $launcher
code=0
wait $launcher || code=$?
[ $code != 0 ] || fail "the run was over before it could be stopped"
[ "$(grep -c '^[0-9]' "$rows")" -ge 3 ] || fail "no three rows within 30 s: $(cat "$rows")"
awk -F, '/^[0-9]/ && NF != 11 {exit 1}' "$rows" || fail "a row is cut off: $(cat "$rows")"
[ "$(tail -c 1 "$rows" | wc -l)" = 1 ] || fail "the last row is cut off: $(tail -n 1 "$rows")"

# The manifest exists from the first row on; if it cannot be written, all ranks end.
code=0
out=$(run 2 -b 1K -e 1K --manifest /dev/null/manifest 2>&1) || code=$?
[ $code = 2 ] || fail "an unwritable manifest exits with $code"
grep -q '/dev/null/manifest: --manifest: cannot be opened' <<< "$out" || fail "$out"

# JSON too is written row by row.
"${launch[@]}" -n 2 "$program" --backend mpi -b 1K -e 1M -f 1.01 -n 1000000 \
  --seconds-per-size 0.05 --format json > "$rows" &
launcher=$!
for _ in $(seq 300); do
  [ "$(grep -c '"size"' "$rows")" -lt 3 ] || break
  sleep 0.1
done
kill -INT $launcher
wait $launcher || true
[ "$(grep -c '"size"' "$rows")" -ge 3 ] || fail "no three rows of JSON: $(cat "$rows")"

# Help is not an error; an error common to all ranks is printed once.
run 2 --help | grep -q -- '--op all_reduce' || fail "--help shows no flags"
code=0
out=$(run 2 --op nothing 2>&1) || code=$?
[ $code = 2 ] || fail "an unknown operation exits with $code"
[ "$(grep -c 'unknown collective' <<< "$out")" = 1 ] || fail "not said once: $out"

# Flags that would have no effect are refused.
for flags in '--share-gpu yes' '-g 2' '--staging memcpy' '-m 2' '-G 1' '-z 1'; do
  code=0
  # shellcheck disable=SC2086
  out=$(run 1 --op all_reduce $flags 2>&1) || code=$?
  [ $code = 2 ] || fail "$flags exits with $code: $out"
  grep -q -- "^lambcast: ${flags% *}: " <<< "$out" || fail "$flags is refused with $out"
done

code=0
out=$(run 1 --tables "$tables/none" --steps-of 7 2>&1) || code=$?
[ $code = 2 ] && grep -q '^lambcast: --steps-of: is for NCCL' <<< "$out" || fail "--steps-of exits with $code: $out"

# The mpirun of another MPI starts each process as a world of its own, which must be an error.
code=0
out=$(PMI_RANK=0 PMI_SIZE=2 "$program" --backend mpi -b 1K -e 1K 2>&1) || code=$?
[ $code = 4 ] || fail "a world of one of two processes exits with $code: $out"
grep -q '2 processes were started, and MPI sees 1' <<< "$out" || fail "$out"

# An operation that MPI cannot do is rejected before it starts, with exit code 2.
code=0
out=$(run 1 --op ping_pong 2>&1) || code=$?
[ $code = 2 ] || fail "ping_pong on one rank exits with $code"
grep -q 'ping_pong needs at least 2 ranks' <<< "$out" || fail "$out"

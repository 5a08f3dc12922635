#!/usr/bin/env bash
# Every operation of the MPI backend on 4 processes of this machine, results checked by the
# program itself. Exit code 77 (skipped) where there is no mpirun.
#
#   mpi_test.sh PROGRAM YIELD_SLEEP
set -euo pipefail
program=$1
yield_sleep=$2
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }

# One host: no launch agent is needed, so none is looked for (there may be no ssh).
run() {  # RANKS FLAGS...
  local ranks=$1
  shift
  mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,vader \
    --mca plm_rsh_agent /bin/false -x LD_PRELOAD="$yield_sleep" -n "$ranks" "$program" "$@"
}

fail() { echo "FAILED: $1"; exit 1; }

for op in all_reduce all_gather reduce_scatter all_to_all broadcast send_recv ping_pong \
  compressed_allreduce; do
  out=$(run 4 --op $op -b 1K -e 256K -f 16 -n 3 -r 1 --staging memcpy)
  grep -q '# Out of bounds values : 0 OK' <<< "$out" || fail "$op has wrong results: $out"
  [ "$(grep -c ' float .* 0$' <<< "$out")" = 3 ] || fail "$op has not 3 checked rows: $out"
done

# An odd number of ranks, where blocks are no powers of two.
run 3 --op compressed_allreduce -b 1K -e 64K -f 8 -n 2 --format csv --statistic median -a 3 |
  grep -q '^# ranks: 3$' || fail "3 ranks"

# What MPI cannot do is refused before it starts, with exit code 2.
code=0
out=$(run 1 --op ping_pong 2>&1) || code=$?
[ $code = 2 ] || fail "ping_pong on one rank exits with $code"
grep -q 'ping_pong needs at least 2 ranks' <<< "$out" || fail "$out"

#!/usr/bin/env bash
# Runs every operation of the NCCL backend on ranks that share one GPU; the program itself checks the results. Without a
# GPU or NCCL the program must print one sentence and exit with 4; the test is then skipped (exit code 77).
#
#   nccl_test.sh PROGRAM
set -euo pipefail
program=$1
fail() { echo "FAILED: $1"; exit 1; }
# A time limit, since kernels of copies that cannot run at the same time would wait for each other forever.
run() { timeout -k 5 60 "$program" --backend nccl --share-gpu yes "$@"; }

errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
code=0
out=$(run -g 2 --op all_reduce -b 8 -e 8 -n 3 2> "$errors") || code=$?
if [ $code = 4 ]; then
  [ -z "$out" ] || fail "without a GPU it prints a table: $out"
  [ "$(wc -l < "$errors")" = 1 ] || fail "not one sentence: $(cat "$errors")"
  echo "skipped: $(cat "$errors")"
  exit 77
fi
[ $code = 0 ] || fail "two ranks on one GPU exit with $code: $(cat "$errors")"

for op in all_reduce all_gather reduce_scatter all_to_all broadcast send_recv reduce compressed_allreduce; do
  for ranks in 2 3; do
    out=$(run -g $ranks --op $op -b 24 -e 1M -f 16 -n 3 -r 1) || fail "$op on $ranks ranks: $?"
    grep -q '^# sharing: ranks share a GPU: one process' <<< "$out" || fail "$op is not labelled: $out"
    grep -q '# Out of bounds values : 0 OK' <<< "$out" || fail "$op has wrong results: $out"
  done
done

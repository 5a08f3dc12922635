#!/usr/bin/env bash
# Checks that the emulated Ethernet has the rate of real TCP, and that nothing of it remains. Exit code 77 (skipped,
# with the reason) without root, network namespaces or mpirun.
#
#   ethernet_test.sh PROGRAM YIELD_SLEEP
set -euo pipefail
program=$1
export RANK_PRELOAD=$2
ethernet=$(dirname "$(readlink -f "$0")")/emulated-ethernet
fail() { echo "FAILED: $1"; exit 1; }

reason=$("$ethernet" check 2>&1) || { echo "skipped: $reason"; exit 77; }
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }

# A ring over n hosts moves 2(n-1)/n of the size through each port. Lower bound of the time: this at 100 Mbit/s, less
# the 16 KiB burst that passes free in each message. Upper bound: three times the time at 100 Mbit/s, since the
# machine may be busy. (TCP headers leave about 95 % of the rate.)
export OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allreduce_algorithm=4
for hosts in 2 4; do
  table=$("$ethernet" with $hosts 100mbit "$program" --backend mpi --op all_reduce -b 256K -e 1M -f 4 -n 3 -a 3 \
    --statistic median --format csv 2> /dev/null) || fail "$hosts hosts: $table"
  rows=$(grep -c '^[0-9]' <<< "$table")
  [ "$rows" = 2 ] || fail "$hosts hosts: $rows rows instead of 2: $table"
  awk -F, -v n=$hosts '/^[0-9]/ {
    paid = 2 * (n - 1) * ($1 / n - 16384); ideal = paid * 8 / 100
    if ($2 < ideal || $2 > 3 * 2 * (n - 1) / n * $1 * 8 / 100) { print; bad = 1 }
  } END { exit bad }' <<< "$table" || fail "$hosts hosts: a time that 100 Mbit/s does not explain"
done

# After a kill without clean-up, its namespaces are removed when the next network comes up.
"$ethernet" with 2 100mbit sleep 60 > /dev/null 2>&1 &
victim=$!
for _ in $(seq 50); do
  ip netns list | grep -q "^lcnet-with$victim-h1" && break
  sleep 0.1
done
ip netns list | grep -q "^lcnet-with$victim-h1" || fail "the network to kill did not come up"
kill -9 $victim
wait $victim 2> /dev/null || true
name=$("$ethernet" up 2 100mbit)
ip netns list | grep -q "^lcnet-with$victim-" && fail "a killed network was not swept away"
[ "$("$ethernet" exec "$name" 1 hostname)" = "$name-h1" ] || fail "host 1 has another name"
"$ethernet" down "$name"
ip netns list | grep -q "^$name-" && fail "down left something behind"

# A shallow queue of the switch loses packets if three hosts send to one at once.
name=$(PORT_QUEUE=4kb "$ethernet" up 4 100mbit)
export OMPI_MCA_coll_tuned_alltoall_algorithm=1
"$ethernet" run "$name" "$program" --backend mpi --op all_to_all -b 1M -e 1M -n 2 -w 0 > /dev/null 2>&1 ||
  fail "an all-to-all over a shallow queue"
tc -n "$name-sw" -s qdisc show dev p0 | grep -q 'dropped [1-9]' || fail "nothing lost over a queue of 4 kB"
"$ethernet" down "$name"

# A usage error prints one sentence; the exit code is 2.
for wrong in "up 1 100mbit" "up 2 fast" "run nowhere true" "up 2"; do
  code=0
  # shellcheck disable=SC2086
  "$ethernet" $wrong > /dev/null 2>&1 || code=$?
  [ $code = 2 ] || fail "'$wrong' exits with $code"
done
code=0
PORT_QUEUE=deep "$ethernet" up 2 100mbit > /dev/null 2>&1 || code=$?
[ $code = 2 ] || fail "a PORT_QUEUE of no size exits with $code"

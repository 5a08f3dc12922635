#!/usr/bin/env bash
# A sweep on several hosts, which are network namespaces with real TCP between them. Exit code 77
# (skipped, with the reason) without root, network namespaces, mpirun or MPI in the program.
#
#   sweep_hosts_test.sh LAMBCAST ETHERNET YIELD_SLEEP
set -uo pipefail
lambcast=$(readlink -f "$1")
ethernet=$(readlink -f "$2")
RANK_PRELOAD=$(readlink -f "$3")
export RANK_PRELOAD

reason=$("$ethernet" check 2>&1) || { echo "skipped: $reason"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -e "$(dirname "$lambcast")/lambcast-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
  echo "FAILED: $*"
  exit 1
}

# 64 GPU counts x 64 sequence lengths x 11 freeze steps: many more than are written before the kill
# below
sweep=(sweep --model bert-large --cluster paper-eth40-v100 --optimizer onebit_lamb --micro-batch 16 --steps 1000
  --scan gpus=4:256:4 --scan seq_len=8:512:8 --scan 'freeze_step=0%:100%:10%' --no-report)
"$lambcast" "${sweep[@]}" --out whole >out 2>err || fail "$(cat err)"
rows() {
  local lines
  lines=$(wc -l 2>/dev/null <"$1/results.csv") || lines=0
  echo $((lines > 0 ? lines - 1 : 0))
}

"$ethernet" with 3 1gbit "$lambcast" "${sweep[@]}" --out three >out 2>err || fail "3 hosts: $(cat err)"
cmp whole/results.csv three/results.csv || fail "3 hosts write other rows"
cmp whole/manifest.json three/manifest.json || fail "3 hosts write another manifest"

# If the rank of a host is killed, the sweep ends; two hosts can continue it.
# shellcheck disable=SC2016
"$ethernet" with 3 1gbit sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec "$@"' rank \
  "$lambcast" "${sweep[@]}" --out killed >out 2>err &
network=$!
for _ in $(seq 3000); do
  [ "$(rows killed)" -gt 200 ] && break
  sleep 0.01
done
kill -9 "$(cat pid.2)" || fail "the sweep was over before it could be killed: $(cat err)"
wait $network && fail "a killed rank: exit code 0"
# Over TCP the other ranks see the connection end, and Open MPI ends them before they can print.
# Here mpirun names the rank.
grep -q 'process rank 2 .* exited on signal 9' err || fail "nobody names the rank: $(cat err)"
# stderr also contains the findings of a sweep whose last rows were in progress.
[ "$(grep '^lambcast: ' err | grep -vcE '^lambcast: (warning|note): ')" -le 1 ] || fail "said more than once: $(cat err)"
[ "$(rows killed)" -lt "$(rows whole)" ] || fail "the sweep was complete before the kill"
"$ethernet" with 2 1gbit "$lambcast" "${sweep[@]}" --resume --out killed >out 2>err || fail "--resume: $(cat err)"
cmp whole/results.csv killed/results.csv || fail "resumed on other hosts: other rows"
cmp whole/manifest.json killed/manifest.json || fail "resumed on other hosts: another manifest"
echo "$(rows whole) rows on 3 hosts, one of them killed, are those of one process"

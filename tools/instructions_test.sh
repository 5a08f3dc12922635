#!/usr/bin/env bash
# Instructions of short commands, counted by valgrind: unlike times, they are independent of the
# load of the machine. A limit is the current count plus a tenth; limits may only decrease. Skipped
# without valgrind (Debian: apt install valgrind) and in sanitized builds.
#
#   instructions_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"
if [ -n "${SANITIZED:-}" ] || ! command -v valgrind >/dev/null; then
  echo "skipped: no valgrind here, or a sanitized build"
  exit 77
fi

# at_most MILLIONS COMMAND...: checks the limit of a command.
at_most() {
  local most=$1 counted
  shift
  checks=$((checks + 1))
  valgrind --tool=callgrind --callgrind-out-file=counts "$lambcast" "$@" >out 2>err || fail "ends with $?: $*"
  counted=$(awk '/Collected/ { printf "%d", $NF / 1e5 }' err)
  [ "${counted:=0}" -gt 0 ] || fail "nothing counted: $*"
  [ "$counted" -le $((most * 10)) ] ||
    fail "$((counted / 10)).$((counted % 10)) million instructions are more than $most: $*"
  echo "$((counted / 10)).$((counted % 10)) of $most million: $*"
}

# jobs OP COUNT: prints COUNT jobs of different sizes on the same 64 nodes, with one GPU on each.
jobs() {
  local i
  for ((i = 0; i < $2; ++i)); do
    printf '[[jobs]]\nop = "%s"\nsize = "%d MB"\ngpus = 64\ngpus_per_node = 1\nfirst_gpu = %d\n' "$1" $((64 + 4 * i)) "$i"
  done
}
jobs all_reduce 8 >rings.toml
jobs all_to_all 8 >exchanges.toml
cluster=(--cluster hgx-h100-ndr --set cluster.nic.count=1 --set cluster.fabric.kind=fat-tree
  --set cluster.fabric.nodes_per_leaf=32 --set cluster.fabric.oversubscription=4)
step=(--model gpt3-175b "${cluster[@]/nic.count=1/nic.count=8}" --optimizer adamw --tp 8 --pp 16 --interleave 6
  --micro-batch 1 --grad-accum 32 --steps 10 --network flow)
onebit=(--model bert-large --cluster meta-h100-roce --optimizer onebit_lamb --micro-batch 16 --grad-accum 1 --steps 1000
  --freeze-step 100)
deep=(--model llama3-405b --cluster meta-h100-roce --gpus 1008 --optimizer adamw --tp 8 --pp 126 --micro-batch 1
  --grad-accum 65536 --steps 10)

at_most 4 --version
at_most 12 simulate --model bert-large --cluster commodity-10gbe --gpus 8 --optimizer lamb --micro-batch 4 --steps 10
at_most 35 collective --jobs rings.toml "${cluster[@]}"
at_most 88 collective --jobs exchanges.toml "${cluster[@]}"
at_most 346 simulate "${step[@]}" --gpus 2048
at_most 208 simulate "${onebit[@]}" --gpus 8192
at_most 333 simulate "${onebit[@]}" --gpus 1047552
at_most 967 simulate "${onebit[@]}" --gpus 1047552 --network flow
at_most 579 simulate "${deep[@]}"
summary

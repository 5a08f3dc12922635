#!/usr/bin/env bash
# calibrate on measured steps and traces of jobs, on the command line.
#
#   calibrate_cli_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

# The parts of a step's time are printed even if the step sets no level.
event() { printf ',{"ph":"X","cat":"%s","name":"%s","ts":%s,"dur":%s}\n' "$@"; }
{
  printf '{"deviceProperties":[{"name":"NVIDIA A100-SXM4-40GB"}],"traceEvents":[{}\n'
  for step in 0 1 2; do
    event user_annotation "ProfilerStep#$step" $((step * 700000)) 700000
    event kernel ampere_gemm $((step * 700000)) 50000
    event kernel ncclDevKernel_AllReduce $((step * 700000 + 40000)) 650000
  done
  echo ']}'
} >trace.json
# The printed command repeats the run that set the level; the replaced level of another program is
# named.
measured=("$lambcast" calibrate --model bert-large --gpus 8 --optimizer adam --micro-batch 64 --grad-accum 1)
"${measured[@]}" --cluster hgx-h100-ndr --framework torchtitan --zero-stage 3 --fusion compiled --set model.ffn=8192 \
  --measured step_time=75ms -o level.toml >out || fail "no level: $(cat out)"
next=$(sed -n 's/^  lambcast simulate --cluster \.\{0,1\}\/\{0,1\}level.toml //p' out)
for words in '--fusion compiled' '--set model.ffn=8192' '--framework torchtitan' '--gpus 8'; do
  [[ "$next" == *"$words"* ]] || fail "no $words in the command: $next"
done
eval "expect 0 'compute fitted here' \"\$lambcast\" simulate --cluster level.toml $next"
expect 0 'level.toml holds the level of torchtitan in half format; that of deepspeed in' "${measured[@]}" \
  --cluster level.toml --framework deepspeed --measured step_time=75ms -o other.toml
traced=("$lambcast" calibrate --cluster commodity-10gbe --model bert-large --gpus 16 --optimizer adam --micro-batch 4
  --grad-accum 1 --job-trace trace.json)
got=0
"${traced[@]}" -o traced.toml >out 2>err || got=$?
[ "$got" -eq 2 ] && grep -q 'so they do not set it' err || fail "a level from a step of communication: $got $(cat err)"
grep -qE '^exposed communication +640.00 +[1-9]' out && grep -q '^Largest disagreement: ' out ||
  fail "no breakdown of a step that waits for its network: $(cat out)"
[ ! -e traced.toml ] || fail "a description of a step that sets no level"
expect 2 'is a trace of NVIDIA A100-SXM4-40GB, and the cluster has v100-32g' "${traced[@]/commodity-10gbe/azure-ndv2}" -o traced.toml

# Lines of NCCL_DEBUG=INFO in a table set keys of NCCL, and are compared with the NICs of the cluster.
cat >logged.txt <<'LOG'
NCCL version 2.21.5+cuda12.4
n1:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
n1:7:7 [0] NCCL INFO Using network IB
n1:7:7 [0] NCCL INFO NCCL_PROTO set by environment to Simple
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
    16777216       4194304     float     sum      -1   1000.0   16.78   31.46      0
    67108864      16777216     float     sum      -1   4000.0   16.78   31.46      0
LOG
logged=("$lambcast" calibrate --cluster hgx-h100-ndr --op all_reduce --ranks 16 --nodes 2 --force -o logged.toml)
said() {  # PATTERN COMMAND...: the command succeeds, and stderr matches
  local pattern=$1
  shift
  "$@" >out 2>err || fail "$*: $(cat err)"
  grep -qE -- "$pattern" err || fail "no '$pattern' from: $*"$'\n'"$(cat err)"
}
said 'logged.txt: written to the description .*: nccl.protocols = Simple, nccl.version = 2.21' "${logged[@]}" logged.txt
said 'warning: its lines of NCCL_DEBUG=INFO differ from hgx-h100-ndr.toml: nic.count = 2' "${logged[@]}" logged.txt
grep -qx 'version = "2.21"' logged.toml && grep -qFx 'protocols = ["Simple"]' logged.toml || fail "no key of the log: $(cat logged.toml)"
sed -n '/NCCL/p' logged.txt >info.log
sed -i '/NCCL/d' logged.txt
said 'info.log: written to the description' "${logged[@]}" --topology info.log logged.txt
expect 0 'info.log is NCCL.s log of NCCL_DEBUG=INFO: .*nccl.protocols = Simple' "$lambcast" simulate --model bert-large \
  --cluster hgx-h100-ndr --gpus 16 --optimizer adam --micro-batch 8 --steps 100 --topology info.log --format json
expect 2 'logged.txt is no log of NCCL_DEBUG=INFO' "${logged[@]}" --topology logged.txt logged.txt

summary

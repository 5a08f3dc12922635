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

summary

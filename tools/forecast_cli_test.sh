#!/usr/bin/env bash
# simulate and advise on the command line: runs that do not fit, runs without a verdict, uses of
# stdin and stdout, impossible values, and the end of a long run.
#
#   forecast_cli_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

bare=(--model bert-large --nodes 4 --optimizer onebit_lamb --micro-batch 16 --freeze-step 20%)
run=("${bare[@]}" --cluster commodity-10gbe)

# A recipe without --steps is judged over its published run length; one that never compresses has no
# verdict.
cat >lamb.json <<'END'
{ "train_batch_size": 65536, "train_micro_batch_size_per_gpu": 64,
  "optimizer": { "type": "OneBitLamb", "params": { "freeze_step": 1000 } }, "fp16": { "enabled": true } }
END
recipe=(--config lamb.json --model bert-large --cluster commodity-10gbe --nodes 16)
expect 0 '^Pays: onebit_lamb makes the run ' "$lambcast" advise "${recipe[@]}"
grep -q 'note: --steps not given; assumed: 5993 optimizer steps' out || fail "no word of the run's length"
grep -q '^With the fused kernels that ship here' out || fail "no word of the fused kernels"
expect 0 '^Not judged: only 0.1 % of the 1000 steps compress' "$lambcast" advise "${recipe[@]}" --steps 1000
grep -qE 'NIC bandwidth|USD|compression costs' out && fail "a sentence of a run that is not judged: $(cat out)"

# A switch may be followed by its value; any other word after it is not its value.
layout=(--model gpt2 --cluster dgx-a100-80g --gpus 8 --framework megatron --tp 2 --micro-batch 1 --optimizer adamw --steps 10 --format csv)
expect 0 'sequence_parallel=true' "$lambcast" simulate "${layout[@]}" --sequence-parallel
expect 0 'sequence_parallel=true' "$lambcast" simulate --sequence-parallel true "${layout[@]}"
expect 0 'sequence_parallel=false' "$lambcast" simulate --sequence-parallel false "${layout[@]}"
expect 0 'dgx-a100-80g' "$lambcast" compare --sequence-parallel dgx-a100-80g hgx-h100-ndr --model gpt2 --gpus 8 \
  --framework megatron --tp 2 --micro-batch 1 --optimizer adamw --steps 10
expect 2 "unknown value 'True', did you mean 'true'" "$lambcast" simulate "${layout[@]}" --sequence-parallel True
expect 2 '' "$lambcast" simulate "${layout[@]}" --sequence-parallel=maybe
grep -q "unknown value 'maybe' (allowed: false, true)" err || fail "a value that a switch has not: $(cat err)"
expect 2 '' "$lambcast" simulate "${layout[@]}" --sequence-parallel maybe

# --strict
large=(--model bert-large --cluster paper-eth40-v100 --gpus 8 --optimizer lamb --micro-batch 512)
expect 0 'DOES NOT FIT' "$lambcast" simulate "${large[@]}"
fits=$(sed -n 's/.*what fits: \(--micro-batch [0-9]* --grad-accum [0-9]*\).*/\1/p' out)
[ -n "$fits" ] || fail "no word of what fits: $(tail -2 out)"
expect 3 'DOES NOT FIT' "$lambcast" simulate "${large[@]}" --strict
grep -q '^lambcast: --strict: the run does not fit in memory$' err || fail "--strict: $(cat err)"
expect 3 '^uniform step' "$lambcast" simulate "${large[@]}" --steps 10 --strict --explain prices
expect 3 '^Does not fit with a micro batch of [0-9]+.*: onebit_lamb needs ' "$lambcast" advise "${large[@]}" --strict

# Advice for several sites is a table only; the study of published runs takes no flag.
sites=(--cluster two-data-centres --model bert-large --optimizer adam --micro-batch 16 --global-batch 1024)
expect 0 '^Streaming|^Decoupled|^SparseLoCo|^DiLoCo' "$lambcast" advise "${sites[@]}"
expect 2 'lambcast sites has JSON and CSV' "$lambcast" advise "${sites[@]}" --format json
expect 2 'lambcast sites has JSON and CSV' "$lambcast" advise "${sites[@]}" --export advice.json
expect 2 '^lambcast: --every: --study forecasts published runs' "$lambcast" sites --every 10 --study
expect 2 '^lambcast: --hosts: each site states its own' "$lambcast" sites "${sites[@]}" --hosts 'n[1-8]'
# The flags that are proposed to make a run fit do so.
# shellcheck disable=SC2086
expect 0 'memory: ' "$lambcast" simulate "${large[@]:0:8}" $fits --strict

# stdin and stdout
piped() { # PATTERN FILE COMMAND...
  local pattern=$1 file=$2
  shift 2
  expect 0 "$pattern" bash -c 'file=$1; shift; "$@" <"$file"' - "$file" "$@"
}
"$lambcast" presets show commodity-25gbe >mine.toml
piped 'onebit_lamb on commodity-10gbe' lamb.json "$lambcast" simulate "${recipe[@]:2}" --config -
piped '^bert-large,commodity-25gbe,onebit_lamb,' mine.toml "$lambcast" advise "${bare[@]}" --cluster - --format csv
piped '^(Pays|Does not pay|No difference|Not certain)' mine.toml "$lambcast" advise "${bare[@]}" --cluster -
piped '"cluster_hash": "fnv1a64:' mine.toml "$lambcast" simulate "${bare[@]}" --cluster - --format json
expect 2 '--cluster: - is stdin, which --config reads already' \
  "$lambcast" simulate "${bare[@]}" --config - --cluster -
for command in simulate advise; do
  expect 0 '^\{"displayTimeUnit":"ms","traceEvents":' "$lambcast" "$command" "${run[@]}" --trace -
  [ "$(wc -l <out)" -eq 1 ] || fail "$command --trace - prints more than the trace"
  expect 2 '--trace: - is stdout, which --format json already uses' \
    "$lambcast" "$command" "${run[@]}" --trace - --format json
done

# Impossible values
while IFS='|' read -r key value allowed; do
  expect 2 "^lambcast: --set cluster.$key: .*\(allowed: $allowed\)" \
    "$lambcast" simulate "${run[@]}" --set "cluster.$key=$value"
done <<'END'
stack.compute_scale|1e-300|0.01 to 100
host_copy.pageable_to_host|99999 TB/s|1 kB/s to 100 TB/s
usd_per_gpu_hour|1e308|0 to 10000
END
expect 2 '--set cluster.fabric.kind: fabric.nodes_per_leaf: is missing' \
  "$lambcast" simulate "${run[@]}" --set cluster.fabric.kind=fat-tree
sed 's/^bandwidth = .*/bandwidth = "99 Gbit\/s"/' mine.toml >above.toml
expect 2 'above.toml:[0-9]+: nic.bandwidth: 99 Gbit/s pass through a NIC of 25 Gbit/s' \
  "$lambcast" simulate "${bare[@]}" --cluster ./above.toml
device='[device]\nname = "bare"\nmemory_capacity = "80 GB"\nmemory_bandwidth = "2 TB/s"\ncopy_bandwidth = "1.8 TB/s"\n'
while IFS='|' read -r line place; do
  printf "$device%s\n" "$line" >bare.toml
  expect 2 "^lambcast: bare.toml:6: device.$place" "$lambcast" simulate "${run[@]}" --device bare.toml
done <<'END'
matrix_efficiency = -0.5|matrix_efficiency: -0.5 is out of range \(allowed: 0.001 to 1\)
matrix_efficiency = 50|matrix_efficiency: 50 is out of range
forward_share = 0|forward_share: 0 is out of range \(allowed: 0.01 to 0.99\)
pinned_d2h = "99999 TB/s"|pinned_d2h: 99999 TB/s is out of range \(allowed: 1 kB/s to 100 TB/s\)
END

# DeepSpeed files
ds() { # FILE MEMBERS
  printf '{ "train_micro_batch_size_per_gpu": 4,\n%s }\n' "$2" >"$1"
}
ds tp.json '"optimizer": { "type": "AdamW" }, "tensor_parallel": { "autotp_size": 4 }'
expect 0 'tensor 4 x ' \
  "$lambcast" simulate --config tp.json --model llama2-7b --cluster dgx-a100-80g --gpus 8 --grad-accum 1
expect 0 'tensor 2 x ' \
  "$lambcast" simulate --config tp.json --model llama2-7b --cluster dgx-a100-80g --gpus 8 --grad-accum 1 --tp 2
ds pipe.json '"optimizer": { "type": "AdamW" }, "pipeline": { "activation_checkpoint_interval": 2 }'
expect 2 'pipe.json:2: pipeline.activation_checkpoint_interval: recomputing several layers .*give --recompute' \
  "$lambcast" simulate --config pipe.json --model llama2-7b --cluster dgx-a100-80g --gpus 8
ds auto.json '"optimizer": { "type": "AdamW" }, "bf16": { "enabled": "auto" }'
expect 0 'warning: auto.json:2: bf16.enabled: "auto" is filled in .*: computed in bf16; try: --precision' \
  "$lambcast" simulate --config auto.json --model bert-large --cluster dgx-a100-80g --gpus 8
ds clip.json '"optimizer": { "type": "ZeroOneAdam", "params": { "var_freeze_step": 2,
  "local_step_scaler": 1, "local_step_clipper": 9223372036854775807 } }, "fp16": { "enabled": true }'
expect 0 'zero_one_adam' "$lambcast" simulate --config clip.json --model bert-large \
  --cluster dgx-a100-80g --gpus 8 --steps 200
expect 2 'Gradient accumulation steps: 0 .*a multiple of 128 = micro batch 16 . 8 GPUs' \
  "$lambcast" simulate --model bert-large --cluster dgx-a100-80g --gpus 8 --optimizer lamb \
  --micro-batch 16 --global-batch 64

expect 2 '[-][-]explain: replaces the forecast and is printed as text only' \
  "$lambcast" simulate "${recipe[@]}" --explain stats --export plan.json

# Byte counts use 64-bit integers.
exchanged=(--model bert-large --cluster commodity-25gbe --gpus 32 --optimizer lamb --micro-batch 16 --grad-accum 1 --steps 1000)
for said in 'fp8:2\.00x fewer bytes' 'topk:100%:64\.00x the bytes' 'localsgd:2000:hardly any bytes'; do
  expect 0 "as fast, ${said##*:}: [a-z ]+(, but its ranks never meet: .*)?\$" "$lambcast" simulate "${exchanged[@]}" --exchange "${said%:*}"
done

# Bytes that are not UTF-8 are replaced if the format does not allow them.
cp lamb.json $'caf\xe9.json'
for command in simulate advise; do
  expect 0 'schema_version' "$lambcast" "$command" "${recipe[@]:2}" --config $'caf\xe9.json' --format json
done

# A long simulation prints its progress, and a signal ends it at once. The FIFO on stdin, which
# never gets data, stands for long work.
mkfifo never
exec 3<>never
long=(simulate "${recipe[@]:2}" --config -)
set -m  # otherwise the shell makes its children ignore SIGINT
for signal in INT:130 TERM:143; do
  checks=$((checks + 1))
  "$lambcast" "${long[@]}" >out 2>err <never &
  child=$!
  for _ in $(seq 300); do
    grep -qE '^lambcast: simulating, [0-9]+ s$' err && break
    sleep 0.1
  done
  grep -qE '^lambcast: simulating, [0-9]+ s$' err || fail "no word of a long simulation: $(cat err)"
  kill -s "${signal%:*}" "$child" || fail "over before SIG${signal%:*}"
  got=0
  wait "$child" || got=$?
  [ "$got" -eq "${signal#*:}" ] || fail "exit code $got after SIG${signal%:*}"
  [ -s out ] && fail "a stopped forecast prints one"
done

summary

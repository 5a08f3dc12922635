#!/usr/bin/env bash
# The twelve most common questions of users: at most two commands each, with an answer that begins
# with words.
#
#   tasks_test.sh LAMBCAST SOURCES
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"
sources=$(readlink -f "$2")

cat >ds.json <<'END'
{
  "train_batch_size": 8192,
  "train_micro_batch_size_per_gpu": 32,
  "steps_per_print": 100,
  "optimizer": {
    "type": "OneBitLamb",
    "params": {"lr": 11e-3, "max_coeff": 0.3, "min_coeff": 0.01, "freeze_step": 1000, "comm_backend_name": "nccl"}
  },
  "gradient_clipping": 1.0,
  "fp16": {"enabled": true, "loss_scale": 0}
}
END

# 1. 16 nodes of 8 A100 with one 100 GbE RoCE NIC and this DeepSpeed JSON: does it pay, and at which
# batch?
roce=(--cluster internevo-a100 --set cluster.nic.count=1 --nodes 16 --model bert-large)
expect 0 '^(Pays|Does not pay|No difference|Not certain): onebit_lamb .* \([0-9.]+ to [0-9.]+x?\)' "$lambcast" advise --config ds.json "${roce[@]}"
head -1 out | grep -qE '^(Pays|Does not pay|No difference|Not certain): ' || fail '1: no verdict first'
expect 0 '^Does onebit_lamb pay, by global_batch, in runs of 5993 steps \(assumed\)\? (pays|does not pay|no difference|not certain) ' "$lambcast" advise --config ds.json "${roce[@]}" \
  --scan global_batch=4096..65536

# 2. Which NIC upgrade pays, in hours and dollars?
expect 0 '^Fastest by cluster.nic.bandwidth: [0-9.]+Gbit/s, .* a run' "$lambcast" sweep --model bert-large --cluster commodity-10gbe \
  --gpus 32 --optimizer lamb --global-batch 16384 --micro-batch 64 --steps 5993 --set cluster.usd_per_gpu_hour=1.5 \
  --list cluster.nic.bandwidth=9.4Gbit/s,23Gbit/s,94Gbit/s,100Gbit/s
grep -qE '^9.4Gbit/s +[0-9.]+ (h|min) .* [0-9]+ +[0-9.]+ GB' out || fail "2: no hours and dollars: $(cat out)"
grep -qE '^Cheapest: cluster.nic.bandwidth=[0-9.]+Gbit/s, [0-9.]+ USD a run \([0-9.]+ to [0-9.]+\)' out || fail "2: nothing is cheapest: $(cat out)"
grep -qE '^note: 3 of 4 points, first of cluster.nic.bandwidth=23Gbit/s: .* them a NIC beyond [0-9.]+ Gbit/s is no faster.* \[stream-limit\]$' out ||
  fail "2: not why faster ones do nothing: $(cat out)"

# 3. Which freeze_step, and what does each share cost?
expect 0 '^Fastest by freeze_step: 10%, ' "$lambcast" sweep --model bert-large --cluster paper-eth40-v100 --gpus 64 \
  --optimizer onebit_lamb --global-batch 65536 --micro-batch 16 --steps 5993 --list freeze_step=5%,10%,16.7%,25%,40%
expect 0 '^run_time is at most 12 h up to freeze_step [0-9]+ \(' "$lambcast" solve freeze_step --for run_time=12h --model bert-large \
  --cluster paper-eth40-v100 --gpus 64 --optimizer onebit_lamb --global-batch 65536 --micro-batch 16 --steps 5993

# 4. From my nccl-tests log to a cluster to a forecast.
log=$sources/validate/replay/collectives/allreduce_h100_2n16r_ibndr3200_nccltests309d.csv
expect 0 'mine.toml' "$lambcast" calibrate --cluster hgx-h100-ndr -o mine.toml "$log"
expect 0 'communication calibrated|calibrated' "$lambcast" simulate --cluster mine.toml --model bert-large --gpus 32 --optimizer lamb \
  --global-batch 16384 --micro-batch 64 --steps 5993

# 5. GPT-2 XL and Llama 7B with ZeRO-2 on 64 H100: tokens/s, MFU, memory; ZeRO or 1-bit?
for model in gpt2-xl llama2-7b; do
  h100=(--model "$model" --cluster hgx-h100-ndr --gpus 64 --zero-stage 2 --micro-batch 2 --grad-accum 4 --steps 10000)
  expect 0 '^tokens: [0-9,.]+ a second \([0-9,.]+ to [0-9,.]+\), [0-9.]+ TFLOP/s a GPU \([0-9.]+ to [0-9.]+\), MFU [0-9.]+ % \([0-9.]+ to [0-9.]+\); a billion take [0-9.]+ (s|min|h) \(' "$lambcast" simulate "${h100[@]}" \
    --optimizer adamw --precision bf16
  grep -qE '^memory: [0-9.]+ GB \([0-9.]+ GB to [0-9.]+ GB\) of 85.9 GB a GPU' out || fail "5: no memory of $model"
  [ "$(grep -m1 -oE '^(run|stage)' out)" = run ] || fail "5: a table before the answer"
  # Without ZeRO, no advice about ZeRO remains.
  expect 0 '(onebit_adam without ZeRO .* adam with ZeRO stage 2|adam with ZeRO stage 2\. .*onebit_adam without ZeRO)' "$lambcast" advise "${h100[@]}" --optimizer adam --offload-optimizer cpu
  expect 0 'onebit_adam without ZeRO .* adam with ZeRO stage 1' "$lambcast" advise --model bert-large --cluster dgx-a100-80g --gpus 16 \
    --optimizer adam --plugin low_level_zero --micro-batch 16 --grad-accum 1 --steps 1000
  expect 0 '^((Turn ZeRO off|Take adam): adamw? without ZeRO .* adamw with ZeRO stage 2. Compression on top \(onebit_adam without ZeRO\)|(Pays|Does not pay|No difference|Not certain|Does not fit with a micro batch of 2): onebit_adam without ZeRO .* adamw? with ZeRO stage 2)' "$lambcast" advise "${h100[@]}" \
    --optimizer adamw --precision fp16
done

# 6. 70B with tensor 8 x pipeline 4.
expect 0 '^tensor 8 x context 1 x data 2 x pipeline 4' "$lambcast" simulate --model llama2-70b --cluster hgx-h100-ndr --gpus 64 \
  --tp 8 --pp 4 --framework megatron --precision bf16 --global-batch 256 --micro-batch 1 --optimizer adamw --steps 1000
grep -q '^tokens: ' out || fail '6: no tokens'
expect 0 '^(Pays|Does not pay|No difference|Not certain): onebit_adam' "$lambcast" advise --model gpt2-xl --cluster commodity-25gbe --gpus 32 --pp 4 \
  --grad-accum 16 --micro-batch 2 --optimizer onebit_adam --steps 1000 --freeze-step 15%

# 7. A mixture of experts with expert parallelism.
expect 0 'MFU' "$lambcast" simulate --model mixtral-8x7b --cluster hgx-h100-ndr --gpus 64 --ep 8 --pp 2 --framework megatron \
  --zero-stage 1 --precision bf16 --seq-len 4096 --global-batch 256 --micro-batch 1 --optimizer adamw --steps 100

# 8. Dollars and hours on any cluster, per billion tokens.
expect 0 'a billion take [0-9.]+ (s|min|h) \([0-9.]+ to [0-9.]+ (s|min|h)\) and [0-9.]+ USD \([0-9.]+ to [0-9.]+\)' "$lambcast" simulate --model gpt2-xl --cluster jean-zay-a100 --gpus 64 \
  --zero-stage 1 --optimizer adamw --precision bf16 --micro-batch 4 --grad-accum 4 --steps 10000 --set cluster.usd_per_gpu_hour=2

# 9. What limits my run: the parts, the timeline.
expect 0 '^Against a step of lamb, .* wire .* compression .* optimizer' "$lambcast" advise --model bert-large --cluster commodity-10gbe \
  --gpus 32 --optimizer onebit_lamb --global-batch 4096 --micro-batch 16 --steps 5993 --freeze-step 1000 --trace step.json
grep -q '"traceEvents"' step.json || fail '9: no trace'

# 10. Which of three clusters is fastest, which cheapest?
expect 0 '^Fastest: .* a run' "$lambcast" compare dgx-a100-80g hgx-h100-ndr aws-p4d --model bert-large --gpus 64 --optimizer lamb \
  --global-batch 65536 --micro-batch 16 --steps 5993
grep -q '^Cheapest: ' out || fail '10: nothing is the cheapest'

# 11. Which number matters most?
expect 0 'moves it most: 10 % more of it makes the run' "$lambcast" sensitivity --model bert-large --cluster commodity-10gbe --gpus 32 \
  --optimizer onebit_lamb --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000
grep -qE '^To measure first: .*lambcast (measure|profile).* It makes [0-9]+ % of the interval of the speed-up' out ||
  fail "11: nothing to measure: $(cat out)"

# 12. results.csv in pandas and gnuplot without reading the manual.
expect 0 'points' "$lambcast" sweep bert_large --out results --no-report --list optimizer=onebit_lamb
expect 0 '^  speedup_vs_baseline +[^ ]' "$lambcast" help columns
expect 0 'results/parts.csv' "$lambcast" report results --parts
if python3 -c 'import csv' 2>/dev/null; then
  python3 - <<'END' || fail '12: python reads other rows'
import csv
rows = [row for row in csv.DictReader(open("results/results.csv")) if row["status"] == "ok"]
best = max(rows, key=lambda row: float(row["speedup_vs_baseline"]))
assert float(best["speedup_low"]) <= float(best["speedup_vs_baseline"]) <= float(best["speedup_high"])
assert len(rows) > 100
# A pivot table: the parts of a point's mean step add up to the step.
pivot = {}
for part in csv.DictReader(open("results/parts.csv")):
    at = pivot.setdefault((part["row"], part["stage"]), {})
    at[part["part"]] = float(part["time_us"])
step = float(next(csv.DictReader(open("results/results.csv")))["compression_step_time_us"])
assert abs(sum(pivot["1", "compression"].values()) - step) < 1e-6 * step
END
fi

summary

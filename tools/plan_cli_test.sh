#!/usr/bin/env bash
# plan on the command line, models and runs described by files of other programs, and runs of
# several phases.
#
#   plan_cli_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

plan=(plan --model gpt2-xl --cluster dgx-a100-80g --gpus 16 --framework megatron --precision bf16)
batch=(--global-batch 64)

expect 0 '^ *1 +[0-9]+ +[-y] +[0-9]+ +[0-9]+ ' "$lambcast" "${plan[@]}" "${batch[@]}" --explain layouts
expect 0 '^ +[0-9]+ layout-heads +tp: 25 heads are not divisible by tp' "$lambcast" "${plan[@]}" "${batch[@]}" --explain refused
expect 0 '^Fastest' "$lambcast" "${plan[@]}" "${batch[@]}"
[ "$(fold -sw 80 out | wc -l)" -le 32 ] || fail "more than a screen: $(cat out)"
grep -q '^best with onebit_adam: ' out || fail "no word of compression: $(cat out)"
# The first layout takes the same time when it is simulated separately.
step=$(sed -nE 's/^Fastest.*: ([0-9]+\.[0-9]{2}) ms a step.*/\1/p' out)
alone=$(sed -n 's/^The first one alone: lambcast //p' out)
# shellcheck disable=SC2086
expect 0 "^uniform +1000 +$step " "$lambcast" $alone

for jobs in 1 3; do
  expect 0 '"layouts": \[' "$lambcast" "${plan[@]}" "${batch[@]}" --format json --jobs $jobs
  mv out "jobs$jobs"
done
cmp jobs1 jobs3 || fail "threads change the answer"
expect 0 '^rank,tp,cp,ep,pp,dp,' "$lambcast" "${plan[@]}" "${batch[@]}" --format csv --best 3
[ "$(wc -l <out)" -eq 4 ] || fail "not three layouts: $(cat out)"
expect 0 '^1,1,1,1,4,' "$lambcast" "${plan[@]}" "${batch[@]}" --format csv --pp 4
expect 0 '^2,1,1,1,4,' "$lambcast" "${plan[@]}" "${batch[@]}" --format csv --pp 4 --tp 1 --cp 1 --every-setting
expect 2 '--global-batch: is missing' "$lambcast" "${plan[@]}"
expect 2 "unknown value 'ful', did you mean 'full'" "$lambcast" "${plan[@]}" "${batch[@]}" --recompute ful
expect 2 '--best' "$lambcast" "${plan[@]}" "${batch[@]}" --best 0
expect 2 '--tp: no layout of 8 GPUs has tp 3' "$lambcast" plan --model gpt2 --cluster dgx-a100-80g --gpus 8 --global-batch 8 \
  --framework torchtitan --tp 3
expect 3 '^no layout runs$' "$lambcast" plan --model gpt3-175b --cluster dgx-a100-80g --gpus 8 --global-batch 8
grep -q '^lambcast: none of [0-9]* layouts runs$' err || fail "no word of it: $(cat err)"

# 70B on 128 GPUs with 100 Gbit/s Ethernet, with and without compression, as in the manual
asked=(plan --model llama2-70b --cluster commodity-100gbe --gpus 128 --global-batch 512 --framework megatron --precision bf16)
expect 0 '^Fastest of .*: cp 2, pp 32 .*, dp 2, .* recompute full: 79[0-9]{3}\.' "$lambcast" "${asked[@]}"
grep -q '^no layout runs with onebit_adam: ' out || fail "not as the manual has it: $(cat out)"
expect 0 '^ 1 +bubble .* no \(memory\) +1\.01x 1\.00 to 1\.[0-9]*$' "$lambcast" "${asked[@]}" --explain layouts
expect 0 ': tp 2 and sequence, cp 2, pp 16 in 5 chunks, dp 2, .* 64[0-9]{3}\.' "$lambcast" "${asked[@]}" --device a100-80g
grep -q '^best with onebit_adam: .* 0\.79x (0\.77 to 0\.83x) as fast as the best with adam' out || fail "not as the manual has it: $(cat out)"

# A run without a layout that only a layout makes fit
expect 0 'it fits with --zero-stage 3 --recompute full \(.*, or --tp 8 ' "$lambcast" simulate --model gpt3-175b \
  --cluster dgx-a100-80g --gpus 64 --optimizer adam --precision bf16 --global-batch 128 --micro-batch 1 --steps 100

# Models and runs described by other programs' files
cat >gpt2.json <<'END'
{ "model_type": "gpt2", "n_embd": 1024, "n_head": 16, "n_layer": 24, "n_positions": 1024, "vocab_size": 50257 }
END
on=(--cluster dgx-a100-80g --gpus 16)
expect 0 '^gpt2 with adam on dgx-a100-80g' "$lambcast" simulate --model gpt2.json "${on[@]}" --optimizer adam \
  --micro-batch 4 --global-batch 64
grep -q 'assumed: 1024 tokens' out || fail "no word of the length: $(cat out)"
sed 's/n_layer/n_layers/' gpt2.json >slip.json
expect 2 "slip.json:1: n_layers: unknown key, did you mean 'n_layer'" "$lambcast" simulate --model slip.json \
  "${on[@]}" --optimizer adam --micro-batch 4 --global-batch 64
cat >gemma2.json <<'END'
{ "model_type": "gemma2", "num_hidden_layers": 26, "hidden_size": 2304, "num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096,
  "attn_logit_softcapping": 50.0 }
END
expect 0 '^gemma2 with adam on dgx-a100-80g' "$lambcast" simulate --model gemma2.json "${on[@]}" --optimizer adam \
  --micro-batch 1 --global-batch 64
grep -q 'gemma2.json:3: attn_logit_softcapping: not modelled' out || fail "no word of what is left out: $(cat out)"
sed 's/gpt2/mamba/' gpt2.json >other.json
expect 2 "other.json:1: model_type: mamba with layers of a state-space model" "$lambcast" simulate --model other.json \
  "${on[@]}" --optimizer adam --micro-batch 4 --global-batch 64
cat >args.sh <<'END'
ARGS=(
  --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --vocab-size 50257
  --seq-length 1024 --max-position-embeddings 1024 --bf16
  --micro-batch-size 2 --global-batch-size 64  # of one step
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4
)
END
expect 0 '^tensor 2 x context 1 x data 2 x pipeline 4' "$lambcast" simulate --megatron-args args.sh "${on[@]}"
expect 0 '^tensor 2 x context 1 x data 4 x pipeline 2' "$lambcast" simulate --megatron-args args.sh "${on[@]}" --pp 2
expect 0 '^megatron-gpt with adam' "$lambcast" plan --megatron-args args.sh "${on[@]}"
sed 's/num-layers/num-layer/' args.sh >slip.sh
expect 2 "slip.sh:2: --num-layer: unknown argument, did you mean '--num-layers'" \
  "$lambcast" simulate --megatron-args slip.sh "${on[@]}"
cat >job.toml <<'END'
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
[parallelism]
tensor_parallel_degree = 2
END
expect 0 '^llama3-8b with adamw' "$lambcast" simulate --torchtitan job.toml "${on[@]}"
sed 's/tensor_parallel/tensor_paralel/' job.toml >slip.toml
expect 2 "slip.toml:8: parallelism.tensor_paralel_degree: unknown key, did you mean 'tensor_parallel_degree'" \
  "$lambcast" simulate --torchtitan slip.toml "${on[@]}"

# The recipe of BERT's two phases as one run
recipe=(simulate --model bert-large --cluster paper-edr100-v100 --gpus 128 --optimizer onebit_lamb --global-batch 65536
  --micro-batch 64 --seq-len 128 --steps 5993 --freeze-step 1000)
second='seq_len=512 global_batch=32768 micro_batch=16 steps=782 freeze_step=6100'
expect 0 '^ +2 +512 +32768  warmup +106 ' "$lambcast" "${recipe[@]}" --then "$second"
grep -q '^run: 6775 steps in ' out || fail "no sum: $(cat out)"
expect 0 '"failures_s": ' "$lambcast" "${recipe[@]}" --then "$second" --mtbf "12 h" --checkpoint-every 500 --format json
expect 2 "--then: '512' is not KEY=VALUE" "$lambcast" "${recipe[@]}" --then 512
expect 2 "a checkpoint of bert-large does not fit gpt2" "$lambcast" "${recipe[@]}" --then "model=gpt2"
expect 2 '--checkpoint-every: is missing' "$lambcast" "${recipe[@]}" --mtbf "12 h"
expect 2 '--mtbf' "$lambcast" "${recipe[@]}" --mtbf 12 --checkpoint-every 500
expect 2 'has no effect without --mtbf or a --checkpoint-time' "$lambcast" "${recipe[@]}" --checkpoint-every 500
expect 2 'has no effect without an --evaluation-time' "$lambcast" "${recipe[@]}" --evaluate-every 500
expect 0 '"startup_s": 90' "$lambcast" "${recipe[@]}" --startup-time "90 s" --evaluate-every 500 --evaluation-time "6 s" --format json
expect 2 'the run never ends' "$lambcast" "${recipe[@]}" --mtbf "1 s" --checkpoint-every 500
expect 2 '--versions: the nccl backend needs PyTorch 1.8' "$lambcast" "${recipe[@]}" --backend nccl --versions torch=1.7

summary

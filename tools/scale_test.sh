#!/usr/bin/env bash
# A million GPUs, and models of thousands of layers: each question is answered in little memory, or
# rejected in one line with the reason. For sweeps, report_test.sh reports 1,200,000 rows in 512
# MiB, and sweep_stop_test.sh plans ten million in 500 MB.
#
#   scale_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"
# A sanitized program needs terabytes of addresses for its shadow memory.
[ -n "${SANITIZED:-}" ] || ulimit -v 1000000

bert=(--model bert-large --cluster commodity-10gbe --gpus 1000000 --micro-batch 4 --steps 10)
gpt=(--model gpt3-175b --cluster hgx-h100-ndr --gpus 1048576 --optimizer adamw)
expect 0 '1000000 GPUs' "$lambcast" simulate "${bert[@]}" --optimizer lamb
expect 0 '1000000 GPUs' "$lambcast" simulate "${bert[@]}" --optimizer onebit_lamb --network flow
# One of the compared backends has unequal ranks, for which smaller groups are simulated.
expect 0 '^mpi \(host-staged\) +[0-9.]+ h' "$lambcast" advise "${bert[@]}" --optimizer lamb
expect 0 'time follows from those of 7814 and 15626 ranks, and lies within' \
  "$lambcast" collective --cluster commodity-10gbe --gpus 1000000 --backend mpi -b 1M -e 1M
expect 0 '8192 GPUs' "$lambcast" simulate --model bert-large --cluster meta-h100-roce --gpus 8192 \
  --micro-batch 4 --steps 10 --optimizer onebit_lamb
expect 0 '60000 GPUs|^(Pays|Does not|No difference)' "$lambcast" advise "${bert[@]/1000000/60000}" --optimizer lamb
expect 2 'too many ranks to simulate one by one' "$lambcast" simulate "${bert[@]}" --optimizer onebit_lamb --symmetry off
expect 0 '1048576 GPUs' "$lambcast" simulate "${gpt[@]}" --tp 8 --pp 16 --micro-batch 1 --grad-accum 16 --steps 10
expect 0 '1048576 GPUs' "$lambcast" plan "${gpt[@]}" --global-batch 1048576
expect 2 'gpus' "$lambcast" simulate "${bert[@]/1000000/1000000000000}" --optimizer lamb
for op in all_reduce all_gather all_to_all broadcast compressed_allreduce; do
  expect 0 '1048576 ranks' "$lambcast" collective --cluster hgx-h100-ndr --gpus 1048576 --op $op -b 1G -e 1G
done
expect 0 '1048576 ranks' "$lambcast" collective --cluster hgx-h100-ndr --gpus 1048576 -b 1M -e 1M --network flow
expect 2 '1048577 is out of range \(allowed: 1 to 1048576\)' "$lambcast" collective --cluster hgx-h100-ndr --gpus 1048577

deep=(--model gpt2-xl --cluster hgx-h100-ndr --gpus 64 --optimizer adamw --micro-batch 1 --steps 10)
expect 0 '64 GPUs' "$lambcast" simulate "${deep[@]}" --grad-accum 1 --set model.layers=10000
expect 0 '64 GPUs' "$lambcast" simulate "${deep[@]}" --pp 8 --grad-accum 1000 --set model.layers=10000
expect 0 '64 GPUs' "$lambcast" simulate "${deep[@]}" --zero-stage 3 --grad-accum 4 --set model.layers=10000
expect 2 'model.layers: 100000 is out of range \(allowed: 1 to 10000\)' \
  "$lambcast" simulate "${deep[@]}" --grad-accum 1 --set model.layers=100000
expect 2 '100000001 points|more than|ten million' "$lambcast" sweep "${deep[@]}" --grad-accum 1 --scan seq_len=1:1024:1 --scan freeze_step=1:100000:1 --dry-run
# Models are dropped after use: 400 of them with up to 4,000 layers would take 2 GB.
deep_folder=$(mktemp -d)
expect 0 '400' "$lambcast" sweep "${deep[@]}" --grad-accum 1 --scan model.layers=1:4000:10 --out "$deep_folder/swept" --no-report
rm -rf "$deep_folder"
summary

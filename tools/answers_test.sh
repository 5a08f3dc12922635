#!/usr/bin/env bash
# compare and sensitivity on the command line.
#
#   answers_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

run=(--model bert-large --gpus 32 --global-batch 4096 --micro-batch 16 --steps 1000)

# Clusters
expect 0 '^Fastest: hgx-h100-ndr, .*x as fast as commodity-10gbe' "$lambcast" compare commodity-10gbe hgx-h100-ndr \
  --optimizer lamb "${run[@]}"
mv out named
expect 0 '^Cheapest: hgx-h100-ndr, .* USD a run \(price published: ' "$lambcast" compare \
  --clusters commodity-10gbe,hgx-h100-ndr --optimizer lamb "${run[@]}"
cmp named out || fail "two ways to name clusters differ"
expect 0 '^name,cluster,optimizer,exchange,gpus,run_time_s,' "$lambcast" compare commodity-10gbe hgx-h100-ndr \
  --optimizer lamb "${run[@]}" --format csv
alone=$("$lambcast" simulate --cluster hgx-h100-ndr --optimizer lamb "${run[@]}" --format json |
  sed -n '/"run": {/,/}/s/.*"time_s": \([0-9.]*\),.*/\1/p')
grep -q "^hgx-h100-ndr,hgx-h100-ndr,lamb,all_reduce,32,$alone," out || fail "not $alone, as simulate says: $(cat out)"

# Optimizers and exchanges
expect 0 '"first": "all_reduce, lamb"' "$lambcast" compare --cluster commodity-10gbe "${run[@]}" --freeze-step 200 \
  --optimizers lamb,onebit_lamb --exchanges all_reduce,fp8,int4,powersgd:4,topk:1%,local:16 --format json
[ "$(grep -c '"run_time_s"' out)" -eq 7 ] || fail "not seven results: $(cat out)"

expect 2 'compare needs two or more' "$lambcast" compare --cluster commodity-10gbe --optimizer lamb "${run[@]}"
expect 2 '--cluster: contradicts --clusters' "$lambcast" compare dgx-a100-80g aws-p4d --cluster aws-p5 \
  --optimizer lamb "${run[@]}"
expect 2 "did you mean 'powersgd'|--exchanges" "$lambcast" compare --cluster aws-p4d --optimizer lamb "${run[@]}" \
  --exchanges fp8,powersg:4
expect 3 '^None of them fits in memory' "$lambcast" compare dgx-a100-80g aws-p4d --model gpt3-175b --gpus 8 \
  --optimizer adam --global-batch 8 --micro-batch 1 --steps 10
grep -q '^lambcast: none of 2 runs in the memory there is$' err || fail "no word of it: $(cat err)"

# Sensitivity
asked=(sensitivity --cluster commodity-10gbe "${run[@]}" --optimizer onebit_lamb --freeze-step 200)
expect 0 '^To measure first: ' "$lambcast" "${asked[@]}"
grep -qE '^cluster.nic.bandwidth +[0-9.]+ GB/s (measured|published|fitted|assumed) +-0\.' out || fail "no NIC: $(cat out)"
expect 0 '^key,value,kind,time_elasticity,speedup_elasticity,source$' "$lambcast" "${asked[@]}" --format csv
mv out first
expect 0 '^cluster.nic.bandwidth,' "$lambcast" "${asked[@]}" --format csv
cmp first out || fail "twice the same question, not the same bytes"
expect 0 '"time_elasticity": ' "$lambcast" "${asked[@]}" --format json --by 1
expect 2 '--by' "$lambcast" "${asked[@]}" --by 60
expect 2 '--gpus: is missing' "$lambcast" sensitivity --cluster commodity-10gbe --model bert-large --optimizer lamb \
  --global-batch 64 --micro-batch 1

summary

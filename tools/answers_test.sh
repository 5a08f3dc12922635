#!/usr/bin/env bash
# compare, sensitivity, solve, and sweep and advise from flags alone, on the command line.
#
#   answers_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

run=(--model bert-large --gpus 32 --global-batch 4096 --micro-batch 16 --steps 1000)

# Clusters
expect 0 '^Fastest: hgx-h100-ndr, .*x\) as fast as commodity-10gbe' "$lambcast" compare commodity-10gbe hgx-h100-ndr \
  --optimizer lamb "${run[@]}"
mv out named
expect 0 '^Cheapest( of those with a price)?: hgx-h100-ndr, [0-9.]+ USD a run \([0-9.]+ to [0-9.]+; price published: ' "$lambcast" compare \
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

# A NIC bandwidth typed in bytes instead of bits: each command reports it, in all formats, with its
# answer.
fast=(--model bert-large --cluster commodity-10gbe --set cluster.nic.bandwidth=10GB/s --optimizer lamb --global-batch 4096
  --micro-batch 16 --steps 1000)
for command in "sensitivity --format json" "compare --exchanges all_reduce,fp8" "solve gpus --for run_time=1h"; do
  asked=("${fast[@]}")
  [[ $command == solve* ]] || asked+=(--gpus 32)
  # shellcheck disable=SC2086
  "$lambcast" $command "${asked[@]}" >out 2>err </dev/null
  grep -q '^lambcast: note: .*did you mean 10 Gbit/s?.*\[nic-above-nominal\]$' err || fail "$command is silent: $(cat err)"
done
expect 2 'compare needs two or more' "$lambcast" compare --cluster commodity-10gbe --optimizer lamb "${run[@]}"
expect 2 '--cluster: contradicts --clusters' "$lambcast" compare dgx-a100-80g aws-p4d --cluster aws-p5 \
  --optimizer lamb "${run[@]}"
expect 2 "did you mean 'powersgd'|--exchanges" "$lambcast" compare --cluster aws-p4d --optimizer lamb "${run[@]}" \
  --exchanges fp8,powersg:4
expect 3 '^None of them fits in memory' "$lambcast" compare dgx-a100-80g aws-p4d --model gpt3-175b --gpus 8 \
  --optimizer adam --global-batch 8 --micro-batch 1 --steps 10
grep -q '^lambcast: of 2 runs none fits in memory$' err || fail "no word of it: $(cat err)"

# Results folders
many=(--model bert-large --cluster commodity-10gbe --gpus 32 --micro-batch 16 --steps 5993 --list global_batch=4096,65536)
expect 0 'points' "$lambcast" sweep "${many[@]}" --optimizer lamb --out of_lamb --no-report
expect 0 'points' "$lambcast" sweep "${many[@]}" --optimizer onebit_lamb --freeze-step 1000 --out of_onebit --no-report
expect 0 '^Fastest: of_onebit, [0-9.]+ (min|h) \(.* to .*\) a run, [0-9.]+ s a million samples, with ' "$lambcast" compare of_lamb of_onebit
grep -qE '^of_onebit takes 0\.[0-9]+ times as long as of_lamb in the median of the 2 points that are alike' out ||
  fail "like points are not compared: $(cat out)"
[ "$(grep -c '^of_.*\[-*o-*\]$' out)" -eq 2 ] || fail "not two on one axis: $(cat out)"
expect 0 '^of_lamb,2,2,' "$lambcast" compare of_lamb of_onebit --format csv --export compared.json
grep -q '"answer": "Fastest: of_onebit' compared.json || fail 'no JSON beside CSV'
expect 2 'commodity-10gbe: is not a folder with results' "$lambcast" compare of_lamb commodity-10gbe
expect 2 'take no flags of a forecast' "$lambcast" compare of_lamb of_onebit --gpus 8
expect 2 'two or more folders' "$lambcast" compare of_lamb

# Sensitivity
asked=(sensitivity --cluster commodity-10gbe "${run[@]}" --optimizer onebit_lamb --freeze-step 200)
expect 0 '^To measure first: ' "$lambcast" "${asked[@]}"
grep -qE '^NIC bandwidth +[0-9.]+ GB/s (measured|published|fitted|assumed) +-0\.' out || fail "no NIC: $(cat out)"
expect 0 '^key,value,kind,time_elasticity,speedup_elasticity,source,interval_share,measure,name$' "$lambcast" "${asked[@]}" --format csv
mv out first
expect 0 '^cluster.nic.bandwidth,' "$lambcast" "${asked[@]}" --format csv
cmp first out || fail "twice the same question, not the same bytes"
expect 0 '"time_elasticity": ' "$lambcast" "${asked[@]}" --format json --by 1
expect 2 '--by' "$lambcast" "${asked[@]}" --by 60
if command -v gnuplot >/dev/null; then
  expect 0 '^To measure first: ' "$lambcast" "${asked[@]}" --export tornado.svg --export tornado.png
  grep -q 'NIC bandwidth' tornado.svg || fail 'no NIC in the picture'
  head -c 8 tornado.png | cmp - <(printf '\211PNG\r\n\032\n') || fail 'no PNG'
fi
mkdir empty
expect 4 'gnuplot is not installed' env PATH="$PWD/empty" "$lambcast" "${asked[@]}" --export tornado.svg
expect 2 'is a picture file, and this answer has no picture' "$lambcast" compare aws-p4d aws-p5 "${run[@]}" --optimizer lamb --export x.svg
expect 2 '--gpus: is missing' "$lambcast" sensitivity --cluster commodity-10gbe --model bert-large --optimizer lamb \
  --global-batch 64 --micro-batch 1

# solve: first the answer in words, then the values around it; exit code 3 if there is no answer.
asked=(solve --model bert-large --cluster commodity-10gbe --micro-batch 16 --steps 5993)
onebit=(--optimizer onebit_lamb --freeze-step 1000 --kernels fused)
expect 0 '^efficiency is at least 50.0 % up to gpus [0-9]+ \([0-9.]+ %\), and less than it from [0-9]+ on' \
  "$lambcast" "${asked[@]}" gpus --for efficiency=50% --optimizer lamb --global-batch 65536 --to 4096
expect 0 '^speedup is at least 1.050x up to grad_accum ' "$lambcast" "${asked[@]}" grad_accum --for speedup=1.05 \
  --gpus 32 "${onebit[@]}"
expect 0 '^speedup is at least 2.500x up to cluster.nic.bandwidth [0-9.]+ [MG]bit/s \((just over )?2.50[0-9]x\)' "$lambcast" "${asked[@]}" \
  cluster.nic.bandwidth --for speedup=2.5 --gpus 32 --global-batch 4096 --optimizer onebit_lamb --freeze-step 1000
expect 0 '"kind": "solved"' "$lambcast" "${asked[@]}" freeze_step --for run_time=70min --gpus 32 --global-batch 4096 \
  --optimizer onebit_lamb --format json --export solved.csv --export solved.txt
head -1 solved.csv | grep -qx 'key,value,metric,metric_value,metric_low,metric_high,meets_target,fits' || fail 'no CSV beside JSON'
grep -q '^run_time is at most 70 min up to freeze_step ' solved.txt || fail "no table beside JSON: $(cat solved.txt)"
expect 3 '^speedup of at least 50.000x is not reached anywhere from gpus ' "$lambcast" "${asked[@]}" gpus --for speedup=50 \
  --grad-accum 4 "${onebit[@]}" --to 256
expect 2 "KEY: unknown key 'gpu', did you mean 'gpus'" "$lambcast" "${asked[@]}" gpu --for speedup=1 --optimizer lamb
expect 2 "did you mean 'speedup'" "$lambcast" "${asked[@]}" gpus --for speed=1 --grad-accum 4 "${onebit[@]}"
expect 2 'is not METRIC=VALUE' "$lambcast" "${asked[@]}" gpus --for speedup --grad-accum 4 "${onebit[@]}"
expect 2 'does not say its format' "$lambcast" "${asked[@]}" gpus --for speedup=1 --export solved.xls
# - is stdout, which only one output may use. Other files can be written in addition to a trace.
one=(simulate "${run[@]}" --cluster commodity-10gbe --optimizer lamb)
"$lambcast" "${one[@]}" --format csv >without
"$lambcast" "${one[@]}" --format csv --export - --export simulated.json >with || fail '--export - is refused'
cmp with without || fail '--export - prints another answer'
[ ! -e ./- ] && [ -s simulated.json ] || fail '--export - is a file, or the other is none'
expect 2 '--trace: - is stdout, which --export - already uses' "$lambcast" "${one[@]}" --trace - --export -
expect 0 traceEvents "$lambcast" "${one[@]}" --trace - --export beside.csv
[ "$(wc -l <beside.csv)" -eq 2 ] || fail 'a trace on stdout drops --export'

# Intervals, and the measurements that narrow them.
expect 0 '^(Pays|No difference|Does not pay|Not certain): .*x \([0-9.]+ to [0-9.]+x\) as fast as lamb' "$lambcast" advise "${run[@]}" \
  --cluster commodity-10gbe --optimizer onebit_lamb --freeze-step 200
expect 0 '"measure": "all_reduce over nccl \(lambcast measure --backend nccl --op all_reduce' "$lambcast" advise "${run[@]}" \
  --cluster commodity-10gbe --optimizer onebit_lamb --freeze-step 200 --format json

# Sweeps from flags: the table is printed and no file written; the written sweep file gives the
# same.
swept=(--model bert-large --cluster commodity-10gbe --optimizer onebit_lamb --micro-batch 16 --steps 5993 --freeze-step 1000
  --list global_batch=4096,65536 --scan gpus=8..32)
expect 0 '^Pays in (all|[1-5] of) 6 points, most with ' "$lambcast" sweep "${swept[@]}"
[ "$(grep -c '^[0-9]* ' out)" -eq 6 ] || fail "not six points: $(cat out)"
# The best point is never one without warm-up or with few compressed steps, and a loss is not called
# a gain.
expect 0 '^Pays in 1 point, most with freeze_step=1%: ' "$lambcast" sweep "${run[@]}" \
  --cluster commodity-10gbe --optimizer onebit_lamb --list freeze_step=0%,1%,60%
head -1 out | grep -qE '^Fastest by freeze_step: 1%, [0-9.]+ [a-z]+ \([0-9.]+ to [0-9.]+ [a-z]+\) a run' || fail "another wins: $(cat out)"
expect 0 'Does not pay in any point: at best with global_batch=8192 compression makes the run 0\.' "$lambcast" sweep --model bert-large --cluster dgx-a100-80g \
  --gpus 64 --micro-batch 64 --steps 1000 --freeze-step 20% --optimizer onebit_lamb --list global_batch=4096,8192
expect 0 'Does not pay in any point: at best with dgx-a100-80g compression makes the run 0\.' "$lambcast" compare gcp-a3-mega dgx-a100-80g \
  --model bert-large --gpus 64 --optimizer lamb --micro-batch 64 --steps 1000
[ -z "$(ls -d results 2>/dev/null)" ] || fail "a sweep without --out has written"
"$lambcast" sweep "${swept[@]}" --format csv >printed.csv
expect 0 'points' "$lambcast" sweep "${swept[@]}" --out from_flags --no-report --write-sweep written.toml
expect 0 'points' "$lambcast" sweep written.toml --out from_file --no-report
cmp printed.csv from_flags/results.csv || fail 'printed and written rows differ'
cmp from_flags/results.csv from_file/results.csv || fail 'the file that is written is another sweep'
cmp <(grep -v '"command"' from_flags/manifest.json) <(grep -v '"command"' from_file/manifest.json) ||
  fail 'manifests of flags and file differ'
# A key without effect is named even if a folder has more rows than are printed.
expect 0 '^cluster.node.host_memory moves nothing here: ' "$lambcast" sweep "${swept[@]}" --out flat --no-report \
  --list "cluster.node.host_memory=$(seq -s , -f '%gGB/s' 12)"
# The command in a manifest defines the same sweep, whichever command wrote it.
of_manifest() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' "$1/manifest.json"; }
expect 0 'points' "$lambcast" sweep bert_large --list gpus=16 --list optimizer=lamb --out from_study --no-report
for made in from_flags from_file from_study; do
  eval "set -- $(of_manifest $made)"
  expect 0 'points' "$lambcast" "${@:2}" --out "$made.command" --no-report
  cmp $made/manifest.json $made.command/manifest.json || fail "its command makes another manifest of $made: $*"
  cmp $made/results.csv $made.command/results.csv || fail "its command makes other rows of $made: $*"
done
expect 0 '^gpus = \["?8"?, ' "$lambcast" sweep "${swept[@]}" --write-sweep -
expect 2 "'many' is not a whole number" "$lambcast" sweep "${swept[@]}" --list seq_len=128,many --write-sweep wrong.toml --out wrong
[ ! -e wrong.toml ] && [ ! -e wrong ] || fail 'a usage error comes after something was written'
expect 2 'contradicts the values of gpus' "$lambcast" sweep "${swept[@]}" --gpus 8
expect 2 'FILE is missing' "$lambcast" sweep
expect 0 '6 points' "$lambcast" sweep written.toml --out narrowed --no-report --steps 5993
expect 0 '^Does onebit_lamb pay, by seq_len\? ' "$lambcast" advise "${run[@]}" --cluster commodity-10gbe \
  --optimizer onebit_lamb --freeze-step 200 --list seq_len=128,512

# rerun computes the same rows again, and gives the reason if they differ.
expect 0 '^The same bytes: results.csv in from_flags and made again' "$lambcast" rerun from_flags
[ ! -e from_flags.again ] || fail "rerun leaves $(ls from_flags.again) behind"
mkdir from_flags.again && echo mine >from_flags.again/notes
expect 0 '^The same bytes: ' "$lambcast" rerun from_flags
[ "$(ls from_flags.again)" = notes ] || fail "rerun removes what is not its own: $(ls from_flags.again)"
rm -r from_flags.again
expect 0 '^The same bytes: results.csv in from_flags and in from_flags.again' "$lambcast" rerun from_flags --out from_flags.again
cmp from_flags/results.csv from_flags.again/results.csv || fail 'rerun lies'
cmp from_flags/manifest.json from_flags.again/manifest.json || fail 'rerun writes another manifest'
"$lambcast" presets show commodity-10gbe >mine.toml
expect 0 'points' "$lambcast" sweep "${swept[@]/commodity-10gbe/mine.toml}" --out of_mine --no-report
sed -i 's/^description = "/&changed /' mine.toml
expect 2 'cluster mine.toml is not what it was' "$lambcast" rerun of_mine
sed -i 's/,ok,/,OK,/' from_file/results.csv
expect 3 '^Not the same: results.csv in from_file and in from_file.again differ from line 2 on' "$lambcast" rerun from_file
expect 2 'manifest.json' "$lambcast" rerun nowhere

summary

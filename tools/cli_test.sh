#!/usr/bin/env bash
# Behaviour that scripts rely on: exit codes, results on stdout and everything else on stderr, one
# line per error, help with examples.
#
#   cli_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

run=(--model bert-large --cluster paper-eth40-v100 --gpus 8 --optimizer onebit_lamb --micro-batch 16
  --steps 1000)

# Exit code 0: success
expect 0 'bert-large with onebit_lamb on paper-eth40-v100: 8 GPUs' "$lambcast" simulate "${run[@]}"
[ -s err ] && fail "a forecast writes to stderr"
expect 0 '^step within .* ms: communication not calibrated, compute fitted here$' "$lambcast" simulate "${run[@]}"
expect 0 '"schema_version": 1' "$lambcast" simulate "${run[@]}" --format json
printf '[device]\nname = "bare"\nmemory_capacity = "80 GB"\nmemory_bandwidth = "2 TB/s"\ncopy_bandwidth = "1.8 TB/s"\n' >bare.toml
expect 0 'bert-large with onebit_lamb' "$lambcast" simulate "${run[@]}" --device bare.toml
expect 0 '^model,cluster,optimizer,backend,nodes,gpus,micro_batch,grad_accum,global_batch,seq_len,steps,freeze_step,' \
  "$lambcast" simulate "${run[@]}" --format csv
[ "$(wc -l <out)" -eq 2 ] || fail "a header and a row, not $(wc -l <out) lines"
expect 0 '^lambcast [0-9]+\.[0-9]+\.[0-9]+ \(([0-9a-f]{7,40}(-dirty)?|unknown)\)$' "$lambcast" --version
expect 0 'traceEvents' bash -c '"$@" --trace t.json >log && cat t.json' - "$lambcast" simulate "${run[@]}"

# Every command has help with examples.
for command in simulate advise plan sweep collective profile measure calibrate validate report presets "presets list" "presets show"; do
  # shellcheck disable=SC2086
  expect 0 '^Examples?$' "$lambcast" $command --help
  grep -q "^  lambcast ${command%% *} " out || fail "$command --help shows no example of itself"
done
expect 0 'Exit codes: 0 done' "$lambcast" --help

expect 0 '^  collective +' "$lambcast" help
"$lambcast" --help | cmp -s out || fail "help prints something else than --help"

# Exit code 2: bad usage or input
code=0
"$lambcast" >out 2>err || code=$?
[ "$code" -eq 2 ] && [ ! -s out ] || fail "without a command: exit code $code"
grep -q '^lambcast: a command is missing' err && grep -qE '^  collective +' err || fail "without a command: no list of commands"
expect 2 'simulat' "$lambcast" simulat
expect 2 '--optimiser' "$lambcast" simulate "${run[@]}" --optimiser lamb
expect 2 "^lambcast: --model, --optimizer, --global-batch: missing; try: --model bert-large " "$lambcast" simulate --cluster paper-eth40-v100 --gpus 8
expect 2 "unknown model 'bert-larg', did you mean 'bert-large'" \
  "$lambcast" simulate --model bert-larg --cluster paper-eth40-v100 --gpus 8
of_batch=(--model bert-large --cluster commodity-10gbe --optimizer onebit_lamb --micro-batch 64)
expect 2 '--global-batch: 1000 samples a step are too few for 32 GPUs \(DeepSpeed: "Gradient' "$lambcast" simulate "${of_batch[@]}" \
  --gpus 32 --global-batch 1000
expect 2 '--global-batch: 65536 samples a step do not divide evenly among 30 GPUs' "$lambcast" simulate "${of_batch[@]}" \
  --gpus 30 --global-batch 65536
expect 2 '--zero-stage: 1bit-Lamb is not compatible with ZeRO; try: stage 0' "$lambcast" simulate "${of_batch[@]}" --gpus 32 \
  --grad-accum 1 --zero-stage 2
expect 2 "--format: unknown value 'xml' \(allowed: table, json, csv\)" "$lambcast" simulate "${run[@]}" --format xml
expect 2 "'foo' is not KEY=VALUE" "$lambcast" simulate "${run[@]}" --set foo
expect 2 "nic.bandwidth: '10' has no unit" "$lambcast" simulate "${run[@]}" --set cluster.nic.bandwidth=10
expect 2 'absent.json: cannot be read' "$lambcast" simulate "${run[@]}" --config absent.json
expect 2 'has no config.json' "$lambcast" simulate --model "$folder/" --cluster paper-eth40-v100 --gpus 8
expect 2 'cannot be read' "$lambcast" simulate --model bert-large --cluster "$folder/" --gpus 8
expect 2 'larger than 64 MiB' "$lambcast" simulate --model /dev/zero --cluster paper-eth40-v100 --gpus 8
expect 2 'absent.toml: does not exist' "$lambcast" sweep absent.toml
expect 2 '--jobs' "$lambcast" sweep bert_large --jobs 0
expect 2 "is not a scan" "$lambcast" sweep bert_large --dry-run --scan gpus=8
expect 2 "did you mean 'gpus'" "$lambcast" sweep bert_large --dry-run --list gpu=8
# A value that is wrong in every point of a sweep is reported before anything is written.
for axis in --scan\ freeze_step=0.1:0.5:0.1 --list\ cluster=./absent.toml --list\ cluster.nic.bandwith=1Gbit/s; do
  for dry in '' --dry-run; do
    # shellcheck disable=SC2086
    expect 2 'freeze-step|absent.toml|bandwith' "$lambcast" sweep bert_large --out unusable $axis $dry
    [ ! -e unusable ] || fail "a sweep with $axis writes"
  done
done
printf '{ "train_batch_size": 64, "train_batch_size": 64 }' >twice.json
expect 2 'twice.json:1: .*Duplicate keys in DeepSpeed config' "$lambcast" simulate "${run[@]}" --config twice.json
# A batch set by elasticity is reported with its source and its GPU counts.
printf '{ "optimizer": { "type": "Adam" }, "elasticity": { "enabled": true, "version": 0.1,
  "max_train_batch_size": 100, "micro_batch_sizes": [2, 4], "max_gpus": 16 } }' >elastic.json
elastic=(--model bert-base --cluster paper-eth40-v100 --config elastic.json --steps 10)
expect 0 'elastic.json:1: elasticity: train_batch_size 96 = 4 . 3 . 8 GPUs; valid GPU counts: \[' \
  "$lambcast" simulate "${elastic[@]}" --gpus 8
expect 0 '"code": "batch-from-elasticity"' "$lambcast" simulate "${elastic[@]}" --gpus 8 --format json
expect 0 'warning.* elasticity: overridden by the command line: train_batch_size 64 = 8 . 1 . 8 GPUs' \
  "$lambcast" simulate "${elastic[@]}" --gpus 8 --micro-batch 8 --grad-accum 1
expect 2 'elastic.json:1: elasticity: World size .7. is not valid' \
  "$lambcast" simulate "${elastic[@]}" --gpus 7

# Contradicting values are rejected, whichever would take precedence.
expect 2 "--set: 'gpus=16' contradicts --gpus 8" "$lambcast" simulate "${run[@]}" --set gpus=16
expect 2 "--set: 'run.micro_batch=8' contradicts --micro-batch 16" \
  "$lambcast" simulate "${run[@]}" --set run.micro_batch=8
expect 2 "contradicts --set model.ffn=2048" \
  "$lambcast" simulate "${run[@]}" --set model.ffn=2048 --set model.ffn=1024
expect 0 'bert-large with' "$lambcast" simulate "${run[@]}" --set gpus=8
expect 2 "--samples: 1024 samples at a global batch of 128 take 8 steps, but --steps is 1000" \
  "$lambcast" simulate "${run[@]}" --samples 1024

# advise has the formats and the trace of simulate.
expect 0 '^model,cluster,optimizer,backend,' "$lambcast" advise "${run[@]}" --format csv
[ "$(wc -l <out)" -eq 5 ] || fail "advise --format csv: a header, and the two backends that run on Ethernet twice, not $(wc -l <out) lines"
expect 0 'traceEvents' bash -c '"$@" --trace a.json >log && cat a.json' - "$lambcast" advise "${run[@]}"

# presets
expect 0 '^  bert-large +336\.2 M +400$' "$lambcast" presets list models
expect 0 '^  aws-p4d +2\.75  published: 21\.96 USD an hour for 8 GPUs \(AWS price list of 2026-09-25' "$lambcast" presets list all
for name in models clusters prices devices; do grep -q "^$name  " out || fail "presets list has no $name"; done
mapfile -t presets < <(awk '/^  /{print $1}' out)
[ "${#presets[@]}" -ge 37 ] || fail "only ${#presets[@]} presets"
for name in "${presets[@]}"; do
  expect 0 '^name = "'"$name"'"$' "$lambcast" presets show "$name"
  grep -qE 'kind = "|source = "' out || fail "$name gives no source"
done
# Flags of other programs: the error names the corresponding flag.
expect 2 "unknown flag '--batch': write --global-batch N .* or --micro-batch N" "$lambcast" simulate "${run[@]}" --batch 8
expect 2 "'15x' is not a share .allowed: such as 0.15 or 15%" "$lambcast" validate --against slow.csv --cluster paper-eth40-v100 --max-error 15x
expect 2 "'--max-error' is not a flag of simulate, but of lambcast validate" "$lambcast" simulate "${run[@]}" --max-error 15%
expect 2 "unknown flag '--price': write --set cluster.usd_per_gpu_hour=X" "$lambcast" simulate "${run[@]}" --price 2
expect 0 'all_reduce' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --op AllReduce -b 1M -e 1M
expect 2 "unknown preset 'bert', did you mean" "$lambcast" presets show bert
expect 2 'NAME is required; see lambcast presets --help' "$lambcast" presets show
expect 2 "unknown command 'shwo', did you mean 'show'" "$lambcast" presets shwo bert-large
expect 2 "unknown command 'lst', did you mean 'list'" "$lambcast" presets lst
# The output of `presets show` can be used as a file.
"$lambcast" presets show paper-eth40-v100 >mine.toml
"$lambcast" simulate "${run[@]}" --format csv >preset.csv
"$lambcast" simulate --model bert-large --cluster ./mine.toml --gpus 8 --optimizer onebit_lamb \
  --micro-batch 16 --steps 1000 --format csv >file.csv
# The column `settings` names the files of a row.
grep -q ',cluster=./mine.toml,' file.csv || fail "a row does not say from which file its cluster is"
cmp -s preset.csv <(sed 's:,cluster=./mine.toml,:,,:' file.csv) || fail "a preset and its copy in a file differ"

# Exit code 3: a limit was exceeded
expect 0 'within limits' "$lambcast" validate
grep -q 'unseen figures lie inside the interval of their forecast' out || fail "validate counts no training intervals"
expect 3 'canary .*PAST ITS LIMIT' "$lambcast" validate --canary
expect 0 '^over all [0-9]+ tables, [0-9]+ rows' "$lambcast" validate --out validation
grep -qx 'report: validation/report.html' out || fail "validate --out does not say where its page is"
for file in report.html training.csv collectives.csv plots/training.gp plots/collectives.dat; do
  [ -s "validation/$file" ] || fail "validate --out leaves no $file"
done
grep -q '<figure class=chart>' validation/report.html || fail "the page of validate has no figure"
if command -v gnuplot >/dev/null; then
  [ -s err ] && fail "validate --out writes to stderr: $(head -1 err)"
  [ -s validation/plots/training.svg ] || fail "validate --out draws no figure"
  [ -s validation/plots/collectives.png ] || fail "validate --out leaves no picture"
fi
"$lambcast" validate --rows rows.csv >/dev/null
cmp -s rows.csv validation/collectives.csv || fail "--rows and collectives.csv differ"
expect 3 'canary .*PAST ITS LIMIT' "$lambcast" validate --canary --out validation
grep -q 'class=verdict><p>PAST LIMITS' validation/report.html || fail "the page hides a missed limit"
touch file
expect 2 'file/below: Not a directory' "$lambcast" validate --out file/below
expect 2 '--rows: cannot be opened' "$lambcast" validate --rows file/below
# The user's own figures: training cases, and a log that is a forecast and must match itself.
cat >own.csv <<'END'
id,stage,quantity,measured,role,max_error,model,cluster,optimizer,backend,gpus,micro_batch,grad_accum,seq_len,steps
mine,uniform,step_time_ms,1,unseen,0.1,bert-large,paper-eth40-v100,lamb,nccl,8,16,1,128,1
END
expect 3 'mine .*PAST ITS LIMIT' "$lambcast" validate --against own.csv --out own
[ -s own/report.html ] && [ -s own/training.csv ] && [ ! -e own/collectives.csv ] ||
  fail "validate --against CASES leaves other files than its own"
"$lambcast" collective --cluster paper-eth40-v100 --gpus 8 -b 1M -e 64M -f 4 | awk '
  BEGIN { print "# collective: all_reduce\n# ranks: 8\n# nodes: 2\nsize_bytes,time_us" }
  $1 ~ /^[0-9]+$/ { print $1 "," $6 }' >forecast.csv
expect 0 '^1 tables: within limits' "$lambcast" validate --against forecast.csv --cluster paper-eth40-v100 \
  --max-error 0.01 --out mine
[ -s mine/report.html ] && [ -s mine/collectives.csv ] && [ ! -e mine/training.csv ] ||
  fail "validate --against LOG leaves other files than its own"
expect 3 'PAST ITS LIMIT' "$lambcast" validate --against forecast.csv --cluster commodity-10gbe \
  --max-error 0
# Without a limit validate claims no result, and reports a slow log as slow: every time here is nine
# times as long.
awk -F, 'NR < 5 { print } NR >= 5 { print $1 "," 9 * $2 }' forecast.csv >slow.csv
expect 0 'no limit applies' "$lambcast" validate --against slow.csv --cluster paper-eth40-v100
grep -q '^your all_reduce takes 9 times what this description forecasts' out || fail "a slow log is not told so"
grep -q -e '-88.9%' out || fail "rows of a log have no signed error"
expect 3 'PAST LIMITS' "$lambcast" validate --against slow.csv --cluster paper-eth40-v100 --max-error 15%
# Flags that only apply to a log are rejected without one, and a limit below 0 with one.
for flag in '--max-error 0.1' '--ranks 8' '--op all_reduce' --in-place '--backend mpi'; do
  # shellcheck disable=SC2086
  expect 2 "${flag% *} requires --cluster" "$lambcast" validate --against own.csv $flag
done
# Rows of a published table, read by the mapping of its source
cat >more_rows.csv <<'ROWS'
# Rows of a table from another source
model,hidden,heads,layers,params_b,tp,dp,gpus,system,batch,iter_ms
1B,1920,15,24,1.16,1,1,1,dgx2_v100,8,1121
# A row with an unknown machine
1B,1920,15,24,1.16,1,1,1,dgx9,8,1121
ROWS
expect 0 '^megatron_tensor_parallel,1,1B tp 1 dgx2_v100,step_time_s,1.121,.*,(yes|no),ok$' \
  "$lambcast" validate --against more_rows.csv --as megatron_tensor_parallel --format csv
head -1 out | grep -qx 'source,row,case,quantity,measured,forecast,error,low,high,inside,status' ||
  fail "validate --as prints other columns than promised"
grep -q "^megatron_tensor_parallel,2,.*clusters have no 'dgx9'" out || fail "validate --as hides a row without a forecast"
grep -q '1 rows forecast, 1 not; |error| median' err || fail "validate --as has no summary"
expect 0 '^all rows  *1  *1 ' "$lambcast" validate --against more_rows.csv --as megatron_tensor_parallel
expect 3 ',ok$' "$lambcast" validate --against more_rows.csv --as megatron_tensor_parallel --format csv --max-error 0.0001
expect 2 "unknown source 'megatron', did you mean" "$lambcast" validate --against more_rows.csv --as megatron
expect 2 'model: is not a column of onebit_adam_blog|has no column .*, which rows of onebit_adam_blog have' \
  "$lambcast" validate --against more_rows.csv --as onebit_adam_blog
expect 2 'format requires --as' "$lambcast" validate --against more_rows.csv --format csv
expect 2 'as excludes --cluster|cluster excludes --as' "$lambcast" validate --against more_rows.csv --as runs --cluster paper-eth40-v100
cat >runs.csv <<'ROWS'
case,model,cluster,optimizer,gpus,micro_batch,grad_accum,seq_len,steps,step_time_s
mine,bert-large,paper-eth40-v100,lamb,8,16,1,128,1,2.0
ROWS
expect 0 '^runs,1,mine,step_time_s,2,' "$lambcast" validate --against runs.csv --as runs --format csv
expect 2 'cluster requires --against' "$lambcast" validate --cluster paper-eth40-v100
for limit in -1 15 inf; do
  expect 2 'max-error: is not a limit' "$lambcast" validate --against forecast.csv \
    --cluster paper-eth40-v100 --max-error "$limit"
done
expect 2 '--ranks: 0 is out of range \(allowed: 1 ' "$lambcast" validate --against forecast.csv \
  --cluster paper-eth40-v100 --ranks 0
expect 2 'ranks: the file has 8, not 4' "$lambcast" validate --against forecast.csv \
  --cluster paper-eth40-v100 --ranks 4
# OSU tables do not state the number of ranks, nor, without a header, the collective. Flags give
# them.
printf '# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n1048576  900.0\n' >osu.log
expect 2 'OSU does not print the number of ranks: give it with --ranks' \
  "$lambcast" validate --against osu.log --cluster paper-eth40-v100 --nodes 2
expect 0 '^1 tables: ' "$lambcast" validate --against osu.log --cluster paper-eth40-v100 --nodes 2 \
  --ranks 8
# --backend applies to every table of a log.
cat osu.log osu.log >two.log
"$lambcast" validate --against two.log --cluster paper-eth40-v100 --nodes 2 --ranks 8 --backend mpi \
  --rows two.csv >/dev/null
[ "$(tail -n 2 two.csv | sort -u | wc -l)" = 1 ] || fail "two equal tables differ: $(cat two.csv)"
echo '1048576 262144 float sum -1 900.0 1.17 2.04 0 910.0 1.15 2.02 0' >bare.log
expect 2 'the file does not name its collective: give it with --op' \
  "$lambcast" validate --against bare.log --cluster paper-eth40-v100 --nodes 2
expect 0 '^1 tables: ' "$lambcast" validate --against bare.log --cluster paper-eth40-v100 --nodes 2 \
  --op all_reduce --ranks 8 --in-place
sed '/^#/d' forecast.csv >headless.csv
expect 2 "has no '# collective: ...' line: name it with --op" \
  "$lambcast" validate --against headless.csv --cluster paper-eth40-v100
expect 0 '^1 tables: ' "$lambcast" validate --against headless.csv --cluster paper-eth40-v100 \
  --op all_reduce --ranks 8 --nodes 2
printf 'id,stage\nx,y\n' >cases.csv
expect 2 'cases.csv: has no column' "$lambcast" validate --against cases.csv

# Exit code 4: the hardware is missing
if [ -e /dev/nvidia0 ]; then
  echo "left out, there is a GPU: profile exits with 4"
else
  expect 4 '' "$lambcast" profile
fi

# Exit code 1: failure, also if the results cannot be written.
for command in "simulate ${run[*]}" "simulate ${run[*]} --format json" "presets list" validate \
  "collective --cluster paper-eth40-v100 --gpus 8" --help --version; do
  # shellcheck disable=SC2086
  expect 1 'cannot be written to stdout|No space left' bash -c '"$@" >/dev/full' - "$lambcast" $command
done
# Files named by a flag: exit code 2 if the path is wrong, 1 if the disk is full.
for command in simulate advise; do
  expect 2 '--trace: cannot be opened' "$lambcast" "$command" "${run[@]}" --trace /dev/null/trace
  expect 1 '--trace: was written only in part' "$lambcast" "$command" "${run[@]}" --trace /dev/full
done
expect 2 'file/below: Not a directory' "$lambcast" sweep bert_large --out file/below
expect 2 'results.csv: cannot be read' "$lambcast" report "$folder"

# collective
expect 0 '"calibrated": false' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --format json
expect 0 '"size_bytes": [0-9]+,' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --format json
for sizes in "-b 0" "-b 8 -e 4" "-f 1" "-f nan" "-b 1X" "-b -1" "-b 1MB" "-e 2P" "-b inf" "-b 1M -e 1G -f 1.0001"; do
  # shellcheck disable=SC2086
  expect 2 '^lambcast: -[bef]' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 $sizes
done
expect 0 '^ +1073741824 ' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 -b 1G
expect 2 '--gpus: 0 is out of range \(allowed: 1 to 1048576\)' "$lambcast" collective --cluster paper-eth40-v100 --gpus 0
expect 2 '--gpus-per-node: 5 is out of range \(allowed: 1 to 4\)' \
  "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --gpus-per-node 5
expect 2 '--gpus-per-node: 0 is out of range \(allowed: 1 to 4\)' \
  "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --gpus-per-node 0
expect 0 '# lambcast forecast of all_gather' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --op all-gather -b 1M -e 1M
expect 2 'all_reduc' "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --op all_reduc
expect 2 "unknown algorithm 'rign', did you mean 'ring'" \
  "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --algorithm rign
expect 2 'bruck does not do all_reduce over 8 ranks' \
  "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --algorithm bruck
# A wrong description gives the same error in every command.
wrong="^lambcast: --set cluster.nccl.all_reduce: nccl.all_reduce: unknown algorithm of an all_reduce 'foo' \(allowed: ring, tree, "
expect 2 "$wrong" "$lambcast" simulate "${run[@]}" --set cluster.nccl.all_reduce=foo
expect 2 "$wrong" "$lambcast" advise "${run[@]}" --set cluster.nccl.all_reduce=foo
expect 2 "$wrong" "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --op all_gather --set cluster.nccl.all_reduce=foo
groups=("$lambcast" collective --cluster hgx-h100-ndr --gpus 4 --stride 8)
expect 0 '^# lambcast forecast of all_reduce on hgx-h100-ndr, 4 ranks, stride 8, node stride 1, 8 groups at once$' \
  "${groups[@]}" --siblings 8
expect 0 '"siblings": 8' "${groups[@]}" --siblings 8 --format json
expect 2 '--siblings: 9 is out of range \(allowed: 1 to 8\)' "${groups[@]}" --siblings 9
expect 2 '--gpus-per-node: 2 is out of range \(allowed: 1 to 1\)' "${groups[@]}" --gpus-per-node 2
expect 2 '--node-stride: 999999 is out of range' "${groups[@]}" --node-stride 999999
expect 2 'groups of stride 3 do not fit a node of 8 GPUs' \
  "$lambcast" collective --cluster hgx-h100-ndr --gpus 4 --stride 3 --siblings 8
printf '[[jobs]]\nop = "all_reduce"\nsize = "64 MiB"\ngpus = 4\nstride = 8\n' >jobs.toml
printf '[[jobs]]\nname = "other"\nop = "all_gather"\nsize = "64 MiB"\ngpus = 4\nstride = 8\nfirst_gpu = 1\n' >>jobs.toml
jobs=("$lambcast" collective --cluster hgx-h100-ndr --jobs jobs.toml)
expect 0 '^# lambcast forecast of 2 jobs at once on hgx-h100-ndr$' "${jobs[@]}"
expect 0 '^other,all_gather,4,67108864,ring,' "${jobs[@]}" --format csv
expect 0 '"together_us"' "${jobs[@]}" --format json
expect 0 '"high_us"' "${jobs[@]}" --format json
expect 2 '--op excludes --jobs' "${jobs[@]}" --op all_to_all
expect 2 '--network excludes --jobs' "${jobs[@]}" --network analytic
expect 2 '^lambcast: --gpus: missing; try: lambcast collective ' "$lambcast" collective --cluster hgx-h100-ndr
expect 2 'excludes' "${jobs[@]}" --gpus 8
expect 2 'all_to_all over 2112 ranks: too many ranks to simulate one by one .allowed: up to 2048' \
  "$lambcast" collective --op all_to_all --cluster hgx-h100-ndr --gpus 2112 --symmetry off
expect 0 '^ +8 ' "$lambcast" collective --cluster hgx-h100-ndr --gpus 1048576 -b 8 -e 8
# If flows are unequal, max-min sharing ends sooner than the closed form, and the table says by how
# much. With one stream per peer the streams are the limit; with four the NIC is.
parted=("$lambcast" collective --cluster commodity-100gbe --gpus 12 --algorithm tree -b 64M -e 64M)
"${parted[@]}" > one_stream.txt
parted+=(--set cluster.nccl.connections=4)
expect 0 '^# flows are unlike here: --network flow, .* says 0\.[67][0-9] times the time$' "${parted[@]}"
expect 0 '"flow_model_time_us"' "${parted[@]}" --format json
"${parted[@]}" --network flow > flow.txt
"$lambcast" collective --cluster commodity-100gbe --gpus 12 --algorithm ring -b 64M -e 64M > ring.txt
if grep -q 'are unlike' flow.txt ring.txt one_stream.txt; then fail "the flow model, a ring or one stream part from nothing"; fi
# On a slow network a stage may wait less than its price includes, but never less than zero.
expect 0 'tokens' "$lambcast" simulate --model gpt2-xl --cluster commodity-25gbe --gpus 32 --pp 8 --grad-accum 16 \
  --micro-batch 2 --optimizer adamw --steps 1000 --network flow
expect 2 "unknown protocol 'LL256'" "$lambcast" collective --cluster paper-eth40-v100 --gpus 8 --protocol LL256
expect 2 'nccl.LL128: NCCL has LL128 over NVLink and RDMA only' \
  "$lambcast" collective --cluster hgx-h100-ndr --gpus 16 --set cluster.nic.network=socket

# A calibration belongs to the measured machine, not to a machine changed by --set.
expect 0 '^# preset of another machine, measured: ' "$lambcast" collective --cluster perlmutter-a100 --gpus 16 -b 1M -e 4M -f 4
expect 0 ', extrapolated \(--set changed nic.bandwidth\): ' "$lambcast" collective \
  --cluster perlmutter-a100 --gpus 16 -b 1M -e 4M -f 4 --set cluster.nic.bandwidth=10Gbit/s
grep -qE '^# (calibrated|preset of another)' out && fail "calibrated, on a NIC that nobody measured"
expect 0 '^# one rank sends nothing$' "$lambcast" collective --cluster hgx-h100-ndr --gpus 1 -b 8 -e 8
grep -qi nan out && fail "a ratio of nothing to nothing"

# calibrate: the tables state their machine and backend.
table() {
  printf '# collective: all_gather\n# ranks: 2\n# nodes: 2\n# backend: %s\nsize_bytes,time_us\n1024,%s\n1048576,900\n' \
    "$1" "$2"
}
table mpi 60 > mpi.csv
table nccl 40 > nccl.csv
expect 0 'mpi.nic_efficiency' "$lambcast" calibrate --cluster commodity-10gbe -o fitted.toml mpi.csv
cp fitted.toml before.toml
expect 2 '^lambcast: fitted.toml: -o: exists already: --force replaces it$' "$lambcast" calibrate \
  --cluster commodity-10gbe -o fitted.toml nccl.csv
cmp -s fitted.toml before.toml || fail "a refused calibration touches its output"
expect 0 'nccl.nic_efficiency' "$lambcast" calibrate --cluster commodity-10gbe --force -o fitted.toml nccl.csv
# Logs from stdin and from a pipe, with the byte order mark that other systems write before a text.
{ printf '\357\273\277'; cat nccl.csv; } >marked.csv
fit=("$lambcast" calibrate --cluster commodity-10gbe --name fitted --source x --force)
"${fit[@]}" -o plain.toml nccl.csv >out
same_fit() { cmp -s piped.toml plain.toml || fail "another fit from $1: $(cat err)"; rm -f piped.toml; }
"${fit[@]}" -o piped.toml - <nccl.csv >out 2>err
same_fit stdin
"${fit[@]}" -o piped.toml <(sleep 0.2; cat marked.csv) >out 2>err
same_fit "a pipe"
"${fit[@]}" -o piped.toml marked.csv >out 2>err
same_fit "a marked file"
"$lambcast" validate --cluster commodity-10gbe --against - <nccl.csv >out 2>err || fail "validate --against -: $(cat err)"
iconv -t UTF-16 nccl.csv >wide.csv
expect 2 '^lambcast: wide.csv: is UTF-16 text: make it UTF-8' "$lambcast" calibrate --cluster commodity-10gbe -o wide.toml wide.csv
echo '{"train_batch_size": 64}' >ds.json
expect 2 'ds.json: is JSON, but no table' "$lambcast" calibrate --cluster commodity-10gbe -o ds.toml ds.json
expect 2 'cannot be read: Is a directory' "$lambcast" calibrate --cluster commodity-10gbe -o ds.toml "$folder"
mkfifo silent
expect 2 'silent: cannot be read: nobody writes to this pipe' "$lambcast" calibrate --cluster commodity-10gbe -o ds.toml silent
# Sizes go up to the largest and not beyond.
expect 0 '^1125899906842624,' "$lambcast" collective --cluster hgx-h100-ndr --gpus 8 -b 1P -e 1P --format csv
expect 2 "^lambcast: -e: '2P' is not a size \\(allowed: 1 to 1P" "$lambcast" collective --cluster hgx-h100-ndr --gpus 8 -e 2P
expect 2 "^lambcast: -b: '1e300' is not a size" "$lambcast" collective --cluster hgx-h100-ndr --gpus 8 -b 1e300
expect 2 "^lambcast: -e: '99999999999999999999G' is not a size" "$lambcast" collective --cluster hgx-h100-ndr --gpus 8 -e 99999999999999999999G
expect 2 '-o: cannot be opened' "$lambcast" calibrate --cluster commodity-10gbe -o file/below nccl.csv
expect 1 '-o: was written only in part' "$lambcast" calibrate --cluster commodity-10gbe -o /dev/full nccl.csv
expect 2 'a table of nccl, not of mpi' "$lambcast" calibrate --cluster commodity-10gbe --force -o fitted.toml mpi.csv nccl.csv
expect 2 'a table of mpi, not of nccl' "$lambcast" calibrate --cluster commodity-10gbe --force -o fitted.toml --backend nccl mpi.csv

# The last command that it prints works unchanged with the fitted description.
follow() {  # WORDS TABLE OUTPUT BASE
  expect 0 '^  lambcast collective --cluster ' \
    "$lambcast" calibrate --cluster "$4" --force -o "$3" "$2"
  sed -n '/; forecast with:$/,$s/^  lambcast //p' out >next
  grep -qF -- "$1" next || fail "no '$1' in: $(cat next)"
  expect 0 "$5" bash -c "\"\$0\" $(cat next)" "$lambcast"
}
follow '--op all_gather --gpus 2 --gpus-per-node 1 --backend mpi' mpi.csv fitted.toml commodity-10gbe '^# calibrated for '
follow '--op all_gather --gpus 2 --gpus-per-node 1' nccl.csv "it's mine" commodity-10gbe '^# calibrated for '
printf '# collective: stream\n# ranks: 2\n# nodes: 2\n# streams: 1\nsize_bytes,time_us\n1000000000,1000000\n' >wire.csv
follow '--op send_recv --gpus 2 --gpus-per-node 1' wire.csv wire.toml commodity-10gbe ', not calibrated: '

# A sweep that fails for every value of its axes is rejected before it writes. A sweep from stdin
# equals one from a file.
printf 'name = "x"\n[base]\nmodel = "bert-base"\ncluster = "dgx1-v100"\nmicro_batch = 8\ngrad_accum = 1\nsteps = 10\n' >part.toml
{ cat part.toml; printf '[grid]\ngpus = [8, 16]\n'; } >no_optimizer.toml
expect 2 '--optimizer: is missing' "$lambcast" sweep no_optimizer.toml --out none
printf '[base\nmodel = 1\n' >torn.toml
expect 2 "^lambcast: torn.toml:1: is not a valid TOML: table header: expected ']', saw the end of the line$" "$lambcast" sweep torn.toml
[ -e none ] && fail "a sweep without optimizer has written"
{ cat part.toml; printf 'optimizer = "adam"\n[grid]\ngpus = [8, 16]\n'; } >adam.toml
expect 2 '^lambcast: stdin: is empty \(allowed: a sweep file\)$' "$lambcast" sweep -
printf ' \n' >blank.toml
expect 2 '^lambcast: blank.toml: is empty' "$lambcast" sweep blank.toml --out piped
[ ! -e piped ] || fail 'an empty sweep leaves a folder'
expect 0 '2 rows|2 points' bash -c '"$0" sweep - --out piped --no-report <adam.toml' "$lambcast"

# A partly filled last node is simulated within seconds.
expect 0 '^ +8 ' timeout 30 "$lambcast" collective --op all_to_all --cluster hgx-h100-ndr --gpus 2001 -b 8 -e 8
expect 0 'run: ' timeout 30 "$lambcast" simulate --model bert-large --cluster hgx-h100-ndr --gpus 2001 \
  --optimizer onebit_lamb --micro-batch 4 --grad-accum 1 --steps 100 --freeze-step 20

# A signal ends a long command while it builds a schedule with every rank.
timeout -s TERM --preserve-status -k 5 1 "$lambcast" collective --op all_to_all --symmetry off \
  --cluster hgx-h100-ndr --gpus 2048 --network flow -b 1M -e 1G >out 2>err && ended=0 || ended=$?
[ "$ended" -eq 143 ] || fail "a collective asked to end exits $ended"

# - is stdout, which then contains nothing else.
printf '# collective: all_gather\n# ranks: 2\n# nodes: 2\nsize_bytes,time_us\n1024,30\n1048576,900\n67108864,54000\n' >table.csv
"$lambcast" calibrate --cluster commodity-10gbe -o - table.csv 2>report | "$lambcast" simulate --cluster - --model bert-large \
  --gpus 4 --optimizer lamb --micro-batch 8 --grad-accum 1 --steps 10 >from_pipe || fail 'a description through a pipe'
grep -q '^run: 10 steps in ' from_pipe || fail "nothing forecast of a fitted cluster from stdin: $(cat from_pipe)"
grep -q 'parameters from 3 rows' report || fail "no report on stderr: $(cat report)"
expect 0 '^table,cluster,role,operation,' "$lambcast" validate --cluster commodity-10gbe --against table.csv --rows -
grep -v '^table\|^[^,]*table.csv,' out && fail 'more than rows on stdout'
expect 0 '^  commodity-10gbe ' "$lambcast" presets list clusters

summary

#!/usr/bin/env bash
# The environment of the program may be limited, unusual or missing: memory, open files, signals,
# locales, line ends and bytes of names, logs of gigabytes. The program works, or gives the reason
# in one line.
#
#   environment_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

run=(--model bert-large --cluster paper-eth40-v100 --gpus 8 --optimizer onebit_lamb --micro-batch 16 --steps 1000)
cat >sweep.toml <<'END'
name = "long"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
[grid]
gpus = "4:256:4"
seq_len = "24:480:48"
freeze_step = "0%:100%:25%"
optimizer = ["onebit_lamb", "onebit_adam"]
END
printf '# collective: all_gather\n# ranks: 2\n# nodes: 2\nsize_bytes,time_us\n1024,30\n1048576,900\n67108864,54000\n' >table.csv

# one_line CODES WHAT: the exit code is in CODES, and an error is one line and no abort.
one_line() {
  checks=$((checks + 1))
  [[ " $1 " == *" $got "* ]] || fail "exit code $got, not one of $1: $2: $(tail -2 err)"
  [ "$got" -eq 0 ] || { [ "$(wc -l <err)" -eq 1 ] && ! grep -qE 'terminate|what\(\)|internal error' err; } ||
    fail "not one line: $2: $(cat err)"
}

# Signals that end a program: exit codes are those of shells, and existing files stay.
echo 'name = "older"' >mine.toml
"$lambcast" sweep sweep.toml --no-report --out swept --list gpus=4,8 >/dev/null || fail "no sweep"
for signal in INT TERM; do
  [ $signal = INT ] && code=130 || code=143
  for command in "validate" "sensitivity ${run[*]}" "plan --model gpt2-xl --cluster dgx-a100-80g --gpus 512 --optimizer adamw --global-batch 4096" \
    "calibrate --cluster hgx-h100-ndr --force -o mine.toml table.csv" "report swept" "sweep sweep.toml --no-report --out stopped" \
    "solve gpus --for efficiency=90% ${run[*]}" "collective --cluster commodity-10gbe --gpus 1024 --network flow --symmetry off --op all_to_all -b 1G"; do
    rm -rf stopped
    # A shell ignores SIGINT for its background processes; env restores it.
    # shellcheck disable=SC2086
    env --default-signal=INT "$lambcast" $command >out 2>err </dev/null &
    child=$!
    sleep 0.15
    kill -$signal $child 2>/dev/null
    got=0
    wait $child || got=$?
    checks=$((checks + 1))
    # A command may end before the signal arrives.
    [ $got -eq "$code" ] || [ $got -eq 0 ] || [ $got -eq 3 ] || fail "exit code $got after SIG$signal: $command: $(tail -2 err)"
    grep -qE 'terminate|internal error' err && fail "SIG$signal: $command: $(cat err)"
  done
  grep -q older mine.toml || "$lambcast" collective --cluster ./mine.toml --gpus 2 >/dev/null || fail "SIG$signal left half a description"
done

# Little memory: from too little for the loader to enough for the work.
for kib in 30000 45000 60000 90000 130000 200000 300000; do
  for command in "simulate ${run[*]}" "sweep sweep.toml --no-report --out small --list gpus=4,8" "advise ${run[*]}" \
    "collective --cluster commodity-10gbe --gpus 2048 --network flow --symmetry off --op all_to_all -b 1M -e 1M"; do
    [ -z "${SANITIZED:-}" ] || break 2  # its shadow takes terabytes of addresses
    rm -rf small
    got=0
    # shellcheck disable=SC2086
    (ulimit -v $kib && exec timeout 60 "$lambcast" -q $command >out 2>err </dev/null) 2>loader || got=$?
    # 127: the loader itself found no memory.
    one_line "0 1 127" "$kib KiB: $command"
  done
done
# If the loader has just enough memory, the first work of the program fails.
for kib in $(seq 29000 200 32000); do
  [ -z "${SANITIZED:-}" ] || break
  rm -rf small
  got=0
  (ulimit -v "$kib" && exec timeout 60 "$lambcast" -q sweep sweep.toml --no-report --out small --list gpus=4,8 >out 2>err </dev/null) 2>loader || got=$?
  one_line "0 1 127" "$kib KiB: sweep"
done
# Few open files.
for files in 3 4 5 6 8; do
  for command in "simulate ${run[*]}" "sweep sweep.toml --no-report --out few --list gpus=4,8" "report swept"; do
    rm -rf few
    got=0
    # shellcheck disable=SC2086
    timeout 60 prlimit --nofile=$files "$lambcast" -q $command >out 2>err </dev/null || got=$?
    case $command in
      report*) [[ " 0 1 2 127 " == *" $got "* ]] && ! grep -qE 'terminate|internal error' err || fail "$files files: $command: $got, $(cat err)" ;;
      *) one_line "0 1 2 127" "$files files: $command" ;;
    esac
  done
done

# A decimal comma changes no byte. Its locale is made here if the sources of locales are installed.
"$lambcast" simulate "${run[@]}" --format csv >point.csv
if localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null; then
  [ "$(LOCPATH=$PWD LC_ALL=de_DE.UTF-8 bash -c 'printf %.1f 1,5' 2>/dev/null)" = 1,5 ] || fail "no locale with a decimal comma"
  LOCPATH=$PWD LC_ALL=de_DE.UTF-8 "$lambcast" simulate "${run[@]}" --format csv >comma.csv
  cmp -s point.csv comma.csv || fail "a locale changes the results"
  LOCPATH=$PWD LC_ALL=de_DE.UTF-8 "$lambcast" sweep sweep.toml --out comma --list gpus=4,8 >/dev/null 2>&1 || fail "a sweep under a locale"
  cmp -s swept/results.csv comma/results.csv || fail "a locale changes a sweep"
else
  echo "left out, there are no sources of locales: a decimal comma"
fi

# Line ends of Windows, and the byte order mark that its editors write.
same() { # FILE COMMAND...: the output is the same for each form of the file
  local file=$1 form
  shift
  cp "$file" as_is
  "$@" >plain 2>err || [ $? -eq 3 ] || fail "$*: $(cat err)"  # 3: an answer as well
  for form in 's/$/\r/' '1s/^/\xef\xbb\xbf/' '1s/^/\xef\xbb\xbf/; s/$/\r/'; do
    sed "$form" as_is >"$file"
    checks=$((checks + 1))
    "$@" >other 2>err || [ $? -eq 3 ] || fail "$form in $file: $(cat err)"
    # File hashes and cited file names may differ, figures may not.
    cmp -s <(grep -v fnv1a64 plain) <(grep -v fnv1a64 other) || fail "$form in $file: $(diff plain other | head -3)"
  done
  cp as_is "$file"
}
"$lambcast" presets show paper-eth40-v100 >cluster.toml
"$lambcast" presets show bert-large >model.toml
"$lambcast" presets show v100-32g >device.toml
printf '{\n  "train_batch_size": 128,\n  // comment\n  "optimizer": {"type": "Lamb"},\n  "fp16": {"enabled": true}\n}\n' >ds.json
printf '%s\n' '--num-layers 24 --hidden-size 1024 --num-attention-heads 16' '--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257' \
  '--micro-batch-size 2 --global-batch-size 64 --bf16 --train-iters 300' >args.txt
printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\nsteps = 10\n[parallelism]\ntensor_parallel_degree = 2\n' >job.toml
printf '{"model_type": "gpt2", "n_embd": 768,\n "n_head": 12, "n_layer": 12,\n "n_positions": 1024, "vocab_size": 50257}\n' >config.json
printf '[[jobs]]\nop = "all_gather"\nsize = "1 MiB"\ngpus = 16\n' >jobs.toml
printf 'id,stage,quantity,measured,role,max_error,model,cluster,optimizer,backend,gpus,micro_batch,grad_accum,seq_len,steps\nmine,uniform,step_time_ms,1,unseen,9e9,bert-large,paper-eth40-v100,lamb,nccl,8,16,1,128,1\n' >cases.csv
same cluster.toml "$lambcast" simulate --model bert-large --cluster ./cluster.toml --gpus 8 --optimizer lamb --micro-batch 4 --steps 10
same model.toml "$lambcast" simulate --model ./model.toml --cluster paper-eth40-v100 --gpus 8 --optimizer lamb --micro-batch 4 --steps 10
same device.toml "$lambcast" simulate "${run[@]}" --device ./device.toml
same ds.json "$lambcast" simulate --model bert-large --cluster paper-eth40-v100 --gpus 8 --config ds.json --steps 10
same args.txt "$lambcast" simulate --megatron-args args.txt --cluster dgx-a100-80g --gpus 8
same job.toml "$lambcast" simulate --torchtitan job.toml --cluster hgx-h100-ndr --gpus 16
same config.json "$lambcast" simulate --model ./config.json --cluster paper-eth40-v100 --gpus 8 --optimizer lamb --micro-batch 4 --steps 10
same jobs.toml "$lambcast" collective --cluster dgx-a100-80g --jobs jobs.toml
same sweep.toml "$lambcast" sweep sweep.toml --dry-run
same table.csv "$lambcast" validate --against table.csv --cluster commodity-10gbe --max-error 9
same cases.csv "$lambcast" validate --against cases.csv

# File names with any bytes.
odd=$'odd \xff\xfe\n name'
mkdir "$odd"
cp cluster.toml "$odd/c.toml"
expect 0 'GPUs' "$lambcast" simulate --model bert-large --cluster "$odd/c.toml" --gpus 8 --optimizer lamb --micro-batch 4 --steps 10
expect 2 'cannot be read' "$lambcast" simulate --model "$odd/none.toml" --cluster paper-eth40-v100 --gpus 8
"$lambcast" -q sweep sweep.toml --no-report --list gpus=4,8 --list cluster="$odd/c.toml" --out "$odd/out" >out 2>err || fail "a sweep into such a folder: $(cat err)"
"$lambcast" report "$odd/out" >out 2>err || fail "a report of such a folder: $(cat err)"
iconv -f UTF-8 -t UTF-8 "$odd/out/report.html" >/dev/null || fail "the page is no UTF-8"

# Files of gigabytes are rejected in little memory by all readers.
truncate -s 2G huge.log
for command in "freeze huge.log" "calibrate --cluster commodity-10gbe -o new.toml huge.log" "validate --against huge.log --cluster commodity-10gbe" \
  "simulate --model ./huge.log --cluster paper-eth40-v100 --gpus 8" "collective --cluster dgx-a100-80g --jobs huge.log" "sweep huge.log"; do
  # shellcheck disable=SC2086
  expect 2 'larger than 64 MiB' bash -c '[ -n "${SANITIZED:-}" ] || ulimit -v 400000; exec "$@"' - "$lambcast" $command
done
cp -r swept many
truncate -s 2G many/results.csv
expect 2 'results.csv' bash -c '[ -n "${SANITIZED:-}" ] || ulimit -v 400000; exec "$@"' - "$lambcast" report many
summary

#!/usr/bin/env bash
# Output of the program on a terminal and elsewhere: colour, width, suggestions, quiet, help,
# references.
#
#   terminal_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

run=(--model bert-large --gpus 32 --global-batch 4096 --micro-batch 16 --steps 5993 --cluster commodity-10gbe
  --optimizer onebit_lamb --freeze-step 1000)
escape=$'\033'

# Suggestions
expect 2 "unknown flag '--micro-bacth', did you mean '--micro-batch'" "$lambcast" simulate --micro-bacth 4
expect 2 "unknown command 'simulat', did you mean 'simulate'" "$lambcast" simulat
expect 2 "unknown command 'sensitivty', did you mean 'sensitivity'" "$lambcast" sensitivty --gpus 4
expect 2 "unknown flag '--colour', did you mean '--color'" "$lambcast" simulate "${run[@]}" --colour always
expect 2 "nic.bandwidth: unknown key .*: write cluster.nic.bandwidth" "$lambcast" simulate "${run[@]}" --set nic.bandwidth=1Gbit/s
expect 2 "--color" "$lambcast" simulate "${run[@]}" --color sometimes

# Colour: none in a file; some if requested or on a terminal; none with NO_COLOR
expect 0 '^Pays: ' "$lambcast" advise "${run[@]}"
grep -q "$escape" out && fail 'colour to a file'
expect 0 "^$escape\\[1;32mPays" "$lambcast" advise "${run[@]}" --color always
expect 0 "^$escape\\[1;32mPays" "$lambcast" --color always advise "${run[@]}"
if command -v script >/dev/null; then
  on_terminal() { TERM=xterm script -qec "stty cols 80; $*" /dev/null </dev/null | tr -d '\r'; }
  on_terminal "$lambcast" advise "${run[@]}" >seen
  grep -q "^$escape\\[1;32mPays" seen || fail "no colour on a terminal: $(head -2 seen)"
  NO_COLOR=1 on_terminal "$lambcast" advise "${run[@]}" >seen
  grep -q "$escape" seen && fail 'colour in spite of NO_COLOR'
  # The answer fits a screen of 80 x 24; help has at most 80 columns, and at most those of the
  # terminal.
  on_terminal "$lambcast" simulate "${run[@]}" >seen
  [ "$(wc -l <seen)" -le 24 ] || fail "an answer of more than a screen: $(cat seen)"
  for width in 50 130; do
    TERM=xterm script -qec "stty cols $width; $lambcast plan --help" /dev/null </dev/null | tr -d '\r' >seen
    awk -v most=$((width < 80 ? width : 80)) 'length($0) > most { print; exit }' seen >wide
    [ ! -s wide ] || fail "help wider than it may be: $(cat wide)"
  done
  checks=$((checks + 5))
  # Every answer fits the terminal.
  awk 'BEGIN { print "step,loss"; for (k = 10; k <= 20000; k += 10) printf "%d,%.17g\n", k, 1 + 5 * 0.98 ^ k }' >losses.csv
  for answer in "advise ${run[*]}" "simulate ${run[*]}" "simulate ${run[*]} --then seq_len=512" \
    'simulate --model gpt2-xl --cluster dgx-a100-80g --gpus 16 --pp 4 --grad-accum 8 --micro-batch 1 --optimizer adamw' \
    "sensitivity ${run[*]}" "solve freeze_step --for run_time=70min ${run[*]:0:14}" \
    "sweep ${run[*]} --list seq_len=128,512 --list cluster.nic.bandwidth=1Gbit/s,10Gbit/s" \
    "advise ${run[*]} --list seq_len=128,512" 'presets list' validate 'freeze losses.csv --losses' \
    "simulate ${run[*]} --explain plan" "simulate ${run[*]} --explain prices" "simulate ${run[*]} --explain stats" \
    "sweep ${run[*]:0:10} --optimizer onebit_lamb --list freeze_step=1000,2000 --list kernels=deepspeed,fused --list cluster.nic.bandwidth=1Gbit/s,10Gbit/s --list cluster.node.gpu_link=5GB/s,10GB/s" \
    'help keys' 'help descriptions' 'help columns' 'help fields' 'help findings' 'help metrics' 'measure --help' \
    'simulate --model gpt2-xl --cluster dgx-a100-80g --gpus 16 --pp 4 --grad-accum 8 --micro-batch 1 --optimizer adamw --framework megatron --zero-stage 1 --explain prices' \
    'collective --cluster hgx-h100-ndr --gpus 16 -b 1K -e 1G -f 8' 'collective --cluster commodity-10gbe --gpus 1 -b 1M -e 1M' \
    'presets show of' 'simulate --model gpt2-xl --cluster dgx-a100-80g --gpus 6 --tp 2 --pp 4 --micro-batch 1 --optimizer adamw' \
    'compare dgx-a100-80g emulated-ethernet-100mbit --model bert-large --gpus 8 --optimizer lamb --micro-batch 16 --grad-accum 4' \
    'plan --model gpt2-xl --cluster dgx-a100-80g --gpus 16 --global-batch 64 --framework megatron --precision bf16'; do
    NO_COLOR=1 on_terminal "$lambcast" -q "$answer" | sed 's/.*\r//' >seen
    [ -s seen ] || fail "nothing from: $answer"
    awk 'length($0) > 80 { print; exit }' seen >wide
    [ ! -s wide ] || fail "wider than the terminal: $answer"$'\n'"$(cat wide)"
    checks=$((checks + 1))
  done
fi
# An exceeded limit is coloured anywhere in the line.
expect 3 "$escape\\[1;31mPAST ITS LIMIT" "$lambcast" --color always validate --canary
# Sentences are not wrapped if stdout is a file.
expect 0 '^Pays: .*kernels\.$' "$lambcast" advise "${run[@]}"

# Tables of 80 columns
narrow() {
  "$lambcast" "$@" >table || fail "$*"
  awk 'length($0) > 80 && /  .*  .*  /' table >wide
  [ ! -s wide ] || fail "a table wider than 80 columns: $1"$'\n'"$(cat wide)"
  checks=$((checks + 1))
}
narrow advise "${run[@]}"
narrow sweep "${run[@]}" --list seq_len=128,512
narrow advise "${run[@]}" --list seq_len=128,512
narrow solve freeze_step --for run_time=70min "${run[@]:0:14}"

# Help: no line wider than 80, groups, types; every command has its own help
for command in "" simulate advise plan compare sensitivity solve sweep report rerun collective measure profile calibrate validate presets help; do
  # shellcheck disable=SC2086
  "$lambcast" $command --help >help || fail "no help of $command"
  awk 'length($0) > 80' help >wide
  [ ! -s wide ] || fail "help of '$command' is wider than 80 columns: $(head -3 wide)"
  checks=$((checks + 1))
done
"$lambcast" --help >help
for group in Questions 'Many at once' 'Your machine'; do grep -q "^$group" help || fail "no group $group"; done
"$lambcast" simulate --help >help
for heading in 'What runs where' 'Batch and length of the run' Layout Output; do
  grep -q "^$heading" help || fail "no heading $heading in the help of simulate"
done
grep -qE -- '--gpus N' help || fail 'no type behind --gpus'
"$lambcast" help solve >help && grep -q 'METRIC=VALUE' help || fail 'help solve is not the help of solve'

# Quiet and verbose
"$lambcast" sweep "${run[@]}" --list seq_len=128,512 2>err >/dev/null -v
grep -qE 'took [0-9.]+ s and [0-9]+ MB' err || fail "-v says nothing: $(cat err)"
printf 'name = "q"\n[base]\nmodel = "bert-large"\ncluster = "commodity-10gbe"\ngpus = 32\n[grid]\noptimizer = ["lamb", "adam"]\n[[part]]\nbase = {micro_batch = 4, grad_accum = 1}\n[[part]]\nbase = {micro_batch = 4, grad_accum = 1}\n[part.grid]\noptimizer = ["onebit_adam"]\n' >parts.toml
"$lambcast" sweep parts.toml --list optimizer=lamb --dry-run 2>err >/dev/null
grep -q 'is left out' err || fail "no note: $(cat err)"
"$lambcast" sweep parts.toml --list optimizer=lamb --dry-run -q 2>err >/dev/null
[ ! -s err ] || fail "-q and yet: $(cat err)"

# -q drops the notes of a table and keeps its warnings.
expect 0 '^notes: onebit-removed, ' "$lambcast" simulate "${run[@]/1000/100}"
expect 0 '^warning: .*\[freeze-early\]$' "$lambcast" simulate "${run[@]/1000/100}" -q
grep -q '^notes\?: ' out && fail "-q and yet: $(grep '^notes\?: ' out)"

# - for stdin and stdout
"$lambcast" presets show commodity-10gbe | "$lambcast" simulate "${run[@]/commodity-10gbe/-}" --format json >piped ||
  fail 'a cluster from stdin'
grep -q '"cluster"' piped || fail 'nothing forecast of a cluster from stdin'
"$lambcast" sweep "${run[@]}" --list seq_len=128,512 --write-sweep - | "$lambcast" sweep - --out piped_sweep --no-report >/dev/null ||
  fail 'a sweep from stdin'
[ "$(wc -l <piped_sweep/results.csv)" -eq 3 ] || fail 'a sweep from stdin has other rows'
[ ! -e ./- ] || fail 'a file named - was written'

# References are complete: they are compared with their sources.
expect 0 '^  global_batch +whole number' "$lambcast" help keys
for key in $("$lambcast" simulate --help-all | grep -oE '^  --[a-z0-9-]+' | sed 's/^  --//; s/-/_/g'); do
  case $key in help | help_all | set | format | export | trace | strict | explain | then | mtbf | checkpoint* | restart* | startup* | evaluat* | skipped*) continue ;; esac
  grep -qE "^  $key " out || fail "help keys lacks $key"
done
expect 0 '^  nic.bandwidth +bandwidth with unit, with its evidence' "$lambcast" help descriptions
mv out descriptions
for preset in $("$lambcast" presets list all | awk '/^  /{print $1}'); do
  "$lambcast" presets show "$preset" | awk '
    /^\[\[/ { gsub(/[][ ]/, ""); table = $0 "[]."; next }
    /^\[/ { gsub(/[][ ]/, ""); table = $0 "."; next }
    /^[a-z0-9_]+ *=/ { sub(/ *=.*/, ""); print table $0 }' | sort -u
done | sort -u >present
while read -r key; do
  awk -v key="$key" '$1 == key { found = 1 } END { exit !found }' descriptions || fail "help descriptions lacks $key"
done <present
[ "$(wc -l <present)" -gt 60 ] || fail "only $(wc -l <present) keys in presets"
expect 0 '^  speedup_low' "$lambcast" help columns
expect 0 '^  run.time_low_s' "$lambcast" help fields
expect 0 '^  out-of-memory +the run does not fit' "$lambcast" help findings
expect 0 '^  warmup_step_time_us +a whole optimizer step, gradient accumulation' "$lambcast" help columns
expect 0 '^  efficiency ' "$lambcast" help metrics
expect 0 '^\| `speedup_low` \|' "$lambcast" help reference
expect 2 "did you mean 'keys'" "$lambcast" help key
expect 0 '^\.TH LAMBCAST 1' "$lambcast" help man
expect 0 '^complete -o filenames -F _lambcast lambcast$' "$lambcast" help bash
bash -n out || fail 'the completion of bash is no bash'
expect 0 '^#compdef lambcast' "$lambcast" help zsh
# Types these words and a tab into a separate zsh, and reads its completion.
if command -v zsh >/dev/null; then
  mkdir -p functions
  mv out functions/_lambcast
  cat >complete.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= RPS1=; stty -echo; fpath=($PWD/functions \$fpath); autoload -Uz compinit; compinit -u -D
show() { print -r -- \"<<\$BUFFER>>\" }; zle -N show; bindkey '^X' show; print READY"
zpty -r shell got '*READY*'
zpty -w -n shell "$1"$'\t\x18'
zpty -r shell got '*<<*>>*'
print -r -- "$got"
END
  completes() { # WORDS WANTED
    timeout 60 zsh -f complete.zsh "$1" >completed 2>&1
    grep -qF -- "$2" completed || fail "zsh makes of '$1' another thing than '$2': $(tail -3 completed)"
    checks=$((checks + 1))
  }
  completes 'lambcast sol' '<<lambcast solve >>'
  completes 'lambcast advise --clus' '<<lambcast advise --cluster >>'
  completes 'lambcast advise --cluster commodity-25' '<<lambcast advise --cluster commodity-25gbe >>'
  completes 'lambcast simulate --cluster commodity-10' 'commodity-100gbe'
else
  echo "left out, there is no zsh: its completion"
fi

summary

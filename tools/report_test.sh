#!/usr/bin/env bash
# A sweep has a report whether or not gnuplot works, and with any names. It ends immediately when
# interrupted, and does not overwrite other files.
#
#   report_test.sh LAMBCAST
set -uo pipefail
lambcast=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect CODE COMMAND...: checks the exit code; stdout and stderr are in `out` and `err`.
expect() {
  local code=$1 got=0
  shift
  timeout 60 "$@" >out 2>err </dev/null || got=$?
  [ "$got" -eq "$code" ] || fail "exit code $got, not $code: $*"$'\n'"$(tail -3 err)"
}

# If the length of the run is an axis, the share of freeze_step varies too.
cat >steps.toml <<'END'
name = "steps"
[base]
model = "bert-base"
cluster = "paper-eth40-v100"
gpus = 8
micro_batch = 16
freeze_step = 100
[grid]
optimizer = ["lamb", "onebit_lamb"]
steps = [1000, 2000]
END
expect 0 "$lambcast" sweep steps.toml --out steps
[ -s steps/report.html ] || fail "no page where steps is an axis"
# The page allows its own scripts by their hashes, and no other inline script.
python3 - steps/report.html <<'END' || fail "the page's policy does not name its scripts"
import base64, hashlib, re, sys
page = open(sys.argv[1], encoding="utf-8", newline="").read()
policy = re.search(r"script-src ([^\"]*)\"", page).group(1).split()
scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
assert len(scripts) >= 8 and policy == [f"'sha256-{one}'" for one in sums], policy
assert not re.search(r"<[^>]+ on[a-z]+=", re.sub(r"(?s)<script.*?</script>", "", page))
END

# Pictures have no sequence: its length is 0 in every row.
vision=(sweep --model vit-l16 --cluster commodity-10gbe --optimizer lamb --micro-batch 32 --grad-accum 1
  --steps 1000 --list gpus=8,16 --out vision)
expect 0 "$lambcast" "${vision[@]}"
expect 0 "$lambcast" "${vision[@]}" --resume
grep -Eq ': 2 kept, 0 run now$' out || fail "a resume with nothing left does not say so: $(cat out)"
expect 0 "$lambcast" report vision
[ -s vision/report.html ] || fail "no page of a vision model"
sed -e 's/name = "steps"/name = "samples"/' -e 's/^steps = .*/samples = [1000000, 2000000]/' \
  steps.toml >samples.toml
expect 0 "$lambcast" sweep samples.toml --out samples
[ -s samples/report.html ] || fail "no page where samples is an axis"
expect 0 "$lambcast" report samples

# 50,000 points and their page need at most 330 MB of addresses.
sed -e 's/name = "steps"/name = "many"/' -e '/^steps = /d' -e '/^optimizer = /d' -e '/^\[grid\]/d' \
  steps.toml >many.toml
echo 'optimizer = "onebit_lamb"' >>many.toml
(ulimit -v 337920 && expect 0 "$lambcast" sweep many.toml --scan steps=1000:50999:1 --out many &&
  exit "$failures") || fail "50,000 points take more than 330 MB"
[ "$(wc -l <many/results.csv)" -eq 50001 ] && [ -s many/report.html ] ||
  fail "50,000 points leave no page"

# 1,200,000 rows exceed the limit of kept rows: a report of any number takes the same memory. A
# sanitized program needs terabytes of addresses for its shadow memory.
mkdir rows
awk 'BEGIN {
  printf "model,cluster,optimizer,backend,nodes,gpus,micro_batch,grad_accum,global_batch,seq_len,steps,freeze_step"
  split("uniform warmup compression silent", kinds, " ")
  split("forward backward exposed_comm compress decompress optimizer bubble", parts, " ")
  for (k = 1; k <= 4; ++k) {
    printf ",%s_step_time_us", kinds[k]
    for (p = 1; p <= 7; ++p) printf ",%s_%s_us", kinds[k], parts[p]
  }
  print ",run_time_s,run_samples_per_s,speedup_vs_baseline,baseline_optimizer,status,cost_source"
  for (row = 0; row < 1200000; ++row) {
    steps = 1000 + int(row / 2)
    if (row % 2) print "m,c,onebit_lamb,nccl,2,8,16,4,512,128," steps ",100,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,lamb,infeasible,"
    else print "m,c,onebit_lamb,nccl,2,8,16,4,512,128," steps ",100,,,,,,,,,200,50,100,50,0,0,0,0,150,50,100,0,0,0,0,0,,,,,,,,," \
      steps / 5000 "," 2560000 - steps ",1." steps ",lamb,ok,assumed"
  }
}' >rows/results.csv
([ -n "${SANITIZED:-}" ] || ulimit -v 524288
  expect 0 "$lambcast" report rows && exit "$failures") || fail "1,200,000 rows take more than 512 MiB"
grep -q 'Of 1200000 points 600000 ran and 600000 cannot' rows/report.html || fail "rows are not counted"
grep -q 'Counts, medians, best and worst are of all rows' rows/report.html || fail "nothing says what is of a part"
rm -r rows

# A scan of bandwidths at one GPU count has a break-even.
cat >scan.toml <<'END'
name = "scan"
[base]
model = "bert-large"
cluster = "paper-edr100-v100"
gpus = 256
micro_batch = 16
steps = 5993
global_batch = 65536
freeze_step = 1000
optimizer = "onebit_lamb"
[grid]
"cluster.nic.bandwidth" = ["1 Gbit/s", "10 Gbit/s", "100 Gbit/s", "400 Gbit/s"]
END
expect 0 "$lambcast" sweep scan.toml --out scan --jobs 1
grep -qE '1-bit LAMB over LAMB pays below [0-9.]+ Gbit/s \([0-9.]+ to [0-9.]+\) on paper-edr100-v100 \(256 GPUs\)' out ||
  fail "no break-even in a scan at one GPU count: $(cat out)"

# If gnuplot fails or is missing, only the pictures are missing.
mkdir bin none
printf '#!/bin/sh\necho broken >&2\nexit 1\n' >bin/gnuplot
chmod +x bin/gnuplot
expect 0 env PATH="$folder/bin:/usr/bin:/bin" "$lambcast" sweep steps.toml --out failing
grep -q "^lambcast: no picture '.*': gnuplot failed on .*: broken" err || fail "$(cat err)"
[ -s failing/report.html ] || fail "no page where gnuplot fails"
expect 0 env PATH="$folder/none" "$lambcast" report failing
grep -q 'gnuplot is not installed' err || fail "$(cat err)"

# A gnuplot that hangs and ignores signals does not delay lambcast.
printf '#!/bin/sh\ntrap "" INT TERM\ntouch %s/drawing\nexec sleep 50\n' "$folder" >bin/gnuplot
stop_with() { # SIGNAL CODE COMMAND...
  local signal=$1 code=$2 got=0 child
  shift 2
  rm -f drawing
  PATH="$folder/bin:/usr/bin:/bin" "$@" >out 2>err &
  child=$!
  for _ in $(seq 3000); do
    [ -e drawing ] && break
    sleep 0.01
  done
  # Bash makes background children ignore SIGINT; lambcast installs its handler nevertheless.
  SECONDS=0
  kill -"$signal" "$child"
  wait "$child" || got=$?
  [ "$got" -eq "$code" ] || fail "exit code $got, not $code, after SIG$signal while drawing: $(cat err)"
  [ "$SECONDS" -lt 20 ] || fail "$SECONDS s after SIG$signal"
}
stop_with INT 130 "$lambcast" sweep steps.toml --out hanging
grep -q '^4 points' out || fail "the results of a stopped drawing are not on stdout"
stop_with TERM 143 "$lambcast" report hanging
[ -e hanging/report.html ] && fail "a page of half the pictures"

# Files of other programs are kept.
mkdir foreign
echo '<title>mine</title>' >foreign/report.html
expect 2 "$lambcast" sweep steps.toml --out foreign
grep -q 'foreign/report.html: is not a page of lambcast' err || fail "$(cat err)"
[ -e foreign/results.csv ] && fail "a sweep runs before it refuses its folder"
cp failing/results.csv foreign/
expect 2 "$lambcast" report foreign
[ "$(cat foreign/report.html)" = '<title>mine</title>' ] || fail "a page of others is overwritten"

# A file without results is rejected at once, in one line.
mkdir pipe zero
mkfifo pipe/results.csv
ln -s /dev/zero zero/results.csv
expect 2 "$lambcast" report pipe
grep -qx "lambcast: pipe/results.csv: cannot be read: it is not a regular file" err || fail "$(cat err)"
expect 2 "$lambcast" report zero
grep -qx "lambcast: zero/results.csv: is a symbolic link, which is not followed: remove it" err || fail "$(cat err)"
printf 'model\n"x' >zero.csv
rm zero/results.csv pipe/results.csv
head -c 3000000 /dev/zero | tr '\0' x >>zero.csv
cp zero.csv zero/results.csv
expect 2 "$lambcast" report zero
[ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(head -c 300 err)"

# Names that do harm to gnuplot, SVG, spreadsheets and terminals.
"$lambcast" presets show paper-eth40-v100 | sed "s/^name = .*/name = \"=1+1'''x]]>y\"/" >hostile.toml
sed 's/"paper-eth40-v100"/".\/hostile.toml"/; s/^steps = .*/gpus = [4, 8]\nsteps = [1000]/; s/^gpus = 8$//' \
  steps.toml >names.toml
expect 0 "$lambcast" sweep names.toml --out names
grep -q 'no picture' err && fail "a name breaks a picture: $(cat err)"
grep -q "^bert-base,\"'=1+1'''x\]\]>y\"," names/results.csv || fail "a formula: $(sed -n 2p names/results.csv | head -c 80)"
grep -q "on =1+1'''x]]>y" out || fail "a guarded name does not read back: $(cat out)"
if command -v gnuplot >/dev/null; then
  grep -q ']]>' names/plots/throughput.svg && fail "a name breaks the SVG"
fi
# Such names for a model and in the texts of a sweep: nothing runs and nothing is markup, in the
# page, in the pictures and in their sources.
harm="@x\`touch ran\`\$(touch ran)%s{/Bold}</script><script>owned()</script>"
"$lambcast" presets show bert-base | sed "s|^name = .*|name = \"$harm\"|" >model.toml
sed -e 's/"bert-base"/".\/model.toml"/' -e "s|^name = .*|name = \"title\"\ndescription = \"$harm\"|" \
  steps.toml >title.toml
expect 0 "$lambcast" sweep title.toml --out title
grep -q 'no picture' err && fail "a name breaks a picture: $(cat err)"
[ -z "$(find . -name ran)" ] || fail "a name ran: $(find . -name ran)"
grep -rqF '<script>owned' title --include='*.html' --include='*.svg' && fail "a name is markup"
grep -qF "$harm" title/results.csv || fail "a name is another one in results.csv"
allowed=$(grep -o "'sha256-" title/report.html | wc -l)
[ "$(grep -oF '<script' title/report.html | wc -l)" -eq $((allowed + 1)) ] ||
  fail "more scripts than the page allows, beside its rows"
"$lambcast" presets show bert-base | sed 's/^name = .*/name = "a\\u001b[31mb"/' >escape.toml
expect 2 "$lambcast" simulate --model ./escape.toml --cluster paper-eth40-v100 --gpus 8
grep -q "escape.toml:[0-9]*:.*name: 'a \[31mb' has control characters" err || fail "$(cat err)"
expect 2 "$lambcast" simulate --model $'x\x1b[31m' --cluster paper-eth40-v100 --gpus 8
grep -q $'\x1b' err && fail "an escape byte reaches the terminal"

echo "$failures failures"
[ "$failures" -eq 0 ]

#!/usr/bin/env bash
# Tests convergence_study on the command line: the arguments it rejects, and its report of the recorded curves.
#
#   convergence_test.sh CONVERGENCE_STUDY CURVES.csv
set -uo pipefail
study=$(readlink -f "$1") curves=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refused PATTERN WORD...: exit code 2, one line that matches on stderr, nothing on stdout
refused() {
  local pattern=$1 got=0
  shift
  timeout 60 "$study" "$@" >out 2>err </dev/null || got=$?
  [ "$got" -eq 2 ] || fail "exit code $got, not 2: $*"
  [ -s out ] && fail "an error prints to stdout: $*"
  [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $*"$'\n'"$(cat err)"
  grep -qE -- "^convergence_study: .*$pattern" err || fail "no '$pattern' in: $(cat err)"
}

refused 'train or train-large CURVES.csv'
refused 'train or train-large CURVES.csv' train
refused 'train or train-large CURVES.csv' report curves.csv
refused 'train or train-large CURVES.csv' variance
refused 'train or train-large CURVES.csv' retrain curves.csv
refused "THREADS: '0' \(allowed: 1 to 1024\)" train curves.csv 0
refused "THREADS: 'two'" train curves.csv two
refused "THREADS: '2x'" train curves.csv 2x
refused "unknown run 'lam', did you mean 'lamb'" train curves.csv 1 lam
refused "GPUS: '65537' \(allowed: 1 to 65536\)" report "$curves" . commodity-10gbe 65537
refused "unknown cluster 'commodity-10gb'" report "$curves" . commodity-10gb
refused 'nowhere.csv' report nowhere.csv .
printf 'run,step\nlamb,50\n' >other.csv
cp other.csv kept.csv
refused 'other.csv' report other.csv .
refused 'other.csv' train other.csv
cmp -s other.csv kept.csv || fail "a file that is refused was written"
grep -v '^lamb,0,' "$curves" >without.csv
refused 'no curve of lamb' report without.csv .

# If the file contains all the runs, nothing is trained and the file stays the same.
cp "$curves" all.csv
timeout 60 "$study" train all.csv 2 lamb adam 2>err || fail "train of recorded runs: $(cat err)"
[ -s err ] && fail "a run on record is trained again: $(cat err)"
cmp -s "$curves" all.csv || fail "a file that lacks nothing was changed"

mkdir of
timeout 120 "$study" report "$curves" of commodity-10gbe 64 2>err || fail "report: $(cat err)"
[ "$(cut -d, -f1-6 of/summary.csv)" = "$(cut -d, -f1-6 "$(dirname "$curves")/summary.csv")" ] ||
  fail "a report of the recorded curves has other runs, steps or losses than summary.csv"
for name in lamb_steps adam_hours optimizer_steps bits_hours sparse_steps local_hours; do
  [ -s "of/plots/$name.gp" ] || fail "no $name.gp"
  [ -s "of/plots/$name.dat" ] || fail "no $name.dat"
done
# Times depend on the cluster: on a ten times faster network the lamb run is shorter.
mkdir fast
timeout 120 "$study" report "$curves" fast commodity-100gbe 64 2>err || fail "report: $(cat err)"
hours() { sed -n 's/^lamb,.*,\([^,]*\),[^,]*,[^,]*$/\1/p' "$1/summary.csv"; }
awk -v slow="$(hours of)" -v fast="$(hours fast)" 'BEGIN { exit !(fast > 0 && fast < slow) }' ||
  fail "lamb takes $(hours of) h, and $(hours fast) h with 100 Gbit/s"

echo "$failures failures"
[ "$failures" -eq 0 ]

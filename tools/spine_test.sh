#!/usr/bin/env bash
# Tests the whole way from a machine to its forecasts: a GPU is profiled (the emulated device), every layout of the manual is
# simulated with it, three emulated hosts are surveyed and measured, a description is fitted and validated on sizes that it has
# not seen, and a run is simulated with both. Network namespaces need root; without them, and without mpirun, the test ends
# after the layouts with exit code 77 (skipped, with the reason).
#
#   spine_test.sh LAMBCAST PROFILE_ON_CPU YIELD_SLEEP
set -euo pipefail
lambcast=$(readlink -f "$1") profile_on_cpu=$(readlink -f "$2")
RANK_PRELOAD=$(readlink -f "$3")
export RANK_PRELOAD
root=$(dirname "$(dirname "$(readlink -f "$0")")")
ethernet=$root/validate/emulated_ethernet/emulated-ethernet
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $1"; exit 1; }

# The GPU. The emulated device takes the place of an H100, whose preset adds the rates that it cannot time (products).
"$profile_on_cpu" profile.toml || fail "the emulated device is not profiled"
sed 's/"emulated device"/"NVIDIA H100 80GB HBM3"/' profile.toml >device.toml
layouts=0
while read -r _ command; do
  read -ra words <<<"$command"
  "$lambcast" "${words[@]}" --device device.toml >out 2>&1 || fail "$command: $(cat out)"
  grep -q '^step within ' out || fail "$command has no interval: $(cat out)"
  layouts=$((layouts + 1))
done < <(sed 's/ --explain prices//' "$root/tools/manual/layouts.md" | grep '^lambcast simulate')
[ $layouts -ge 6 ] || fail "only $layouts layouts are in the manual"

reason=$("$ethernet" check 2>&1) || { echo "skipped after the layouts: $reason"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped after the layouts: there is no mpirun"; exit 77; }

# The network: the nearest preset, with the rate of this NIC. Slow links, so that shared cores do not decide the times.
"$lambcast" presets show commodity-10gbe |
  sed 's/^gpus = 4/gpus = 1/; s/"10 Gbit\/s"/"10 Mbit\/s"/; s/"9.4 Gbit\/s"/"9.4 Mbit\/s"/' >preset.toml
on_hosts() { "$ethernet" with 3 10mbit "$@"; }
began=$SECONDS
on_hosts "$lambcast" survey --cluster "$folder/preset.toml" --ops all_reduce,all_gather,all_to_all --types float -b 64K -e 512K -f 2 \
  --seconds-per-size 0.5 --budget 150 -o "$folder/mine" >out 2>&1 || fail "the survey ends with $?: $(cat out)"
took=$((SECONDS - began))
[ $took -le 180 ] || fail "the survey takes $took s"
tables=(mine/tables/*.csv)
[ ${#tables[@]} = 6 ] || fail "not 3 operations over 2 and 3 hosts: ${tables[*]}"
[ "$(wc -l <mine/forecast.csv)" = 25 ] || fail "not every row is forecast: $(cat mine/forecast.csv)"
error=$(sed -nE 's/^all: .*, ([0-9.]+)% after$/\1/p' out)
echo "survey of 3 hosts: $took s, median error on $(($(wc -l <mine/held_out.csv) - 1)) held-out rows $error %"
awk -v e="$error" 'BEGIN { exit !(e != "" && e <= 5) }' || fail "median error on held-out sizes: $error %"

# Measured once more, at other sizes: fitted, and validated on tables that the fit did not see.
on_hosts "$lambcast" measure --backend mpi --tables "$folder/more" --op all_reduce,all_gather -d float,uint8 -b 96K -e 384K -f 2 \
  -n 3 -a 3 --statistic median >out 2>&1 || fail "the measurement ends with $?: $(cat out)"
"$lambcast" calibrate --in-place mine/tables/*.csv more/tables/all_reduce-n2.csv --cluster preset.toml -o cluster.toml >out 2>&1 ||
  fail "calibrate: $(cat out)"
for table in all_gather-n3 all_gather-uint8-n3 all_gather-n2; do
  "$lambcast" validate --in-place --against "more/tables/$table.csv" --cluster cluster.toml --max-error 10% >out 2>&1 ||
    fail "$table is not forecast within 10 %: $(cat out)"
done
"$lambcast" simulate --cluster cluster.toml --device device.toml --model bert-large --gpus 3 --optimizer onebit_lamb --backend mpi \
  --global-batch 48 --micro-batch 16 --steps 1000 --freeze-step 200 >out 2>&1 || fail "simulate: $(cat out)"
grep -q '^step within ' out || fail "the run has no interval: $(cat out)"
echo "profile, $layouts layouts, survey, measure, calibrate, validate, simulate: done"

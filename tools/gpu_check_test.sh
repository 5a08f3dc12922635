#!/usr/bin/env bash
# tools/gpu-check with a simulated GPU and programs (GPU_CHECK_FAKE_PROGRAMS): states of its pieces,
# its record, and how a second call continues.
#
#   gpu_check_test.sh
set -euo pipefail
check=$(readlink -f "$(dirname "$0")/gpu-check")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out

fail() {
  echo "FAILED: $*"
  cat "$out/summary.txt" "$out/record.tsv"
  exit 1
}
program() { # NAME LINES...
  printf '#!/bin/sh\n%s\n' "${@:2}" >"$folder/$1"
  chmod +x "$folder/$1"
}
run() { # EXPECTED_CODE ARGUMENTS...
  local code=0
  GPU_CHECK_FAKE_PROGRAMS=$folder/bin GPU_BUILD=$folder/build GPU_CHECK_COMMIT=c0ffee "$check" "${@:2}" >"$folder/stdout" 2>&1 ||
    code=$?
  [ $code = "$1" ] || { cat "$folder/stdout"; fail "exit code $code, not $1: ${*:2}"; }
}
rows() { grep -c "$@" "$out/record.tsv" || true; }

# The time limit of each piece is at most 9 minutes and at least its expected time. Listing needs no
# GPU.
"$check" --list >"$folder/list"
awk 'NR > 1 && !($3 <= 540 && $2 <= $3 && $4 == "not") { print; bad = 1 } END { exit bad || NR < 30 }' "$folder/list" ||
  fail "these pieces are too long"

mkdir -p "$folder/bin" "$folder/build/kernels"
echo 580.1 >"$folder/driver"
program bin/nvidia-smi "case \"\$*\" in -L) echo GPU 0;; *name*) echo NVIDIA X;; *driver*) cat $folder/driver;; esac"
for name in mpirun nvidia-cuda-mps-control compute-sanitizer cmake c++; do program "bin/$name"; done
program bin/python3 'exit 1' # no PyTorch
program build/kernels/kernels_cuda_test "echo ran >>$folder/cuda_tests" 'echo "All tests passed"'
program build/kernels/kernels_nccl_test 'for i in 1 2; do echo "SKIPPED: 2 GPUs needed, 1 found"; done'
program build/kernels/kernels_bench 'echo too slow >&2; exit 3'
program build/lambcast
program build/lambcast-measure 'echo "there is no NCCL" >&2; exit 4'

# In 100 s no piece starts that may take longer; the next call runs only the remaining pieces.
run 1 "$out" 100
[ "$(wc -l <"$folder/cuda_tests")" = 1 ] || fail "a test of 60 s has run, those of 180 s have not"
grep -q '^try: the same call again, for the rest; the longest of them needs 240 s$' "$folder/stdout" || fail "what is left"
run 1 "$out"
[ "$(wc -l <"$folder/cuda_tests")" = 3 ] || fail "a second call runs the rest"
for line in '^ok +cuda_test.txt +[0-9]+ s$' \
  '^skipped +nccl_test.txt +2 tests: 2 GPUs needed, 1 found$' \
  '^skipped +measure_test.txt +skipped: there is no NCCL$' \
  '^FAILED +bench.csv +exit code 3 after [0-9]+ s: too slow$' \
  '^ok +racecheck.txt' '^left out +torch.txt +there is no PyTorch$'; do
  grep -qE "$line" "$out/summary.txt" || fail "no line like $line"
done
all=$(rows -v '^date')
[ "$(rows -P '\tFAKE NVIDIA X\t580.1\tc0ffee\t')" = "$all" ] || fail "each row has card, driver and commit"
[ "$(rows -P '\tbench.csv\tFAILED\t')" = 1 ] || fail "a failed piece has run"
run 1 "$out"
[ "$(rows -v '^date')" = "$all" ] || fail "a third call has nothing to do, but a piece had failed"
"$check" --list "$out" >"$folder/list"
grep -qE '^bench.csv +60 +90 +FAILED 20[0-9-]+T' "$folder/list" || fail "the list has the last result"

# A piece runs again if it is named, and every piece after a change of the driver.
run 1 "$out" --only 'bench*'
[ "$(rows -P '\tbench.csv\tFAILED\t')" = 2 ] || fail "a named piece runs again"
run 2 "$out" --only nothing
grep -q "^--only: no piece matches 'nothing'; try: tools/gpu-check --list$" "$folder/stdout" || fail "no such piece"
echo 590.2 >"$folder/driver"
run 3 "$out" 30
[ "$(rows -P '\tversions.txt\tok\t.*\t590.2\tc0ffee\t')" = 1 ] || fail "another driver is another record"

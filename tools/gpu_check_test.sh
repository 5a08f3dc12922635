#!/usr/bin/env bash
# What tools/gpu-check says of parts that pass, are skipped, fail or cannot run, on a GPU and programs
# that only pretend.
#
#   gpu_check_test.sh
set -euo pipefail
check=$(readlink -f "$(dirname "$0")/gpu-check")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*"
  cat "$folder/out/summary.txt"
  exit 1
}
program() { # NAME LINES...
  printf '#!/bin/sh\n%s\n' "${@:2}" >"$folder/$1"
  chmod +x "$folder/$1"
}

mkdir -p "$folder/bin" "$folder/build/kernels"
for name in nvidia-smi mpirun nvidia-cuda-mps-control compute-sanitizer; do program "bin/$name"; done
program bin/python3 'exit 1' # no PyTorch
program build/kernels/kernels_cuda_test 'echo "All tests passed"'
program build/kernels/kernels_nccl_test 'for i in 1 2; do echo "SKIPPED: 2 GPUs needed, 1 found"; done'
program build/kernels/kernels_bench 'echo too slow >&2; exit 3'
program build/lambcast
program build/lambcast-measure 'echo "there is no NCCL" >&2; exit 4'

code=0
PATH=$folder/bin:$PATH GPU_BUILD=$folder/build "$check" "$folder/out" >"$folder/stdout" || code=$?
[ $code = 1 ] || fail "exit code $code, not 1, where a part fails"
for line in '^ok +cuda_test.txt +[0-9]+ s$' \
  '^skipped +nccl_test.txt +2 tests: 2 GPUs needed, 1 found$' \
  '^skipped +measure_test.txt +skipped: there is no NCCL$' \
  '^FAILED +bench.csv +exit code 3 after [0-9]+ s: too slow$' \
  '^ok +racecheck.txt' '^left out +torch.txt +there is no PyTorch$'; do
  grep -qE "$line" "$folder/out/summary.txt" || fail "no line like $line"
done

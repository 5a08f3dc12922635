#!/usr/bin/env bash
# Clang reports no error or warning in the parsers that tools/fuzz builds, in the libraries below them, nor in the
# folders whose sources once compiled only with GCC. The sources of these folders are checked forty at a time, as in
# the build: their common headers are parsed once. Parsers and libraries are checked one by one, so that each source
# includes what it uses; the headers of tools/cmake/Precompiled.cmake are precompiled, as in a build without unity.
#   clang_test.sh ROOT BUILD
set -euo pipefail
root=$(readlink -f "$1") build=$(readlink -f "$2")
command -v clang++ >/dev/null || { echo "skipped: no clang++ here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
options=(-std=c++20 -DLAMBCAST_LIBFUZZER '-DLAMBCAST_VERSION=""' -Wall -Wextra -Wpedantic -Werror -I. -I"$build/models/shape" -I"$build/experiments"
  -I"$build/models/device" -I"$build/topologies" -isystem /usr/include/eigen3)
mapfile -t sources < <(find validate/calibrate models/training experiments -maxdepth 2 \
  -name '*.cc' ! -path 'experiments/report/*' ! -path 'experiments/convergence/*' ! -name '*_test.cc' ! -name '*_fuzz.cc' ! -name 'mpi_*' | sort)
mapfile -t parsers < <(find sim kernels topologies models experiments validate -name '*_fuzz.cc' | sort)
mapfile -t libraries < <(find sim topologies validate/importers validate/measure -name '*.cc' ! -name '*_test.cc' ! -name '*_fuzz.cc' \
  ! -path 'validate/measure/*mpi*' ! -path 'validate/measure/nccl_*' ! -path validate/measure/gpu.cc ! -path validate/measure/captured_work.cc | sort)
[ ${#sources[@]} -ge 120 ] && [ ${#parsers[@]} -ge 25 ] && [ ${#libraries[@]} -ge 90 ] ||
  { echo "FAILED: only ${#sources[@]} sources, ${#parsers[@]} parsers and ${#libraries[@]} sources of libraries seen"; exit 1; }
sed -n '/^set(lambcast_common_headers/,/)/p' tools/cmake/Precompiled.cmake | grep -o '<[^>]*>' | sed 's/^/#include /' >"$work/common.h"
clang++ "${options[@]}" -x c++-header "$work/common.h" -o "$work/common.pch"
for folder in $(dirname "${sources[@]}" | sort -u); do
  printf '#include "%s"\n' "${sources[@]}" | grep "\"$folder/[^/]*$" |
    split -l 40 --additional-suffix=.cc - "$work/sources_${folder//\//_}_"
done
printf '%s\0' "$work"/sources_*.cc "${parsers[@]}" "${libraries[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang++ "${options[@]}" -include-pch "$work/common.pch" -fsyntax-only
echo "${#sources[@]} sources, ${#parsers[@]} parsers and ${#libraries[@]} sources of libraries hold under clang"

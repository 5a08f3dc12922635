#!/usr/bin/env bash
# Clang reports no error or warning in the parsers that tools/fuzz builds, nor in the folders whose
# sources once compiled only with GCC. The sources of a folder are checked forty at a time, as in
# the build: their common headers are parsed once. The parsers are checked one by one, as tools/fuzz
# compiles them.
#   clang_test.sh ROOT BUILD
set -euo pipefail
root=$(readlink -f "$1") build=$(readlink -f "$2")
command -v clang++ >/dev/null || { echo "skipped: no clang++ here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
options=(-std=c++20 -DLAMBCAST_LIBFUZZER '-DLAMBCAST_VERSION=""' -Wall -Wextra -Wpedantic -Werror -I. -I"$build/models/shape" -I"$build/experiments"
  -I"$build/models/device" -isystem /usr/include/eigen3)
mapfile -t sources < <(find validate/calibrate validate/importers models/training experiments -maxdepth 2 \
  -name '*.cc' ! -path 'experiments/report/*' ! -path 'experiments/convergence/*' ! -name '*_test.cc' ! -name '*_fuzz.cc' ! -name 'mpi_*' | sort)
mapfile -t parsers < <(find sim kernels topologies models experiments validate -name '*_fuzz.cc' | sort)
[ ${#sources[@]} -ge 120 ] && [ ${#parsers[@]} -ge 25 ] ||
  { echo "FAILED: only ${#sources[@]} sources and ${#parsers[@]} parsers seen"; exit 1; }
for folder in $(dirname "${sources[@]}" | sort -u); do
  printf '#include "%s"\n' "${sources[@]}" | grep "\"$folder/[^/]*$" |
    split -l 40 --additional-suffix=.cc - "$work/sources_${folder//\//_}_"
done
for units in "$work"/sources_*.cc "${parsers[@]}"; do printf '%s\0' "$units"; done |
  xargs -0 -n 1 -P "$(nproc)" clang++ "${options[@]}" -fsyntax-only
echo "${#sources[@]} sources and ${#parsers[@]} parsers hold under clang"

#!/usr/bin/env bash
# What tools/fuzz builds by clang has neither an error nor a warning of its own: what the parsers are
# fuzzed with, in the folders that strayed. Common headers are parsed once.
#   clang_test.sh ROOT BUILD
set -euo pipefail
root=$(readlink -f "$1") build=$(readlink -f "$2")
command -v clang++ >/dev/null || { echo "skipped: no clang++ here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
options=(-std=c++20 -DLAMBCAST_LIBFUZZER '-DLAMBCAST_VERSION=""' -Wall -Wextra -Wpedantic -Wshadow -Werror -I. -I"$build/models/shape" -I"$build/experiments"
  -I"$build/models/device" -isystem /usr/include/eigen3)
for header in algorithm array charconv chrono cmath filesystem fstream functional limits map memory optional set \
  span string string_view utility vector fmt/format.h nlohmann/json.hpp; do
  echo "#include <$header>"
done >"$work/common.h"
clang++ "${options[@]}" -x c++-header "$work/common.h" -o "$work/common.pch"
mapfile -t sources < <(find validate/calibrate validate/importers models/training experiments -maxdepth 1 \
  -name '*.cc' ! -name '*_test.cc' ! -name '*_fuzz.cc' ! -name 'mpi_*' | sort)
mapfile -t parsers < <(find sim kernels topologies models experiments validate -name '*_fuzz.cc' | sort)
[ ${#sources[@]} -ge 120 ] && [ ${#parsers[@]} -ge 25 ] ||
  { echo "FAILED: only ${#sources[@]} sources and ${#parsers[@]} parsers seen"; exit 1; }
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang++ "${options[@]}" -include-pch "$work/common.pch" -fsyntax-only
# These are built without headers that others parsed.
printf '%s\0' "${parsers[@]}" | xargs -0 -n 1 -P "$(nproc)" clang++ "${options[@]}" -fsyntax-only
echo "${#sources[@]} sources and ${#parsers[@]} parsers hold under clang"

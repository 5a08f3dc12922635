#!/usr/bin/env bash
# Sources that clang builds too (tools/fuzz, clang-tidy), those that most often strayed: without an
# error or a warning of its own.
# Common headers are parsed once.
#   clang_test.sh ROOT BUILD
set -euo pipefail
root=$(readlink -f "$1") build=$(readlink -f "$2")
command -v clang++ >/dev/null || { echo "skipped: no clang++ here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
options=(-std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -I. -I"$build/models/shape"
  -I"$build/models/device" -isystem /usr/include/eigen3)
for header in algorithm charconv cmath functional map memory optional set span string string_view \
  utility vector fmt/format.h; do
  echo "#include <$header>"
done >"$work/common.h"
clang++ "${options[@]}" -x c++-header "$work/common.h" -o "$work/common.pch"
mapfile -t sources < <(find validate/calibrate validate/importers models/training -name '*.cc' \
  ! -name '*_test.cc' ! -name '*_fuzz.cc' | sort)
[ ${#sources[@]} -ge 30 ] || { echo "FAILED: only ${#sources[@]} sources seen"; exit 1; }
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang++ "${options[@]}" -include-pch "$work/common.pch" -fsyntax-only
echo "${#sources[@]} sources hold under clang"

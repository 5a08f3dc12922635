#!/usr/bin/env bash
# package_test.sh SOURCE BUILD: builds the example with the package that BUILD installs, and runs
# it. Without a GPU it reports that and exits with 4.
set -euo pipefail
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --component kernels --prefix "$folder/prefix" >/dev/null
cmake -S "$source/kernels/example" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >/dev/null
cmake --build "$folder/build" >/dev/null
if grep -rl "$source" "$folder/prefix" --include='*.cmake' --include='*.h'; then
  echo "FAILED: these name the source folder"
  exit 1
fi
code=0
out=$("$folder/build/onebit_lamb" 1 1 2>&1) || code=$?
echo "$out"
if [ $code = 4 ]; then
  grep -q '^onebit_lamb: no usable NVIDIA GPU: ' <<<"$out"
else
  "$source/kernels/example/trains_test.sh" "$folder/build/onebit_lamb"
fi

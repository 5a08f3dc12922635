#!/usr/bin/env bash
# trains_test.sh PROGRAM: the example must succeed, with a final loss below a hundredth of the
# first.
set -euo pipefail
out=$("$1" 400 150)
echo "$out"
awk '{loss = $NF} NR == 1 {first = loss} /one bit/ {compressed = 1}
  END {exit !(first > 0.5 && loss < first / 100 && compressed)}' <<<"$out"

#!/usr/bin/env bash
# The sources have the format of clang-format (.clang-format), except for CUDA sources, whose <<<>>>
# it breaks. Skipped if it is not installed.
#
#   format_test.sh ROOT
set -euo pipefail
cd "$1"
command -v clang-format >/dev/null || { echo "skipped: no clang-format here"; exit 77; }
find sim kernels topologies models experiments validate tools -type f \
  \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 clang-format --dry-run --Werror || { echo "tools/dev format mends it"; exit 1; }

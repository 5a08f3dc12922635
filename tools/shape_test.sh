#!/usr/bin/env bash
# Limits on the size and form of the sources, to keep them readable. A function of more than 70
# lines or a file of more than 450 does several things. A header begins with its purpose. x.cc
# defines what x.h declares, except for the headers named below, which have several files or a
# choice of files. The README of a folder describes its files in at most 25 lines; longer texts are
# separate pages.
#
#   shape_test.sh ROOT            checks the sources below ROOT
#   shape_test.sh ROOT --canary   plants one fault of each kind, which must be found
set -euo pipefail
root=$(readlink -f "$1")

several='sim/collectives/builders.h validate/measure/measure.h tools/commands.h
experiments/report/figure.h kernels/profile.h kernels/cuda_on_cpu/cuda_runtime.h
kernels/cuda_on_cpu/cublas_v2.h
kernels/cuda_on_cpu/cusolverDn.h'

# check ROOT: prints the faults.
check() {
  (cd "$1" && find sim kernels topologies models experiments validate tools -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
    xargs -0 awk -v several="$several" '
      function finish() {
        if (file != "" && lines > 450) print file ": " lines " lines are more than 450"
        if (declares && !(file in has_several)) {
          base = file
          sub(/\.h$/, "", base)
          if (system("test -e " base ".cc -o -e " base ".cu") != 0)
            print file ":" declares ": no " base ".cc defines what it declares"
        }
      }
      BEGIN { n = split(several, names, /[ \n]+/); for (i = 1; i <= n; ++i) has_several[names[i]] }
      FNR == 1 {
        finish()
        file = FILENAME
        declares = 0
        depth = 0
        begun = raw = 0
        if (file ~ /\.h$/ && $0 !~ /^\/\//) print file ":1: a header opens with why it exists"
      }
      { lines = FNR }
      /R"[a-z]*\($/ { raw = 1 }  # until its end: text, not code
      raw { if (/^\)[a-z]*"/) raw = 0; next }
      file ~ /\.h$/ && /^[A-Za-z].*\);$/ && !/^(inline|template|using|static_assert|extern)/ && !declares {
        declares = FNR
      }
      # Definitions begin at the margin, or are indented by two columns in a class.
      /^(  )?[A-Za-z_~[].*\(.*$/ && /[({,]$/ && !begun && !/^ *(namespace|class|struct|enum|union|extern|public|private|return)/ && !/ = ?[({]?$/ && !/R"\($/ {
        begun = FNR
        margin = /^  / ? "^  }" : "^}"
      }
      begun && $0 ~ margin {
        if (FNR - begun + 1 > 70)
          print file ":" begun ": a function of " FNR - begun + 1 " lines"
        begun = 0
      }
      begun && /;$/ && FNR == begun { begun = 0 }
      END { finish() }'
    for readme in $(find sim kernels topologies models experiments validate tools -maxdepth 3 -name README.md \
      ! -path "*/bert_large/*" ! -path "*/convergence/*" ! -path "*/exchanges/*" | sort); do
      lines=$(wc -l <"$readme")
      [ "$lines" -le 25 ] || echo "$readme: $lines lines are more than 25"
    done)
}

if [ "${2:-}" = --canary ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder"/{sim,kernels,topologies,models/training/plan,experiments,validate,tools}
  {
    echo 'int far_too_long(int a) {'
    for _ in $(seq 70); do echo '  ++a;'; done
    echo '}'
  } >"$folder/sim/long_function.cc"
  seq -f '// %g' 451 >"$folder/sim/long_file.cc"
  printf '#pragma once\n' >"$folder/sim/silent.h"
  printf '// Why.\n#pragma once\nint nowhere(int a);\n' >"$folder/sim/nowhere.h"
  printf '// Why.\n#pragma once\nint here(int a);\n' >"$folder/sim/here.h"
  printf 'int here(int a) {\n  return a;\n}\n' >"$folder/sim/here.cc"
  seq 26 >"$folder/sim/README.md"
  seq 25 >"$folder/models/README.md"
  found=$(check "$folder")
  expected='sim/README.md: 26 lines are more than 25
sim/long_file.cc: 451 lines are more than 450
sim/long_function.cc:1: a function of 72 lines
sim/nowhere.h:3: no sim/nowhere.cc defines what it declares
sim/silent.h:1: a header opens with why it exists'
  [ "$(sort <<<"$found")" = "$expected" ] || { echo "FAILED: found only"$'\n'"$found"; exit 1; }
  echo "every fault was found"
  exit 0
fi

faults=$(check "$root")
[ -z "$faults" ] || { echo "$faults"; exit 1; }
echo "sizes and form hold"

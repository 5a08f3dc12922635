#!/usr/bin/env bash
# Joins the page, its scripts and the module into one HTML file without anything to load.
#
#   join.sh SOURCE_ROOT MODULE.wasm PAGE.html
set -euo pipefail
root=$1 module=$2 page=$3
own=$root/tools/web/page report=$root/experiments/report
scripts=("$report"/uplot/uPlot.iife.min.js "$report"/page/{rows,table,reading,chart,map,pictures}.js
  "$own"/{questions,controls,page}.js)

# Five digits for four bytes, a sixteenth shorter than base64; the first character is the number of
# padding bytes (page/module.js).
base85() {
  perl -0777 -e 'binmode STDIN; my @digits = grep { !/[<>&"\x27\\`]/ } map { chr } 33 .. 126; my $bytes = <STDIN>;
    my $padding = -length($bytes) % 4; print $padding;
    for my $word (unpack "N*", $bytes . "\0" x $padding) {
      print join "", map { $digits[int($word / 85**(4 - $_)) % 85] } 0 .. 4; }'
}
# Prints scripts without indentation and comment lines.
spare() { sed -E '/^ *\/\/ /d; s/^ +//' "$@"; }

# Prints the file that replaces a word of the template.
part() {
  case "$1" in
    styles) cat "$report"/uplot/uPlot.min.css "$report"/page/page.css "$own"/page.css ;;
    license) cat "$report"/uplot/LICENSE ;;
    module) gzip -9nc "$module" | base85 ;;
    # The page allows only these scripts.
    sums) for script in "${scripts[@]}"; do
      printf "'sha256-%s' " "$(spare "$script" | sha256sum | perl -ne 'print pack("H*", substr($_, 0, 64))' | base64 -w0)"
    done ;;
    worker) spare "$own"/module.js "$own"/worker.js ;;
    scripts) for script in "${scripts[@]}"; do
      printf '<script>'
      spare "$script"
      printf '</script>\n'
    done ;;
  esac
}

while IFS= read -r line; do
  if [[ $line =~ ^(.*)@([a-z]+)@(.*)$ ]]; then
    printf '%s' "${BASH_REMATCH[1]}"
    after=${BASH_REMATCH[3]}
    part "${BASH_REMATCH[2]}"
    printf '%s\n' "$after"
  else
    printf '%s\n' "$line"
  fi
done <"$own/page.html" >"$page"

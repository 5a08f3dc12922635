#!/usr/bin/env bash
# Joins the page, its scripts and the module into one HTML file without anything to load.
#
#   join.sh SOURCE_ROOT MODULE.wasm PAGE.html
set -euo pipefail
root=$1 module=$2 page=$3
own=$root/tools/web/page report=$root/experiments/report
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints bytes as characters of seven bits, a seventh more (page/unpack.js).
packed() {
  zopfli -c --i5 "$1" | perl -0777 -e 'binmode STDIN; binmode STDOUT, ":utf8"; my $bits = unpack "B*", <STDIN>;
    $bits .= "0" x (-length($bits) % 7); my $text = pack "(B8)*", map { "0$_" } unpack "(A7)*", $bits;
    my %place = ("\0" => 1, "\r" => 2, "<" => 3);
    $text =~ s/([\0\r<])(.?)/chr(128 * $place{$1} + (length $2 ? ord $2 : 384))/gse; print $text'
}
# Prints scripts without indentation and comment lines.
spare() { sed -E '/^ *\/\/ /d; s/^ +//' "$@"; }

spare "$own"/{unpack,start}.js >"$work/start"
spare "$report"/page/{rows,table,reading,chart,map,pictures}.js "$report"/uplot/uPlot.iife.min.js \
  "$own"/{questions,controls,files,answers,page}.js >"$work/scripts"

# Prints the file that replaces a word of the template.
part() {
  case "$1" in
    styles) cat "$report"/uplot/uPlot.min.css "$report"/page/page.css "$own"/page.css ;;
    license) cat "$report"/uplot/LICENSE ;;
    module) packed "$module" ;;
    # The page allows only these scripts.
    sums) for script in start scripts; do
      printf "'sha256-%s' " "$(sha256sum <"$work/$script" | perl -ne 'print pack("H*", substr($_, 0, 64))' | base64 -w0)"
    done ;;
    worker) spare "$own"/{unpack,module,worker}.js ;;
    start) cat "$work/start" ;;
    scripts) packed "$work/scripts" ;;
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

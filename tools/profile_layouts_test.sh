#!/usr/bin/env bash
# Runs every layout of the manual on a profiled GPU whose file has no [rates], and compares the
# interval of its step with that of the preset of the same GPU.
#
#   profile_layouts_test.sh LAMBCAST
root=$(dirname "$(dirname "$(readlink -f "$0")")")
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

layouts=$root/tools/manual/layouts.md
profile=$root/kernels/measured/h100.toml

# Prints the logarithm of the ratio of the ends of the step's interval, in the first phase.
width() {
  sed -nE 's/^step within ([a-z]+ )?([0-9.]+) to ([0-9.]+) ms.*/\2 \3/p' out | awk '{print log($2 / $1)}'
}

count=0
while read -r _ command; do
  read -ra words <<<"$command"
  expect 0 '^step within ' "$lambcast" "${words[@]}" --device h100
  preset=$(width)
  expect 0 '^step within ' "$lambcast" "${words[@]}" --device "$profile"
  # With the profile, which was checked on two programs, the interval is about 1.02 times as wide as
  # with the preset, which has three sources. The limit is 1.1.
  awk -v p="$preset" -v m="$(width)" 'BEGIN { exit !(m > 0 && m <= 1.1 * p) }' ||
    fail "$command: $(width) with the profile, $preset with the preset"
  count=$((count + 1))
done < <(sed 's/ --explain prices//' "$layouts" | grep '^lambcast simulate')
[ "$count" -ge 6 ] || fail "only $count layouts found in $layouts"
summary

#!/usr/bin/env bash
# freeze on the command line.
#
#   freeze_cli_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

# The variances of two layers decrease as 1 + 5 b^k, measured every ten steps; with beta2 = 0.99 the
# memory is 100 steps. Settled when 1 + x >= 0.96 (1 + x / b^100), x = 5 b^k: at step 330 for b =
# 0.98, 1540 for 0.998.
awk 'BEGIN {
  print "step,layer,norm,elements"
  for (k = 10; k <= 2000; k += 10) {
    printf "%d,embedding,%.17g,9000\n", k, 1 + 5 * 0.98 ^ k
    printf "%d,head,%.17g,1000\n", k, 1 + 5 * 0.998 ^ k
  }
}' >variance.csv
expect 0 '^freeze_step 330: compression may begin after it' "$lambcast" freeze variance.csv --beta2 0.99
grep -qE '^head +1000 .* no$' out || fail "the head has settled: $(cat out)"
expect 0 '"freeze_step": 330' "$lambcast" freeze variance.csv --beta2 0.99 --format json
expect 0 '^330,330,embedding,9000,' "$lambcast" freeze variance.csv --beta2 0.99 --format csv
expect 0 '^freeze_step 600' "$lambcast" freeze variance.csv --beta2 0.99 --earliest 600
expect 0 '^freeze_step 1540' "$lambcast" freeze variance.csv --beta2 0.99 --share 1
"$lambcast" freeze - --beta2 0.99 <variance.csv | cmp -s - <("$lambcast" freeze variance.csv --beta2 0.99) ||
  fail "stdin is read otherwise"

head -101 variance.csv >short.csv
expect 3 '^No step from 10 to 500: compression may not begin yet' "$lambcast" freeze short.csv --beta2 0.99 --share 1
expect 0 '^freeze_step 400: compression may begin after it' "$lambcast" freeze short.csv --beta2 0.99 --share 1 --latest 400
expect 2 'short.csv: its 50 measurements, 10 steps apart, are too few' "$lambcast" freeze short.csv
expect 2 'beta2: must be from 0 to below 1' "$lambcast" freeze variance.csv --beta2 1
expect 2 'nowhere.csv' "$lambcast" freeze nowhere.csv
printf 'step,loss\n1,2\n2,x\n' >bad.csv
expect 2 'bad.csv:3: loss' "$lambcast" freeze bad.csv
expect 2 'unknown column .hed.' "$lambcast" freeze <(printf 'step,head\n1,2\n2,2\n') --columns hed

summary

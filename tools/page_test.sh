#!/usr/bin/env bash
# The report's page in a real browser: a slice shows exactly the rows of results.csv, pictures are
# drawn, addresses restore the view, and the console stays empty, at both widths. Gnuplot is hidden,
# because the page does not need it. Skipped without Chromium (Debian: apt install chromium).
#
#   page_test.sh LAMBCAST PAGE_TEST_JS
set -uo pipefail
lambcast=$(readlink -f "$1")
driver=$(readlink -f "$2")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "skipped: no chromium here"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir none
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# browse WIDTH PAGE: writes the page after its scripts to `dom`, and the console to `log`. Chromium
# has no window below 500 pixels, so a narrower page is shown in a frame; at the end, its HTML
# replaces that around the frame.
browse() {
  local page=$2
  if [ "$1" -lt 500 ]; then
    page=framed.html
    cat >framed.html <<END
<!doctype html><iframe src="$2" style="width:$1px;height:900px;border:0"></iframe><script>
setTimeout(function () {
  const inside = document.querySelector("iframe");
  if (inside.contentWindow.innerWidth !== $1) return;
  document.replaceChild(document.adoptNode(inside.contentDocument.documentElement), document.documentElement);
}, 40000);</script>
END
  fi
  timeout 300 "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
    --allow-file-access-from-files --user-data-dir="$folder/profile$1" --window-size="$1,900" \
    --virtual-time-budget=60000 --enable-logging=stderr --dump-dom "file://$folder/$page" >dom 2>log </dev/null ||
    fail "the browser ends with $? on $2"
  grep -F CONSOLE log && fail "the console speaks of $2"
}

# A name that does harm if it is not escaped; a key that only settings contain; rows that cannot
# run.
"$lambcast" presets show paper-eth40-v100 |
  sed "s|^name = .*|name = \"=<img src=x onerror=owned=1></script><script>owned=1</script>\`\${1}\`\"|" \
    >hostile.toml
"$lambcast" presets show bert-large |
  sed 's|^name = .*|name = "</title><img src=x onerror=owned=1>"|' >model.toml
cat >study.toml <<'END'
name = "page"
description = "<img src=x onerror=owned=1>"
[base]
model = "./model.toml"
micro_batch = 16
samples = 392757248
[[part]]
[part.grid]
cluster = ["./hostile.toml", "paper-edr100-v100"]
optimizer = ["lamb"]
global_batch = [1024, 65536]
gpus = [8, 16, 128]
[[part]]
[part.grid]
cluster = ["./hostile.toml", "paper-edr100-v100"]
optimizer = ["onebit_lamb"]
global_batch = [1024, 65536]
gpus = [8, 16, 128]
freeze_step = ["10%", "16.7%"]
[[part]]
[part.grid]
cluster = ["paper-edr100-v100"]
optimizer = ["onebit_lamb"]
global_batch = [65536]
gpus = [64, 128, 256]
freeze_step = ["16.7%"]
"cluster.nic.bandwidth" = ["1 Gbit/s", "10 Gbit/s", "100 Gbit/s", "200 Gbit/s", "400 Gbit/s"]
[[part]]
[part.grid]
cluster = ["paper-edr100-v100"]
optimizer = ["onebit_lamb"]
global_batch = [65536]
gpus = [16]
freeze_step = ["16.7%"]
"cluster.node.gpu_link" = ["25 GB/s", "50 GB/s"]
[[part]]
[part.grid]
cluster = ["paper-edr100-v100"]
optimizer = ["onebit_lamb"]
global_batch = [1024, 65536]
gpus = [8, 16]
freeze_step = ["16.7%"]
backend = ["mpi", "compressed"]
END
env PATH="$folder/none" "$lambcast" sweep study.toml --out study >out 2>err </dev/null ||
  fail "the sweep: $(tail -3 err)"
grep -q 'gnuplot is not installed' err || fail "gnuplot is not hidden: $(cat err)"
{
  # The driver is a script that the page does not contain.
  sed "s/script-src [^\"]*/script-src 'unsafe-inline'/" study/report.html
  printf '<script>const resultsCsv = new TextDecoder().decode(Uint8Array.from(atob("'
  base64 -w0 study/results.csv
  printf '"), function (c) { return c.charCodeAt(0); }));</script>\n<script>\n'
  cat "$driver"
  printf '</script>\n'
} >driven.html
for width in 1280 390; do
  browse "$width" driven.html
  sed -n '/<pre id="checks">/,/end of checks/p' dom | sed 's/<pre id="checks">//' >checks
  grep -q '^end of checks' checks || fail "the driver did not end at $width: $(tail -3 log)"
  grep '^FAILED' checks && fail "checks at $width pixels"
  [ "$(grep -c '^ok' checks)" -ge 50 ] || fail "only $(grep -c '^ok' checks) checks at $width pixels"
done

# A sweep with one point, and one whose points do not run, have a page without pictures or errors.
for rows in 2 1; do
  mkdir "few$rows"
  head -"$rows" study/results.csv >"few$rows/results.csv"
  env PATH="$folder/none" "$lambcast" report "few$rows" >out 2>err || fail "$(cat err)"
  browse 390 "few$rows/report.html"
  grep -q '<canvas' dom && fail "a picture of $((rows - 1)) rows"
  grep -q 'class="ready"' dom || fail "the script of a page of $((rows - 1)) rows does not end"
done

# The page of a validation has the same parts.
env PATH="$folder/none" "$lambcast" validate --out validation >out 2>err </dev/null || fail "$(cat err)"
browse 1280 validation/report.html
[ "$(grep -o '<canvas' dom | wc -l)" -ge 5 ] || fail "a validation without its pictures"
[ "$(grep -o 'aria-label="show rows with all these words"' dom | wc -l)" -ge 2 ] ||
  fail "the tables of a validation have no filter"

echo "$failures failures"
[ "$failures" -eq 0 ]

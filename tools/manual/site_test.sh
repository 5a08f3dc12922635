#!/usr/bin/env bash
# The site of the manual in a real browser: its search finds a section, nothing is loaded from a
# network, all controls have names, and the console stays empty. Skipped without Chromium.
#
#   site_test.sh LAMBCAST PANDOC
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "skipped: no chromium here"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
"$1" help reference >"$folder/reference.md"
"$here/make_site" "$folder/site" "$folder/reference.md" "$2" || fail "the site is not built"
if grep -nE '(src|href)="(https?:)?//[^"]*"' "$folder"/site/*.html | grep -E '<(script|link|img)[^>]*="(https?:)?//'; then
  fail "a page loads something from a network"
fi
# A script that types like a reader, appended to a page.
cat >>"$folder/site/index.html" <<'END'
<script>
const box = document.getElementById("search");
box.value = "freeze_step exit";
box.dispatchEvent(new Event("input"));
const none = document.getElementById("found").children.length;
box.value = "break-even";
box.dispatchEvent(new Event("input"));
const found = Array.from(document.querySelectorAll("#found a")).map(function (a) { return a.textContent; });
const unnamed = Array.from(document.querySelectorAll("input, button, a, nav")).filter(function (e) {
  return !(e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length));
});
const report = document.createElement("pre");
report.textContent = "checks: " + none + " " + found.length + " " + unnamed.length + " " + location.protocol;
document.body.append(report);
</script>
END
timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$folder/profile" --enable-logging=stderr \
  --dump-dom "file://$folder/site/index.html" >"$folder/dom" 2>"$folder/log" </dev/null || fail "the browser ends with $?"
grep -F CONSOLE "$folder/log" && fail "the console speaks"
grep -qE 'checks: [0-9]+ [1-9][0-9]* 0 file:' "$folder/dom" || fail "the search: $(grep -o 'checks: .*' "$folder/dom")"
echo "$(find "$folder/site" -name '*.html' | wc -l) pages"

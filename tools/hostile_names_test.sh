#!/usr/bin/env bash
# Names from any file appear in pages, pictures, gnuplot, spreadsheets and terminals. Nothing in a
# name is executed there.
#
#   hostile_names_test.sh LAMBCAST
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"

# Names in TOML syntax; if executed, each would make a file `pwned` or change the display.
names=('<script>alert(1)</script>' '</title><img src=x onerror=alert(1)>' '\"><svg onload=alert(1)>' '`touch pwned`' '$(touch pwned)'
  "'; system('touch pwned'); '" '\"; system(\"touch pwned\"); print \"' '\"\n!touch pwned\n' '=1+1' "=cmd|' /C calc'!A0" '@SUM(1)' '+1-1'
  '\u001b[31mred\u001b]0;title\u0007' '\u009b31m' ']]>&lt;x' '{/:Bold x}^_@' '%s%n%d' 'a,b;c\"d' '\u202egnp.exe' "../../etc/x")
"$lambcast" presets show paper-eth40-v100 >cluster.toml
"$lambcast" presets show bert-base >model.toml
files=()
for i in "${!names[@]}"; do
  NAME=${names[i]} perl -pe 'if (!$done && s/^name = .*/name = "$ENV{NAME}"/) { $done = 1 }' cluster.toml >"c$i.toml"
  NAME=${names[i]} perl -pe 'if (!$done && s/^name = .*/name = "$ENV{NAME}"/) { $done = 1 }' model.toml >"m$i.toml"
done

harmless() { # WHAT FILE...: nothing steers a terminal
  local what=$1
  shift
  checks=$((checks + 1))
  LC_ALL=C grep -qP '\x1b|\x07|\xc2[\x80-\x9f]' "$@" && fail "control characters in $what"
  [ ! -e pwned ] && [ -z "$(find . -name pwned)" ] || fail "a name was run by $what"
}
no_markup() { # WHAT FILE
  checks=$((checks + 1))
  grep -qiE '<script>alert|<img src=x|<svg onload' "$2" && fail "markup of a name in $1: $(grep -oiE '.{40}(<script>alert|<img src=x|<svg onload).{20}' "$2" | head -1)"
}

# Terminals: every answer and every error as displayed.
for i in "${!names[@]}"; do
  question=(--model "./m$i.toml" --cluster "./c$i.toml" --gpus 8 --micro-batch 16 --steps 1000)
  got=0
  for command in "simulate --optimizer lamb" "advise --optimizer onebit_lamb" "compare --optimizers lamb,onebit_lamb"; do
    # shellcheck disable=SC2086
    "$lambcast" $command "${question[@]}" >out 2>err || got=$?
    harmless "$command with ${names[i]}" out err
    [ $got -eq 0 ] || [ $got -eq 3 ] || break
  done
  if [ $got -eq 2 ] && grep -q 'has control characters' err; then
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line: $(cat err)"
    continue
  fi
  [ $got -eq 0 ] || [ $got -eq 3 ] || fail "$command with ${names[i]}: $(cat err)"
  files+=("./c$i.toml")
  question+=(--optimizer onebit_lamb)
  "$lambcast" simulate "${question[@]}" --trace trace.json --format json >out 2>err || fail "JSON with ${names[i]}"
  python3 -c 'import json, sys; [json.load(open(f)) for f in sys.argv[1:]]' out trace.json || fail "no JSON with ${names[i]}"
  harmless "JSON with ${names[i]}" out trace.json
  "$lambcast" simulate "${question[@]/onebit_lamb/$(printf '%b' "${names[i]}")}" >out 2>err && fail "an optimizer ${names[i]}"
  harmless "an error about ${names[i]}" out err
  "$lambcast" collective --cluster "./c$i.toml" --gpus 8 -b 1M -e 1M >out 2>err || fail "collective with ${names[i]}"
  harmless "collective with ${names[i]}" out err
done

[ "${#files[@]}" -ge 16 ] || fail "only ${#files[@]} names can be used"
clusters=$(IFS=,; echo "${files[*]}")

# Pages, pictures, gnuplot and spreadsheets: one sweep with all names, and its report.
"$lambcast" sweep --model ./m0.toml --gpus 8 --micro-batch 16 --steps 1000 --list "cluster=$clusters" \
  --list optimizer=lamb,onebit_lamb --list seq_len=128,256 --out swept >out 2>err || fail "a sweep: $(cat err)"
harmless "a sweep" out err
no_markup "the page" swept/report.html
# No cell of a CSV begins like a formula, quoted or not.
python3 - swept/results.csv <<'END' || fail "a formula in results.csv"
import csv, sys
rows = list(csv.reader(open(sys.argv[1], encoding="utf-8", newline="")))
bad = [cell for row in rows for cell in row
       if cell[:1] in "=+-@\t\r" and cell and not cell.lstrip("+-").replace(".", "").replace("e-", "").replace("e+", "").isdigit()]
assert len(rows) > 40 and not bad, bad
END
if command -v gnuplot >/dev/null; then
  [ "$(find swept -name '*.svg' | wc -l)" -ge 1 ] || fail "gnuplot drew nothing: $(cat err)"
  # shellcheck disable=SC2044
  for picture in $(find swept -name '*.svg'); do
    no_markup "$picture" "$picture"
    python3 - "$picture" <<'END' || fail "$picture is no XML, or holds a script"
import sys, xml.etree.ElementTree as tree
for part in tree.parse(sys.argv[1]).iter():
    assert part.tag.split("}")[-1] not in ("script", "foreignObject", "iframe"), part.tag
    for name, value in part.attrib.items():
        assert not name.lower().startswith("on") and "javascript:" not in value.lower(), (name, value)
END
  done
fi
harmless "a report" swept/report.html
# The page shows the typed command, quoted for a shell.
cp m1.toml "m'\$(touch pwned)'.toml"
# A zero byte does not end a message.
printf '[base]\nmodel = "no\\u0000such"\n' >zero.toml
expect 2 "unknown model 'no such'" "$lambcast" sweep zero.toml --dry-run
printf 'name = "q"\n[base]\ncluster = "./c0.toml"\ngpus = 8\noptimizer = "lamb"\nmicro_batch = 16\nsteps = 10\n[grid]\nmodel = ["./m0.toml"]\n' >q.toml
"$lambcast" sweep q.toml --list "model=./m0.toml,./m'\$(touch pwned)'.toml" --out quoted --no-report >out 2>err || fail "a quoted sweep: $(cat err)"
command=$(python3 -c 'import json; print(json.load(open("quoted/manifest.json"))["command"])')
bash -c "set -- ${command#lambcast }; printf '%s\n' \"\$@\"" >words
grep -qxF "model=./m0.toml,./m'\$(touch pwned)'.toml" words || fail "the command of a manifest: $command"
harmless "the command of a manifest" words

# Written descriptions are valid TOML with the same name.
printf '# collective: all_gather\n# ranks: 2\n# nodes: 2\n# gpu: \\"\x1b[31m<script>\nsize_bytes,time_us\n1024,30\n1048576,900\n67108864,54000\n' >table.csv
"$lambcast" calibrate --cluster ./c0.toml --name '"]; x = "`touch pwned`' --source $'"""\e[31m\n[nic]' -o fitted.toml table.csv >out 2>err || fail "calibrate: $(cat err)"
harmless "calibrate" out err
"$lambcast" collective --cluster ./fitted.toml --gpus 2 -b 1M -e 1M >out 2>err || fail "a description that does not read back: $(cat err)"
summary

#!/usr/bin/env bash
# The scripts of pages pass ESLint (experiments/report/.eslintrc.json), their styles are valid CSS,
# and shell scripts pass ShellCheck. Checks whose linter is missing are named (Debian: apt install
# eslint python3-tinycss2 shellcheck); the test is skipped if none is installed.
#
#   lint_test.sh ROOT
set -euo pipefail
cd "$1"
checked=0
# Exceptions that are intended: A && B || fail, even if B may fail; programs for other shells, awk
# and presets in single quotes; commas within an argument; a name that is read twice in a pipe.
check_shell() { shellcheck --external-sources --source-path=SCRIPTDIR --exclude=SC2015,SC2016,SC2054,SC2094 "$@"; }
if command -v shellcheck >/dev/null; then
  scripts=()
  while IFS= read -r -d '' file; do
    # Logs and launch scripts among the fuzzing seeds are data.
    case $file in *.sh) scripts+=("$file") ;; */fuzz/*) ;; *)
      IFS= read -r first < <(head -n 1 "$file" | tr -d '\0') || continue
      [[ $first =~ ^'#!'.*[/\ ](ba)?sh$ ]] && scripts+=("$file")
    esac
  done < <(find .ci sim kernels topologies models experiments validate tools -type f -size -1024k -print0 | sort -z)
  [ "${#scripts[@]}" -ge 50 ] || { echo "FAILED: only ${#scripts[@]} scripts found"; exit 1; }
  check_shell "${scripts[@]}" || { echo "FAILED: scripts of the shell"; exit 1; }
  # Checks the check itself.
  [ "$(check_shell --shell=bash --format=gcc - <<<'cd $1; rm $2; unused=1' | grep -cE 'SC2164|SC2086|SC2034')" -ge 3 ] ||
    { echo "FAILED: faults of a script pass"; exit 1; }
  checked=1
else
  echo "left out, no shellcheck here: the scripts of the shell"
fi
# Folders of Debian's modules, for a Node.js from another source.
export NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs
lint() { eslint --no-eslintrc --config experiments/report/.eslintrc.json --format unix "$@"; }
if command -v eslint >/dev/null; then
  lint experiments/report/{page/*,page_test,page_scale_test}.js tools/web/{,page/}*.js ||
    { echo "FAILED: the script of a page"; exit 1; }
  # Checks the check itself.
  faults='"use strict"; var a = 1; if (a == undefinedName) eval("a");'
  [ "$(lint --stdin <<<"$faults" | grep -cE 'no-var|eqeqeq|no-undef|no-eval')" -eq 4 ] ||
    { echo "FAILED: faults pass"; exit 1; }
  checked=1
else
  echo "left out, no eslint here: the script of the page"
fi
if /usr/bin/python3 -c 'import tinycss2' 2>/dev/null; then
  /usr/bin/python3 - experiments/report/page/page.css tools/web/page/page.css <<'END' || exit 1
import sys
import tinycss2

def faults(text):
    """Errors of the grammar, in rules within rules too."""
    found = []
    def walk(rules):
        for rule in rules:
            if rule.type == "error":
                found.append(f"{rule.source_line}: {rule.message}")
            elif rule.type == "qualified-rule":
                for entry in tinycss2.parse_declaration_list(rule.content, skip_comments=True, skip_whitespace=True):
                    if entry.type == "error":
                        found.append(f"{entry.source_line}: {entry.message}")
                    elif not any(token.type not in ("whitespace", "comment") for token in entry.value):
                        found.append(f"{entry.source_line}: {entry.name} has no value")
            elif rule.content is not None:
                walk(tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True))
    walk(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True))
    return found

assert len(faults("a { color red } @media print { b { margin: } }")) == 2
found = [f"FAILED: {path}:{fault}" for path in sys.argv[1:] for fault in faults(open(path).read())]
print("\n".join(found), end="\n" if found else "")
sys.exit(bool(found))
END
  checked=1
else
  echo "left out, no python3-tinycss2 here: the style of the page"
fi
[ "$checked" -eq 1 ] || { echo "skipped: no linter here"; exit 77; }
echo "what was looked at passes"

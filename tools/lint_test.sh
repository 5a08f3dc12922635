#!/usr/bin/env bash
# The page's script passes ESLint (experiments/report/.eslintrc.json), and its style holds nothing that
# CSS's grammar does not know. Skipped where there is neither linter (Debian: apt install eslint
# python3-tinycss2).
#
#   lint_test.sh ROOT
set -euo pipefail
cd "$1/experiments/report"
checked=0
# Where Debian keeps its modules, for a Node.js that is not Debian's.
export NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs
lint() { eslint --no-eslintrc --config .eslintrc.json --format unix "$@"; }
if command -v eslint >/dev/null; then
  lint page/*.js page_test.js page_scale_test.js || { echo "FAILED: the script of the page"; exit 1; }
  # A check that cannot fail is none.
  faults='"use strict"; var a = 1; if (a == undefinedName) eval("a");'
  [ "$(lint --stdin <<<"$faults" | grep -cE 'no-var|eqeqeq|no-undef|no-eval')" -eq 4 ] ||
    { echo "FAILED: faults pass"; exit 1; }
  checked=1
fi
if /usr/bin/python3 -c 'import tinycss2' 2>/dev/null; then
  /usr/bin/python3 - page/page.css <<'END' || exit 1
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
found = faults(open(sys.argv[1]).read())
print("\n".join(f"FAILED: {sys.argv[1]}:{fault}" for fault in found), end="\n" if found else "")
sys.exit(bool(found))
END
  checked=1
fi
[ "$checked" -eq 1 ] || { echo "skipped: neither eslint nor python3-tinycss2 here"; exit 77; }
echo "script and style of the page pass"

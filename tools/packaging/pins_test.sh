#!/usr/bin/env bash
# Actions of the workflows are pinned by commit, and base images by digest: a tag may come to mean other code.
#
#   pins_test.sh ROOT
set -euo pipefail
cd "$1"
# unpinned FILE...: lines that take an action or an image by a name alone.
unpinned() {
  grep -nE '^[[:space:]]*(- )?(uses|container|image): |^FROM ' "$@" |
    grep -vE 'uses: [^ ]+@[0-9a-f]{40}( |$)|@sha256:[0-9a-f]{64}( |$)' || true
}
files=(.github/workflows/*.yml tools/packaging/Containerfile)
found=$(unpinned "${files[@]}")
[ -z "$found" ] || { printf 'FAILED: not pinned:\n%s\n' "$found"; exit 1; }
[ "$(cat "${files[@]}" | grep -cE '@[0-9a-f]{40}|@sha256:')" -ge 6 ] || { echo "FAILED: too few pins found"; exit 1; }
# A check that cannot fail is none.
[ "$(unpinned - <<<$'  - uses: actions/checkout@v4\n    container: debian:12\nFROM debian:12 AS build' | wc -l)" -eq 3 ] ||
  { echo "FAILED: what is not pinned passes"; exit 1; }
echo "pinned"

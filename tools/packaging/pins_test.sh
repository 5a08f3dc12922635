#!/usr/bin/env bash
# Actions of the workflows are pinned by commit, and base images by digest, since a tag may later
# stand for other code. An image has the same digest in all files.
#
#   pins_test.sh ROOT
set -euo pipefail
cd "$1"
# unpinned FILE...: prints lines that use an action or an image without a pin. Those of a matrix are
# separate lines.
unpinned() {
  grep -nE '^[[:space:]]*(- )?(uses|container|image): |^FROM ' "$@" |
    grep -vE 'uses: [^ ]+@[0-9a-f]{40}( |$)|@sha256:[0-9a-f]{64}( |$)|container: \$\{\{ matrix\.image \}\}$' || true
}
# differing FILE...: prints names of images with two digests.
differing() { grep -ohE '[a-z0-9/.-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}' "$@" | sort -u | sed 's/@.*//' | uniq -d; }
files=(.github/workflows/*.yml tools/packaging/Containerfile*)
found=$(unpinned "${files[@]}")
[ -z "$found" ] || { printf 'FAILED: not pinned:\n%s\n' "$found"; exit 1; }
found=$(differing "${files[@]}")
[ -z "$found" ] || { printf 'FAILED: pinned to two digests:\n%s\n' "$found"; exit 1; }
[ "$(cat "${files[@]}" | grep -cE '@[0-9a-f]{40}|@sha256:')" -ge 6 ] || { echo "FAILED: too few pins found"; exit 1; }
# Checks the check itself.
[ "$(unpinned - <<<$'  - uses: actions/checkout@v4\n    container: debian:12\nFROM debian:12 AS build\n - image: debian:13' | wc -l)" -eq 4 ] ||
  { echo "FAILED: what is not pinned passes"; exit 1; }
[ "$(for digit in 1 2; do printf 'image: debian:12@sha256:%064d\n' "$digit"; done | differing -)" = debian:12 ] ||
  { echo "FAILED: two digests of an image pass"; exit 1; }
echo "pinned"

#!/usr/bin/env bash
# Each package that the build requires is also in the build of the module for browsers, which is
# rarely made.
#
#   packages_test.sh ROOT
set -euo pipefail
cd "$1"
# missing FILE...: prints required packages that packages.cmake does not name.
missing() {
  sed -nE 's/^ *find_package\(([A-Za-z0-9_+-]+).* REQUIRED.*/\1/p' "$@" | sort -u | while read -r package; do
    grep -qE "$package(::|[ )])" tools/web/packages.cmake || echo "$package"
  done
}
mapfile -t files < <(find sim topologies models experiments validate tools -name CMakeLists.txt | sort)
found=$(missing CMakeLists.txt "${files[@]}" | grep -vx benchmark || true)  # of LAMBCAST_BENCH alone
[ -z "$found" ] || { echo "FAILED: tools/web/packages.cmake lacks $found"; exit 1; }
# Checks the check itself.
[ "$(missing - <<<'find_package(Absent 3 REQUIRED)')" = Absent ] || { echo "FAILED: a package that is absent passes"; exit 1; }
echo "all packages are known"

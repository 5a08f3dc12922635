#!/usr/bin/env bash
# Runs the instructions of the README and the manual: tools/quickstart, then every command of the
# ```sh blocks, in order. The commands of one document share a folder. A here document that ends
# with END belongs to its command.
#
#   readme_test.sh README.md FOLDER_OF_LAMBCAST
set -euo pipefail
readme=$(readlink -f "$1")
root=$(dirname "$readme")
PATH=$(readlink -f "$2"):$PATH
PYTHONPATH=$(readlink -f "$2")/python
export PYTHONPATH
# mpirun needs these settings to run as root; two ranks may share a core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# The quickstart without its installations and builds, which exist already.
mkdir tools build
cp "$root/tools/quickstart" tools
printf 'install_packages() { :; }\nbuild_lambcast() { :; }\n' >tools/setup.sh
ln -s "$(command -v lambcast)" build/lambcast
for study in new finished; do
  tools/quickstart >out 2>err || { echo "FAILED: tools/quickstart, $study: $(cat err)"; exit 1; }
  [ -s results/report.html ] || { echo "FAILED: tools/quickstart leaves no page"; exit 1; }
done
grep -q 'in results already' out || { echo "FAILED: tools/quickstart runs its study twice"; exit 1; }
lines=$(wc -l <"$readme") words=$(wc -w <"$readme")
if [ "$lines" -gt 120 ] || [ "$words" -gt 700 ]; then
  echo "FAILED: README.md has $lines lines and $words words; at most 120 and 700"
  exit 1
fi
commands=0
run_commands_of() { # DOCUMENT
  local command leaks
  cd "$(mktemp -d -p "$folder")"
  ln -s "$root/validate" validate
  while IFS= read -r -d '' command; do
    leaks=1
    case $command in
      mpirun*)
        command -v mpirun >/dev/null || { echo "left out, there is no mpirun: $command"; continue; }
        leaks=0 # MPI_Init of Open MPI leaks; every other error that a sanitizer finds still counts
        ;;
      /usr/bin/python3*)
        [ -d "$PYTHONPATH" ] || { echo "left out, the Python module is not built: ${command%%$'\n'*}"; continue; }
        ;;
    esac
    ASAN_OPTIONS=detect_leaks=$leaks bash -c "$command" >out 2>err </dev/null ||
      { echo "FAILED: $1: $command"; cat err; exit 1; }
    [ -s out ] || case $command in *'>'*) ;; *) echo "FAILED, prints nothing: $command"; exit 1 ;; esac
    commands=$((commands + 1))
  done < <(awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0}
    inside {printf "%s", $0} inside && /<</ {open = 1} inside && /^END$/ {open = 0}
    inside {printf (open ? "\n" : "%c"), 0}' "$1")
}
for document in "$readme" "$root"/tools/manual/*.md; do
  run_commands_of "$document"
done
[ "$commands" -ge 50 ] || { echo "FAILED: only $commands commands found"; exit 1; }
echo "$commands commands ran"

#!/usr/bin/env bash
# The Debian package on a minimal Debian: a root made by debootstrap, the package installed by apt
# with its dependencies only, run by a user without any files, and removed again. The workflow does
# this in a container; this script is for manual use, since it downloads 100 MB and takes some two
# minutes. Needs root and debootstrap.
#
#   clean_root_test.sh PACKAGE.deb         makes a root, tests, removes it
#   clean_root_test.sh PACKAGE.deb --here  in this root, as in the container: a disposable one
set -euo pipefail
[ -f "${1:-}" ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
package=$(readlink -f "$1")

# Runs in the clean root as root, with the package at $1.
in_clean_root() {
  local package=$1
  fail() { echo "FAILED: $*"; exit 1; }
  as_user() { # as nobody, from an empty folder, without an environment
    (cd /tmp/user && exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/bin:/bin "$@")
  }
  dpkg-query -W | cut -f1 | sort >/tmp/before
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "$package" >/dev/null
  dpkg-query -W | cut -f1 | sort >/tmp/after
  echo "$(comm -13 /tmp/before /tmp/after | wc -l) packages came: $(comm -13 /tmp/before /tmp/after | xargs)"
  for tool in python3 gnuplot mpirun cmake g++; do
    command -v "$tool" >/dev/null && fail "$tool is there: this root is not clean"
  done
  install -d -o 65534 -g 65534 /tmp/user
  as_user lambcast --version | grep -qE '^lambcast [0-9]+\.[0-9]+\.[0-9]+ \([0-9a-z-]+\)$' || fail "no version"
  as_user lambcast -q advise --model bert-large --cluster commodity-10gbe --gpus 32 --optimizer lamb \
    --global-batch 4096 --micro-batch 16 --steps 5993 --freeze-step 1000 | grep '^Pays: ' >/dev/null || fail "no verdict"
  as_user lambcast sweep /usr/share/doc/lambcast/examples/bert_large/sweep.toml --out swept >/tmp/out 2>/tmp/err ||
    fail "the example: $(cat /tmp/err)"
  grep -q 'gnuplot is not installed' /tmp/err || fail "not that pictures are missing: $(cat /tmp/err)"
  [ -s /tmp/user/swept/report.html ] || fail "no page without gnuplot"
  as_user lambcast -q rerun swept | grep '^The same bytes' >/dev/null || fail "other rows the second time"
  as_user lambcast validate >/tmp/out || fail "validate: $(tail -3 /tmp/out)"
  # Without MPI and without a GPU it reports what is missing, with exit code 4.
  local code=0
  as_user lambcast measure --backend nccl --op all_reduce -b 1M -e 1M >/tmp/out 2>&1 || code=$?
  [ "$code" -eq 4 ] || fail "measure ends with $code: $(cat /tmp/out)"
  for file in /usr/share/man/man1/lambcast.1 /usr/share/bash-completion/completions/lambcast; do
    [ -s "$file" ] || fail "the package has no $file"
  done
  apt-get purge -y -qq lambcast >/dev/null
  for file in /usr/bin/lambcast /usr/bin/lambcast-measure /usr/lib/lambcast /usr/share/lambcast; do
    [ ! -e "$file" ] || fail "$file stays behind"
  done
  echo "the package runs on a clean root"
}

if [ "${2:-}" = --here ]; then
  in_clean_root "$package"
  exit
fi
[ "$(id -u)" -eq 0 ] || { echo "only root can make a root" >&2; exit 4; }
command -v debootstrap >/dev/null || { echo "debootstrap is not installed" >&2; exit 4; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$root.log" 2>&1 ||
  { tail -3 "$root.log"; exit 1; }
rm -f "$root.log"
install -m 644 "$package" "$root/tmp/lambcast.deb"
install -m 755 "$0" "$root/tmp/clean_root_test.sh"
unshare --mount --pid --fork --root="$root" --mount-proc /tmp/clean_root_test.sh /tmp/lambcast.deb --here

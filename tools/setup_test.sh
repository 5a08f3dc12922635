#!/usr/bin/env bash
# tools/setup.sh waits for another apt: with apt's own timeout for the lock of dpkg, and by retries
# for the lock of the lists. Any other failure of apt ends it immediately, with apt's message.
#
#   setup_test.sh
set -euo pipefail
setup=$(dirname "$(readlink -f "$0")")/setup.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $*"; exit 1; }
mkdir bin
# An apt-get whose update fails once for each line of the file `failures`, with that line as its
# message.
cat >bin/apt-get <<'END'
#!/bin/sh
echo "$@" >>calls
case " $* " in *" update "*) [ ! -s failures ] || { head -n 1 failures >&2; sed -i 1d failures; exit 100; } ;; esac
END
printf '#!/bin/sh\nexit 1\n' >bin/dpkg-query
printf '#!/bin/sh\nexec "$@"\n' >bin/sudo
chmod +x bin/*
# shellcheck disable=SC1090,SC2034
run() { rm -f calls; (PATH=$PWD/bin:$PATH && . "$setup" && packages=(one) && install_packages) >out 2>err; }

lock='E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)'
printf '%s\n%s\n' "$lock" "$lock" >failures
run || fail "gives up on a lock: $(cat err)"
[ "$(grep -c ' update ' calls)" -eq 3 ] || fail "does not ask again: $(cat calls)"
grep -q -- '-o DPkg::Lock::Timeout=300 install .* one$' calls || fail "does not wait for dpkg: $(cat calls)"
printf '%s\n%s\n' "$lock" "$lock" >failures
LAMBCAST_LOCK_TIMEOUT=0 run && fail "waits for a lock for ever"
echo 'E: no network' >failures
run && fail "goes on without lists of packages"
grep -q 'no network' err && [ "$(wc -l <calls)" -eq 1 ] || fail "hides why: $(cat err)"
echo "setup.sh waits for apt"

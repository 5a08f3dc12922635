#!/usr/bin/env bash
# An installation works in its own root: the files of `cmake --install`, and the unpacked Debian
# package. The manual is read, the completion used and a forecast made. Both use the part of the
# build folder that tools/quickstart builds, so its target must contain everything that an
# installation needs.
#
#   install_test.sh BUILD_FOLDER VERSION PYTHON_PACKAGES [PYTHON]
set -euo pipefail
build=$(readlink -f "$1") version=$2 packages=$3 python=${4:-}
[ -x "$build/lambcast-measure" ] && [ -f "$build/tools/packaging/lambcast.1" ] ||
  { echo "not everything is built: skipped"; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
# grep is used without -q, so that it reads all input: a program whose reader ends early gets
# SIGPIPE.

# installed_view FOLDER: copies the rules of installation and the files that they name, except for
# those that only other targets build.
installed_view() {
  local view=$1 file
  ninja -C "$build" -t graph lambcast_installed | sed -n 's/.*\[label="\([^"]*\)".*/\1/p' | sort -u >"$root/made"
  ninja -C "$build" -t targets all | sed 's/: [^:]*$//' >"$root/outputs"
  while IFS= read -r file; do
    grep -qxF "$file" "$root/outputs" && ! grep -qxF "$file" "$root/made" && continue
    install -D "$build/$file" "$view/$file"
  done < <(cd "$build" && {
    find . -name cmake_install.cmake -exec grep -ho "\"$build/[^\"]*\"" {} + | sed "s|^\"$build/||; s|\"$||" | sort -u |
      while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done
    echo cmake_install.cmake
    echo CPackConfig.cmake
    [ ! -d python ] || find python -name '*.py'
  })
  find "$view" \( -name cmake_install.cmake -o -name CPackConfig.cmake \) -exec sed -i "s|$build|$view|g" {} +
}

view=$root/build
if [ -f "$build/build.ninja" ]; then installed_view "$view"; else view=$build; fi
DESTDIR="$root/installed" cmake --install "$view" --prefix /usr >"$root/log" 2>&1 ||
  fail "cmake --install after building lambcast_installed: $(grep -A3 Error "$root/log")"
[ -z "$python" ] || (cd "$root" && env -i PYTHONPATH="$view/python" "$python" -Bc 'import lambcast') ||
  fail "PYTHONPATH=build/python does not import lambcast after building lambcast_installed"
check() {
  local at=$1 file
  for file in bin/lambcast bin/lambcast-measure share/man/man1/lambcast.1* \
    share/bash-completion/completions/lambcast share/zsh/vendor-completions/_lambcast \
    share/lambcast/presets/commodity-10gbe.toml share/lambcast/presets/bert-large.toml \
    share/lambcast/presets/v100-32g.toml share/lambcast/schemas/simulate.schema.json \
    share/doc/lambcast/README.md share/doc/lambcast/manual/first_forecast.md share/doc/lambcast/changelog* share/doc/lambcast/copyright \
    share/doc/lambcast/reference.md share/doc/lambcast/reference.json share/doc/lambcast/llms.txt \
    share/doc/lambcast/lambcast.cdx.json share/doc/lambcast/examples/bert_large/sweep.toml; do
    compgen -G "$at/usr/$file" >/dev/null || fail "no $file in $at"
  done
  # Run in a folder without the sources, and without the caller's environment.
  (cd "$root" && env -i "$at/usr/bin/lambcast" --version) | grep -qxE "lambcast $version \([0-9a-z-]+\)" ||
    fail "another version than $version"
  (cd "$root" && env -i "$at/usr/bin/lambcast" advise --model bert-large --cluster commodity-10gbe \
    --gpus 32 --optimizer lamb --global-batch 4096 --micro-batch 16 --steps 5993 --freeze-step 1000) |
    grep '^Pays: ' >/dev/null || fail "no forecast from $at"
  (cd "$root" && env -i "$at/usr/bin/lambcast" sweep "$at"/usr/share/doc/lambcast/examples/bert_large/sweep.toml \
    --dry-run) | grep 'points' >/dev/null || fail "the example does not run from $at"
  # Two processes that MPI does not connect are reported, if the build has MPI.
  [ ! -e "$build/lambcast-mpi.so" ] ||
    { cd "$root" && env -i PATH="$PATH" HOME="$root" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \
      "$at/usr/bin/lambcast" sweep bert_large --dry-run 2>&1 || true; } | grep -q 'MPI sees 1' ||
    fail "$at/usr/bin/lambcast does not find lambcast-mpi.so"
  [ -z "$python" ] ||
    (cd "$root" && env -i PYTHONPATH="$at/usr/$packages" "$python" -Bc \
      'import lambcast; print("version", lambcast.__version__, len(lambcast.collective(cluster="aws-p5", gpus=8, b=8, e=8)["results"]))') |
    grep -qx "version $version 1" || fail "Python does not run the package of $at"
  # shellcheck disable=SC1090,SC1091
  (source "$at"/usr/share/bash-completion/completions/lambcast && COMP_WORDS=(lambcast advise --clus) &&
    COMP_CWORD=2 && _lambcast && [ "${COMPREPLY[*]}" = --cluster ]) || fail "no completion of --cluster"
  # shellcheck disable=SC1090,SC1091
  (source "$at"/usr/share/bash-completion/completions/lambcast && COMP_WORDS=(lambcast sol) &&
    COMP_CWORD=1 && _lambcast && [ "${COMPREPLY[*]}" = solve ]) || fail "no completion of solve"
}
check "$root/installed"
if command -v man >/dev/null; then
  man --warnings -l "$root/installed/usr/share/man/man1/lambcast.1" >"$root/man" 2>"$root/warnings" ||
    fail "man does not read the page"
  [ ! -s "$root/warnings" ] || fail "man warns: $(head -3 "$root/warnings")"
  grep -q 'micro-batch' "$root/man" || fail "the manual page lacks --micro-batch"
fi

command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null ||
  { echo "installed files run (no dpkg-dev: the package was not built)"; exit 0; }
(cd "$root" && cpack --config "$view/CPackConfig.cmake" -B "$root/package" >"$root/cpack.log") ||
  fail "cpack: $(tail -3 "$root/cpack.log")"
package=$(ls "$root"/package/lambcast_*.deb)
[ "$(dpkg-deb -f "$package" Version)" = "$version" ] || fail "the package is not of version $version"
dpkg-deb -f "$package" Depends | grep -q 'libc6' || fail "the package depends on nothing"
dpkg-deb -x "$package" "$root/unpacked"
check "$root/unpacked"
echo "installed files and the package run"

# shellcheck shell=bash
# Shared by quickstart and test: packages and the build. Sourced, not run.

packages=(g++ cmake ninja-build libboost-graph-dev libboost-context-dev libeigen3-dev libfmt-dev libcli11-dev
  nlohmann-json3-dev libtomlplusplus-dev libyaml-cpp-dev catch2 libbenchmark-dev gnuplot-nox fonts-dejavu-core
  libopenmpi-dev openmpi-bin iproute2 pybind11-dev python3-dev python3-jsonschema libsqlite3-dev zlib1g-dev)
# Packages that single tests need; installed if LAMBCAST_OPTIONAL is set.
optional=(python3-torch python3-pandas python3-pip python3-setuptools python3-wheel python3-yaml pandoc
  munge slurm-client slurm-wlm-basic-plugins slurmctld slurmd)

# update_lists APT...: waits for the lock of apt's lists, to which apt's own timeout does not apply.
update_lists() {
  local words until=$((SECONDS + ${LAMBCAST_LOCK_TIMEOUT:-300}))
  while ! words=$("$@" update -qq 2>&1); do
    [[ $words == *'/lists/lock'* && $SECONDS -lt $until ]] || { echo "$words" >&2; return 1; }
    sleep 1
  done
}

# Installs missing packages; uses root only if there are any.
install_packages() {
  local missing=() package root=() wanted=("${packages[@]}")
  [ -z "${LAMBCAST_OPTIONAL:-}" ] || wanted+=("${optional[@]}")
  for package in "${wanted[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || {
    echo "These packages are needed and there is no apt-get to install them: ${missing[*]}" >&2
    exit 4
  }
  [ "$(id -u)" -eq 0 ] || root=(sudo)
  echo "Installing: ${missing[*]}"
  # Waits up to 300 s for another apt, which may run after the start of a virtual machine.
  local apt=("${root[@]}" apt-get -o DPkg::Lock::Timeout=300)
  update_lists "${apt[@]}" || exit 4
  DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build_lambcast FOLDER TYPE TARGETS [cmake options]
build_lambcast() {
  local folder=$1 type=$2 target=$3
  shift 3
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE="$type" "$@" >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    exit 1
  }
  rm -f "$folder.log"
  # shellcheck disable=SC2086  # a list of words
  cmake --build "$folder" --target $target
}

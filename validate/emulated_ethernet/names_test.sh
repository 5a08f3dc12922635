#!/usr/bin/env bash
# Checks that `down` ends only the processes in the network of exactly that name. Runs without root: a fake ip(8) lists
# namespaces of this and of other programs, each with one process of this test.
set -euo pipefail
ethernet=$(dirname "$(readlink -f "$0")")/emulated-ethernet
fail() { echo "FAILED: $1"; exit 1; }

folder=$(mktemp -d)
trap 'kill $(cat "$folder"/pids/* 2> /dev/null) 2> /dev/null; rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/pids"
cat > "$folder/bin/ip" << 'END'
#!/usr/bin/env bash
cd "$(dirname "$0")/../pids"
case "$1 $2" in
  "netns list") for ns in *; do echo "$ns (id: 0)"; done ;;
  "netns pids") cat -- "$3" ;;
  "netns del") rm -- "$3" ;;
esac
END
chmod +x "$folder/bin/ip"
export PATH="$folder/bin:$PATH"

people=(lcnetwork-h0 my-lcnet-up7-h0 lcnet-up77-h0 lcnet-up7-h0-backup lcnet-h0 blue)
populate() {
  # shellcheck disable=SC2046
  kill $(cat "$folder"/pids/* 2> /dev/null) 2> /dev/null || true
  rm -f "$folder"/pids/*
  local ns
  for ns in "${people[@]}" lcnet-up7-h0 lcnet-up7-h12 lcnet-up7-sw; do
    sleep 60 > /dev/null &
    echo $! > "$folder/pids/$ns"
    disown
  done
}
alive() { kill -0 "$(cat "$folder/pids/$1" 2> /dev/null)" 2> /dev/null; }

populate
"$ethernet" down lcnet-up7
[ -z "$(find "$folder/pids" -name 'lcnet-up7-h0' -o -name 'lcnet-up7-h12' -o -name 'lcnet-up7-sw')" ] ||
  fail "down leaves namespaces of its own"
for ns in "${people[@]}"; do alive "$ns" || fail "down lcnet-up7 ended $ns"; done

# Patterns, prefixes and an empty variable are not names.
populate
for name in "" lcnet lcnet-up 'lcnet.*' '.' 'lcnet-up7-h0' 'lcnet-up7 blue' '*' '-n' "lcnet-up7
blue"; do
  for command in "down" "run" "exec"; do
    arguments=("$command" "$name")
    [ "$command" = down ] || arguments+=(0 true)
    code=0
    said=$("$ethernet" "${arguments[@]}" 2>&1) || code=$?
    [ $code = 2 ] || fail "'$command $name' exits with $code"
    [[ $said == *"is no name of a network"* ]] || fail "'$command $name' says: $said"
  done
done
code=0
"$ethernet" down 2> /dev/null || code=$?
[ $code = 2 ] || fail "down without a name exits with $code"
for ns in "${people[@]}" lcnet-up7-h0; do alive "$ns" || fail "a refused command ended $ns"; done
code=0
"$ethernet" exec lcnet-up7 1 true 2> /dev/null || code=$?
[ $code = 2 ] || fail "a host that is a part of another's name is found"

"$ethernet" down --all
for ns in lcnetwork-h0 my-lcnet-up7-h0 lcnet-up7-h0-backup lcnet-h0 blue; do
  alive "$ns" || fail "down --all ended $ns"
done
[ ! -e "$folder/pids/lcnet-up77-h0" ] || fail "down --all leaves a network of ours"

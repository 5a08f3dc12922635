#!/usr/bin/env bash
# Every #include points down: folders are layers, and a file includes only from its own layer and
# from lower ones. The files that the map and the guides name exist.
#
#   includes_test.sh ROOT            checks the sources below ROOT
#   includes_test.sh ROOT --canary   plants an include that points up in a copy, which must be found
set -euo pipefail
root=$(readlink -f "$1")

# check ROOT: prints the includes that point up, and the number of includes on stderr.
check() {
  (cd "$1" && find sim kernels topologies models experiments validate tools -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
    xargs -0 awk -v decoders='^models/(deepspeed|huggingface|launchers|megatron|torchtitan)/' '
      function floor_of(path) {
        if (path ~ /^sim\/base\//) return 0
        if (path ~ /^(sim|kernels)\//) return 1
        if (path ~ /^(topologies|models)\//) return 2
        if (path ~ /^experiments\//) return 3
        if (path ~ /^validate\//) return 4
        if (path ~ /^tools\//) return 5
        return -1
      }
      # Folders of a layer, in the order in which they may include one another; tests may include
      # all.
      BEGIN {
        split("plan price memory run", training)
        for (i in training) room["models/training/" training[i]] = i + 0
        split("verdict report scenario output search sweep advise compare phases sites reference convergence", questions)
        for (i in questions) room["experiments/" questions[i]] = i + 0
      }
      function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
      function floor_name(path) { return path ~ /^models\/training\// ? "models/training" : "experiments" }
      function points_up_between_rooms(file, target,   from, to) {
        from = folder_of(file); to = folder_of(target)
        return !(file ~ /_(test|case|fuzz)\.(cc|h)$/) && (from in room) && (to in room) &&
               floor_name(from) == floor_name(to) && room[to] > room[from]
      }
      # Quoted includes are files of this repository, named from the root; "embedded/..." is
      # generated for its user.
      match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) {
        split(substr($0, RSTART, RLENGTH), quoted, "\"")
        target = quoted[2]
        if (target ~ /^embedded\//) next
        ++seen
        to = floor_of(target)
        from = floor_of(FILENAME)
        if (to < 0)
          print FILENAME ":" FNR ": \"" target "\" is not named from the root"
        else if (to > from)
          print FILENAME ":" FNR ": " target " lies on a floor above"
        else if (points_up_between_rooms(FILENAME, target))
          print FILENAME ":" FNR ": " target " lies in a room above"
        else if (FILENAME ~ /^topologies\// && target ~ /^models\//)
          print FILENAME ":" FNR ": clusters know nothing of models: " target
        else if (FILENAME ~ /^models\/(training|recipe)\// && target ~ decoders)
          print FILENAME ":" FNR ": plans know nothing of how files say it: " target
        else if (FILENAME ~ decoders && target ~ /^models\/training\//)
          print FILENAME ":" FNR ": files are decoded into models/recipe or what-ifs: " target
        else if (FILENAME ~ /^sim\// && target ~ /^kernels\//)
          print FILENAME ":" FNR ": the simulator knows nothing of kernels: " target
        else if (FILENAME ~ /^kernels\// && target ~ /^sim\// && to > 0)
          print FILENAME ":" FNR ": kernels know nothing of the simulator: " target
      }
      END { print seen + 0 > "/dev/stderr" }')
}

if [ "${2:-}" = --canary ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder"/{sim/base,kernels,topologies,models/{training/{plan,run},recipe,deepspeed},experiments/{output,sweep},validate,tools}
  cp "$root"/sim/base/*.h "$folder/sim/base"
  [ -z "$(check "$folder" 2>/dev/null)" ] || { echo "FAILED: the copy is not clean"; exit 1; }
  # Each line is an include that points up, or past its layer.
  while read -r file target; do
    printf '#include "%s"\n' "$target" >"$folder/$file"
    check "$folder" 2>/dev/null | grep -q "^$file:1: " ||
      { echo "FAILED: $file may include $target"; exit 1; }
    rm "$folder/$file"
  done <<'END'
sim/base/canary.h sim/engine/engine.h
sim/canary.cc topologies/cluster.h
sim/canary.cc kernels/layout.h
kernels/canary.cu sim/engine/engine.h
kernels/canary.cc models/finding.h
topologies/canary.cc models/shape/shape.h
models/canary.h experiments/sweep/sweep.h
models/training/canary.cc models/deepspeed/config.h
models/training/canary_test.cc models/megatron/arguments.h
models/recipe/canary.h models/deepspeed/release.h
models/deepspeed/canary.cc models/training/plan/training_plan.h
models/training/plan/canary.cc models/training/run/forecast.h
experiments/output/canary.h experiments/sweep/sweep.h
experiments/canary.cc validate/replay/replay.h
validate/canary.cc tools/commands.h
models/canary.cc finding.h
END
  echo "every arrow that points up was found"
  exit 0
fi

seen=$(mktemp)
trap 'rm -f "$seen"' EXIT
wrong=$(check "$root" 2>"$seen")
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
count=$(awk '{sum += $1} END {print sum + 0}' "$seen")
[ "$count" -ge 500 ] || { echo "FAILED: only $count includes seen"; exit 1; }
named=0
for document in tools/manual/architecture.md .github/CONTRIBUTING.md; do
  while IFS= read -r path; do
    [ -e "$root/$path" ] || { echo "FAILED: $document names $path, which is not there"; exit 1; }
    named=$((named + 1))
  done < <(grep -oE '`(sim|kernels|topologies|models|experiments|validate|tools)/[a-zA-Z0-9_./-]+`' "$root/$document" | tr -d '`' | grep -v NAME)
done
[ "$named" -ge 40 ] || { echo "FAILED: the map and the guides name only $named files"; exit 1; }
echo "$count includes point down; $named files that the map and the guides name exist"

#!/usr/bin/env bash
# A failing disk, or a kill, at each call that changes a file (faulty_disk.cc): an error is one line
# and exit code 1, finished work is not lost, and resumed work ends with the same bytes.
#
#   faults_test.sh LAMBCAST FAULTY_DISK
#
# By default kills are tested at each call, and the other faults, which share one code path, at the
# first twelve calls of a command and every third call after them. LAMBCAST_FAULTS=all tests each
# fault at each call.
shim=$(readlink -f "$2")
# shellcheck source=tools/expect.sh
. "$(dirname "$(readlink -f "$0")")/expect.sh"
mkdir disk
bytes=  # bytes written by a torn call; empty: half of them

# with_fault CALL FAULT COMMAND...: sets `got`, and `met` if the command reached this call.
with_fault() {
  local call=$1 fault=$2
  shift 2
  rm -f mark
  got=0 met=
  { timeout -k 5 60 env FAULT_FOLDER="$folder/disk" FAULT_MARK="$folder/mark" FAULT_CALL="$call" FAULT="$fault" \
    FAULT_BYTES="$bytes" ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="$shim" "$@" >out 2>err </dev/null || got=$?; } 2>/dev/null  # no word of a kill
  [ ! -e mark ] || met=yes
}

# after FAULT CALL: prints the next call at which a fault is tested.
after() {
  case ${LAMBCAST_FAULTS:-}:$1 in
    all:* | *:kill) echo $(($2 + 1)) ;;
    *) [ "$2" -lt 12 ] && echo $(($2 + 1)) || echo $(($2 + 3)) ;;
  esac
}

# Checks the message that a user sees.
told() { # FAULT WHAT
  checks=$((checks + 1))
  case $1 in
    kill | tear) [ "$got" -eq 137 ] || fail "exit code $got after a $1: $2" ;;
    EROFS) [ "$got" -eq 1 ] || [ "$got" -eq 2 ] || fail "exit code $got: $2: $(cat err)" ;;
    *) [ "$got" -eq 1 ] || fail "exit code $got, not 1: $2: $(cat err)" ;;
  esac
  case $1 in
    kill | tear) ;;
    *)
      [ "$(wc -l <err)" -eq 1 ] && grep -q '^lambcast: ' err || fail "not one line: $2: $(cat err)"
      grep -q 'internal error' err && fail "an error of ours: $2: $(cat err)"
      grep -qE 'No space left|quota exceeded|Read-only|Input/output|cannot be (written|opened)|cannot (write|make)' err ||
        fail "does not say why: $2: $(cat err)"
      ;;
  esac
}

# Sweeps: 12 points, one of which cannot run.
cat >sweep.toml <<'END'
name = "small"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
[grid]
gpus = [4, 8]
optimizer = ["lamb", "onebit_lamb"]
seq_len = [128, 256, 1024]
END
sweep() { "$lambcast" -q sweep sweep.toml --no-report --jobs 1 --out "$@"; }
sweep whole >/dev/null || fail "no sweep"
# Tells whether the sweep succeeded although a call failed: a sync that fails after the last file
# has its final name is not reported.
is_whole() {
  [ "$got" -eq 0 ] && [ ! -s err ] && cmp -s whole/results.csv disk/out/results.csv && cmp -s whole/manifest.json disk/out/manifest.json
}
is_prefix() { cmp -s <(head -c "$(stat -c %s "$1")" whole/results.csv) "$1"; }
goes_on() { # WHAT
  sweep disk/out --resume >out 2>err || fail "--resume after $1: $(cat err)"
  cmp -s whole/results.csv disk/out/results.csv || fail "other rows after $1"
  cmp -s whole/manifest.json disk/out/manifest.json || fail "another manifest after $1"
}
rows_call=
for fault in kill tear ENOSPC EDQUOT EROFS; do
  for ((call = 1; call < 100; call = $(after "$fault" "$call"))); do
    rm -rf disk/out
    with_fault $call $fault "$lambcast" -q sweep sweep.toml --no-report --jobs 1 --out disk/out
    [ -n "$met" ] || break
    is_whole || told $fault "call $call of a sweep"
    if [ -e disk/out/results.csv ]; then
      is_prefix disk/out/results.csv || fail "$fault at call $call: no prefix of the results"
      [ $fault = tear ] && [ -z "$rows_call" ] && [ "$(wc -l <disk/out/results.csv)" -gt 1 ] && rows_call=$call
    fi
    goes_on "$fault at call $call"
  done
  [ "$call" -gt 15 ] && [ "$call" -lt 100 ] || fail "$fault met only $((call - 1)) calls"
done
# Killed at every row: at its end and in its middle.
[ -n "$rows_call" ] || fail "no call writes rows"
header=$(head -1 whole/results.csv | wc -c)
end=$header
for ((row = 2; row <= 13; ++row)); do
  start=$end
  end=$(head -$row whole/results.csv | wc -c)
  for bytes in $((end - header)) $(((start + end) / 2 - header)); do
    rm -rf disk/out
    with_fault "$rows_call" tear "$lambcast" -q sweep sweep.toml --no-report --jobs 1 --out disk/out
    told tear "row $row"
    [ "$(stat -c %s disk/out/results.csv)" -eq $((header + bytes)) ] || fail "row $row was not torn"
    goes_on "a kill at row $row"
  done
done
bytes=
# A resumed sweep also fails, and keeps all existing rows.
for ((call = 1; call < 100; call = $(after ENOSPC "$call"))); do
  rm -rf disk/out
  mkdir disk/out
  cp whole/results.sums whole/manifest.json disk/out
  head -8 whole/results.csv >disk/out/results.csv
  with_fault $call ENOSPC "$lambcast" -q sweep sweep.toml --no-report --jobs 1 --out disk/out --resume
  [ -n "$met" ] || break
  is_whole || told ENOSPC "call $call of a sweep that goes on"
  is_prefix disk/out/results.csv && [ "$(wc -l <disk/out/results.csv)" -ge 8 ] || fail "rows lost at call $call"
  goes_on "ENOSPC at call $call of a sweep that goes on"
done

no_more_than() { # RIGHTS OWNER:GROUP FILE
  local rights=$1
  [ "$(stat -c %g "$3")" = "${2#*:}" ] || rights=$(printf %o $((0$rights & 0707)))
  (((0$(stat -c %a "$3") & ~0$rights) == 0))
}

# each KEPT COMMAND...: tests faults at each call. The file KEPT is complete, either old or new,
# with its owner. Neither KEPT nor its replacement becomes readable for anyone who could not read
# KEPT before.
each() {
  local kept=$1 fault call rights owner
  rights=$(stat -c %a "$kept")
  owner=$(stat -c %u:%g "$kept")
  shift
  cp "$kept" before
  "$@" >out 2>err || fail "$*: $(cat err)"
  cp "$kept" after
  for fault in kill tear ENOSPC; do
    for ((call = 1; call < 200; call = $(after "$fault" "$call"))); do
      cp before "$kept"
      with_fault $call $fault "$@"
      [ -n "$met" ] || break
      { [ "$got" -eq 0 ] && cmp -s after "$kept"; } || told $fault "call $call of $*"
      cmp -s before "$kept" || cmp -s after "$kept" || fail "$fault at call $call: $kept is lost: $*"
      [ "$(stat -c %a "$kept")" = "$rights" ] || fail "$fault at call $call: rights $(stat -c %a "$kept") of $kept, not $rights: $*"
      [ "$(stat -c %u:%g "$kept")" = "$owner" ] || fail "$fault at call $call: $kept belongs to $(stat -c %u:%g "$kept"): $*"
      [ ! -e "$kept.part" ] || no_more_than "$rights" "$owner" "$kept.part" ||
        fail "$fault at call $call: rights $(stat -c '%a %u:%g' "$kept.part") of $kept.part, more than $rights $owner: $*"
    done
    [ "$call" -gt 1 ] || fail "no fault met: $*"
  done
  "$@" >out 2>err || fail "after all: $*: $(cat err)"
  [ "$(stat -c %a "$kept")" = "$rights" ] || fail "other rights in the end: $*"
}
# A program that replaces gnuplot, since each picture is drawn some hundred times.
mkdir bin
printf '#!/bin/sh\nfor script; do :; done\necho "<svg/>" >"${script%%.gp}.svg"\necho >"${script%%.gp}.png"\n' >bin/gnuplot
chmod +x bin/gnuplot
export PATH="$folder/bin:$PATH"
cp -r whole disk/report
"$lambcast" report disk/report >/dev/null 2>&1 || fail "no report"
printf '# collective: all_gather\n# ranks: 2\n# nodes: 2\nsize_bytes,time_us\n1024,30\n1048576,900\n67108864,54000\n' >table.csv
"$lambcast" calibrate --cluster commodity-10gbe -o disk/mine.toml --name older table.csv >/dev/null || fail "no calibration"
run=(--model bert-large --cluster paper-eth40-v100 --gpus 8 --optimizer onebit_lamb --micro-batch 16 --steps 1000)
echo '{}' >disk/trace.json
echo 'name = "older"' >disk/written.toml
each disk/report/report.html "$lambcast" report disk/report
cmp -s whole/results.csv disk/report/results.csv || fail "a report touches the results"
for rights in 600 666; do  # narrower and wider than those of a new file
  chmod $rights disk/mine.toml
  each disk/mine.toml "$lambcast" calibrate --cluster commodity-10gbe --force -o disk/mine.toml table.csv
done
if [ "$(id -u)" -eq 0 ]; then  # nobody else may give files away
  chmod 640 disk/mine.toml
  chown 4242:4243 disk/mine.toml
  each disk/mine.toml "$lambcast" calibrate --cluster commodity-10gbe --force -o disk/mine.toml table.csv
fi
for command in simulate advise; do
  each disk/trace.json "$lambcast" "$command" "${run[@]}" --trace disk/trace.json
done
echo older >disk/answer.json
each disk/answer.json "$lambcast" simulate "${run[@]}" --export disk/answer.json
each disk/written.toml "$lambcast" -q sweep "${run[@]}" --list seq_len=128,256 --write-sweep disk/written.toml
# A report writes its page again, and replaces a file of parts that has too few rows.
each disk/report/report.html "$lambcast" -q sweep sweep.toml --jobs 1 --out disk/report --resume
"$lambcast" report disk/report --parts >/dev/null || fail "no parts"
head -40 disk/report/parts.csv >fewer.csv && mv fewer.csv disk/report/parts.csv
each disk/report/parts.csv "$lambcast" report disk/report --parts
cmp -s whole/results.csv disk/report/results.csv || fail "a page or the parts touch the results"
cat >own.csv <<'END'
id,stage,quantity,measured,role,max_error,model,cluster,optimizer,backend,gpus,micro_batch,grad_accum,seq_len,steps
mine,uniform,step_time_ms,2068,unseen,1,bert-large,paper-eth40-v100,lamb,nccl,8,16,1,128,1
END
"$lambcast" validate --against own.csv --out disk/own >/dev/null || fail "no page of validate"
sed -i 's/,2068,/,2067,/' own.csv
cp -r disk/own disk/other
each disk/own/report.html "$lambcast" validate --against own.csv --out disk/own
each disk/other/training.csv "$lambcast" validate --against own.csv --out disk/other
echo older >disk/rows.csv
each disk/rows.csv "$lambcast" validate --against table.csv --cluster commodity-10gbe --rows disk/rows.csv
# A rerun keeps the rows that it compares with, and the same command continues it.
cp -r whole disk/whole
for out in "" "--out disk/again"; do
  for fault in kill tear ENOSPC; do
    for ((call = 1; call < 100; call = $(after "$fault" "$call"))); do
      rm -rf disk/again disk/whole.again
      # shellcheck disable=SC2086
      with_fault $call $fault "$lambcast" -q rerun disk/whole $out --jobs 1
      [ -n "$met" ] || break
      { [ "$got" -eq 0 ] && grep -q '^The same bytes' out; } || told $fault "call $call of a rerun $out"
      for file in results.csv results.sums manifest.json; do
        cmp -s whole/$file disk/whole/$file || fail "$fault at call $call of a rerun $out: $file is another"
      done
      # shellcheck disable=SC2086
      expect 0 '^The same bytes' "$lambcast" -q rerun disk/whole $out --jobs 1
      [ -n "$out" ] || [ ! -e disk/whole.again ] || fail "$fault at call $call of a rerun: its rows are left"
    done
    [ "$call" -gt 15 ] && [ "$call" -lt 100 ] || fail "$fault met $((call - 1)) calls of a rerun $out"
  done
done
find disk -name '*.part' | grep -q . && fail "left behind: $(find disk -name '*.part')"

# The system clock runs backwards: only dates come from it.
CLOCK_BACKWARDS=1 ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$shim "$lambcast" -q sweep sweep.toml --no-report --out backwards >out 2>err ||
  fail "a clock that runs backwards: $(cat err)"
cmp -s whole/results.csv backwards/results.csv || fail "the clock is in the results"
summary

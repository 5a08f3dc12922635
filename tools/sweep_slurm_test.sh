#!/usr/bin/env bash
# A sweep started by srun writes the bytes of one process, and continues after Slurm has ended it.
# Uses a Slurm of one node that runs only during this test. Exit code 77 (skipped) without Slurm
# with PMIx, without the right to start one (it needs root), or without MPI in the program.
#
#   sweep_slurm_test.sh LAMBCAST
set -uo pipefail
lambcast=$(readlink -f "$1")
PATH=$PATH:/usr/sbin
skip() {
  echo "skipped: $*"
  exit 77
}
for program in munged slurmctld slurmd srun scancel; do
  command -v "$program" >/dev/null || skip "there is no $program"
done
[ "$(id -u)" -eq 0 ] || skip 'daemons of Slurm start as root'
[ -e "$(dirname "$lambcast")/lambcast-mpi.so" ] || skip 'built without MPI'

folder=$(mktemp -d)
daemons=(slurmd slurmctld munged)
stop() {
  for daemon in "${daemons[@]}"; do
    pid=$(cat "$folder/$daemon.pid" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null
    for ((i = 0; i < 100; ++i)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
  rm -rf "$folder"
}
trap stop EXIT
cd "$folder" || exit 1
fail() {
  echo "FAILED: $*"
  tail -n 5 ./*.log 2>/dev/null
  exit 1
}

# --- a Slurm of one node ---

host=$(hostname -s)
# Two ports that are not in use.
port=$((20000 + $$ % 10000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || (exec 3<>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null; do
  port=$((port + 2))
done
mkdir state spool
head -c 128 /dev/urandom >munge.key
chmod 600 munge.key
cat >slurm.conf <<END_OF_CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/linear
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES
END_OF_CONF
export SLURM_CONF=$folder/slurm.conf
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" 2>/dev/null || skip 'munged does not start here'
{ slurmctld && slurmd; } >start.log 2>&1 || skip "Slurm does not start here: $(tail -1 start.log)"
for ((i = 0; ; ++i)); do
  sinfo -h -o %t 2>/dev/null | grep -q '^idle$' && break
  [ "$i" -lt 100 ] || skip 'the node of this Slurm does not come up'
  sleep 0.1
done
srun --mpi=list 2>&1 | grep -q pmix || skip 'this Slurm has no PMIx'
launch=(srun --mpi=pmix --overcommit --quiet)

# --- sweeps ---

rows() { # whole rows on disk
  local lines
  lines=$(wc -l 2>/dev/null <"$1/results.csv") || lines=0
  echo $((lines > 0 ? lines - 1 : 0))
}
same() { # WHOLE OUT
  cmp "$1/results.csv" "$2/results.csv" || fail "$2: results differ"
  cmp "$1/manifest.json" "$2/manifest.json" || fail "$2: the manifests differ"
}

"$lambcast" sweep bert_large --list gpus=16 --no-report --out alone >/dev/null || fail 'alone'
for ranks in 2 4; do
  timeout 120 "${launch[@]}" -n "$ranks" "$lambcast" sweep bert_large --list gpus=16 --no-report \
    --out "of_$ranks" >out 2>err || fail "$ranks ranks: $(cat err)"
  [ "$(grep -c points out)" -eq 1 ] || fail "$ranks ranks do not speak with one voice: $(cat out)"
  same alone "of_$ranks"
done

timeout 60 "${launch[@]}" -n 3 "$lambcast" sweep bert_large --list gpus=16,none --out wrong >out 2>err
[ $? -eq 2 ] || fail 'a usage error of ranks does not end with 2'
[ "$(grep -c '^lambcast: ' err)" -eq 1 ] || fail "an error is said more than once: $(cat err)"

# A sweep that Slurm cancels can be continued.
cat >long.toml <<'END_OF_SWEEP'
name = "long"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
optimizer = "onebit_lamb"
[grid]
gpus = "4:256:4"
seq_len = "8:512:8"
freeze_step = "0%:100%:10%"
END_OF_SWEEP
"$lambcast" sweep long.toml --no-report --out long_alone >/dev/null || fail 'the long one alone'
timeout 120 "${launch[@]}" -n 3 -J long "$lambcast" sweep long.toml --no-report --out long >out 2>err &
launched=$!
for ((i = 0; i < 300 && $(rows long) < 500; ++i)); do sleep 0.05; done
scancel -n long
wait "$launched" && fail 'it ended before it was cancelled'
[ "$(rows long)" -gt 0 ] || fail 'nothing is on disk'
[ "$(rows long)" -lt "$(rows long_alone)" ] || fail 'all is on disk'
timeout 240 "${launch[@]}" -n 3 "$lambcast" sweep long.toml --no-report --out long --resume >out 2>err ||
  fail "it does not go on: $(cat err)"
same long_alone long
echo 'sweeps over srun are those of one process'

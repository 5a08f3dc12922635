#!/usr/bin/env bash
# The recipes for clusters run to their end with forecasts instead of measurements: `lambcast
# measure` accepts their questions, and the description that they fit gives a forecast. Without
# PyYAML only the Slurm job is run.
#
#   dry_run_test.sh LAMBCAST PYTHON
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
lambcast=$(readlink -f "$1") python=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
mkdir "$root/bin"
# Exit code 4: a valid question, and no GPU here.
cat >"$root/bin/lambcast" <<END
#!/bin/bash
export CUDA_VISIBLE_DEVICES=
accepts() {
  local code=0
  $lambcast "\$@" >/dev/null 2>$root/words || code=\$?
  [ \$code = 4 ] || { cat $root/words >&2; exit 1; }
}
case \$1 in
  survey)
    accepts "\$@"
    while [ "\$1" != -o ]; do shift; done
    for op in all_reduce all_gather; do \$0 measure --backend nccl --op \$op >$root/\$op.txt; done
    exec $lambcast calibrate $root/all_reduce.txt $root/all_gather.txt --cluster dgx-a100-80g -o "\$2/cluster.toml"
    ;;
  measure) accepts "\$@" ;;
  *) exec $lambcast "\$@" ;;
esac
while [ "\$1" != --op ]; do shift; done
for rank in {0..15}; do echo "#  Rank \$rank Group  0 on node\$((rank / 8)) device \$((rank % 8))"; done
exec $lambcast collective --op "\$2" --cluster dgx-a100-80g --gpus 16 -b 64K -e 256M -f 4
END
printf '#!/bin/bash\nexec "$@"\n' >"$root/bin/srun"
chmod +x "$root"/bin/*
export PATH=$root/bin:$PATH
fits() { "$lambcast" collective --op all_reduce --cluster "$1" --gpus 16 -b 1M -e 1M >/dev/null || fail "$1 does not forecast"; }
OUT=$root/slurm SLURM_JOB_ID=1 bash "$here/measure.slurm" --model bert-large --gpus 16 --optimizer onebit_lamb --global-batch 4096 \
  --micro-batch 16 --steps 5993 --freeze-step 1000 >"$root/log" 2>&1 ||
  fail "the job of Slurm: $(tail -3 "$root/log")"
fits "$root/slurm/cluster.toml"
OUT=$root/wrong SLURM_JOB_ID=1 bash "$here/measure.slurm" --modle bert-large >"$root/log" 2>&1 && fail "the job of Slurm accepts any question"
OUT=$root/none SLURM_JOB_ID=1 bash "$here/measure.slurm" >"$root/log" 2>&1 || fail "the job without a question: $(tail -3 "$root/log")"
"$python" -c 'import yaml' 2>/dev/null || { echo "the job of Slurm runs (no PyYAML: the one of Kubernetes was left out)"; exit 0; }
"$python" - "$here/measure-job.yaml" "$root" 2>"$root/log" <<'END' || fail "the job of Kubernetes: $(tail -3 "$root/log")"
import subprocess, sys, os, yaml
job = yaml.safe_load(open(sys.argv[1]))
assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job") and job["metadata"]["name"] == "lambcast-measure"
pod = job["spec"]["template"]["spec"]
assert pod["restartPolicy"] == "Never"
container, = pod["containers"]
env = {entry["name"]: entry["value"] for entry in container["env"]}
assert all(isinstance(value, str) for value in env.values()), "the value of a variable is a text"
assert str(container["resources"]["limits"]["nvidia.com/gpu"]) == env["GPUS"]
assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
with open(os.path.join(sys.argv[2], "kubernetes.toml"), "w") as out:
    subprocess.run(container["command"] + container["args"], env={**os.environ, **env}, stdout=out, check=True)
END
fits "$root/kubernetes.toml"
echo "both jobs run"

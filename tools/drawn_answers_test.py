#!/usr/bin/env python3
"""Every JSON answer to a drawn question is what its schema says: degenerate and refused points included.

    drawn_answers_test.py LAMBCAST SCHEMAS [COUNT [SEED]]

COUNT questions are drawn of each kind (4 in CI, 100 on demand).
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from schemas_test import jsonschema, strict

PROGRAM = os.path.abspath(sys.argv[1])
CLUSTERS = ["commodity-10gbe", "hgx-h100-ndr", "perlmutter-a100", "emulated-ethernet-100mbit", "paper-eth40-v100",
            "dgx2h-v100", "selene-a100", "aws-p4d", "gcp-a3-mega"]
# Small jobs run with these models; the last two hardly fit anywhere.
MODELS = ["bert-base", "bert-large", "gpt2", "resnet50", "llama2-7b", "gpt3-175b"]
OPTIMIZERS = ["lamb", "adam", "adamw", "onebit_lamb", "onebit_adam", "zero_one_adam", "lion"]
LAYOUTS = ["", "", "", "--framework megatron --tp 2 --pp 2", "--framework torchtitan --zero-stage 3",
           "--framework deepspeed --zero-stage 2", "--framework colossalai --pp 2"]
EXTRAS = ["", "", "--network flow", "--exchange powersgd:4", "--exchange local:4", "--kernels fused", "--backend mpi",
          "--set usd_per_gpu_hour=1.5", "--precision bf16"]


def draw_run(draw, cluster=True):
    """Flags of one run. Steps and freeze steps are at the ends of their ranges more often than inside."""
    steps = draw.choice([1, 2, 10, 1000])
    freeze = draw.choice(["0", "1", str(steps - 1), str(steps), str(steps + 1), "10%", ""])
    optimizer = draw.choice(OPTIMIZERS)
    gpus, micro = draw.choice([1, 2, 8, 16, 64]), draw.choice([1, 8])
    words = [f"--model {draw.choice(MODELS)} --gpus {gpus} --micro-batch {micro} --steps {steps}",
             f"--grad-accum {draw.choice([1, 2])} --optimizer {optimizer}", draw.choice(LAYOUTS), draw.choice(EXTRAS)]
    if freeze and optimizer.startswith(("onebit", "zero")):
        words.append(f"--freeze-step {freeze}")
    if cluster:
        words.append(f"--cluster {draw.choice(CLUSTERS)}")
    return " ".join(words)


def draw_jobs(draw):
    """A file of one to three jobs, some of which the cluster has no GPUs for."""
    text = ""
    for _ in range(draw.choice([1, 2, 3])):
        operation = draw.choice(["all_reduce", "all_gather", "all_to_all", "broadcast"])
        text += (f'[[jobs]]\nop = "{operation}"\nsize = "{draw.choice(["8 B", "1 MiB", "64 MiB"])}"\n'
                 f'gpus = {draw.choice([1, 2, 8])}\nfirst_node = {draw.choice([0, 1, 2])}\n')
    path = pathlib.Path("drawn_jobs.toml")
    path.write_text(text)
    return path


def draw_log(draw):
    """A log of one or two variances, which fall, stay or are zero."""
    names, last = draw.choice([["head"], ["embedding", "head"]]), draw.choice([20, 500, 2000])
    decay = draw.choice([1, 0.998, 0.9])
    rows = "".join(f"{step}" + "".join(f",{1 + 5 * decay**step}" for _ in names) + "\n"
                   for step in range(10, last + 1, 10))
    path = pathlib.Path("drawn_variance.csv")
    path.write_text(f"step,{','.join(names)}\n" + rows)
    return path


def draw_folder(draw):
    """A results folder of two points, drawn once of each kind: runs, refusals and what does not fit."""
    flags = draw.choice(["--model bert-base --gpus 8 --optimizer lamb --micro-batch 8 --steps 10",
                         "--model bert-base --gpus 8 --optimizer onebit_lamb --micro-batch 8 --steps 10 --freeze-step 2",
                         "--model gpt3-175b --gpus 8 --optimizer adam --micro-batch 1 --steps 10"])
    cluster = draw.choice(CLUSTERS[:3])
    path = pathlib.Path(f"{flags.split()[1]}_{flags.split()[5]}_{cluster}")
    if not path.exists():
        command = f"sweep {flags} --cluster {cluster} --list seq_len=64,128 --no-report --out {path}"
        subprocess.run([PROGRAM] + command.split(), capture_output=True, check=True, timeout=300)
    return path


def draw_question(draw, kind):
    """A command, as one of the kind that its schema is for."""
    if kind == "phases":
        return f"simulate {draw_run(draw)} " + draw.choice(
            ["--then seq_len=256", "--then micro_batch=4", "--mtbf 12h", "--mtbf 1h --checkpoint-every 5"])
    if kind == "advise_list":
        return f"advise {draw_run(draw)} " + draw.choice(
            ["--list seq_len=128,512", "--list precision=fp16,bf16", "--list cluster.nic.bandwidth=1Gbit/s,10Gbit/s",
             "--list seq_len=128,0"])
    if kind == "compare":
        clusters = draw.sample(CLUSTERS, 3)
        return f"compare {' '.join(clusters)} {draw_run(draw, cluster=False)}"
    if kind == "compare_folders":
        return f"compare {draw_folder(draw)} {draw_folder(draw)}"
    if kind == "freeze":
        return f"freeze {draw_log(draw)} " + draw.choice(
            ["", "--beta2 0.99", "--beta2 0.9 --share 0.5", "--share 1 --losses"])
    if kind == "collective_jobs":
        return f"collective --jobs {draw_jobs(draw)} --cluster {draw.choice(CLUSTERS)}"
    if kind == "solve":
        target = draw.choice(["run_time=1h", "speedup=1.5", "efficiency=50%", "step_time=1us"])
        key = draw.choice(["cluster.nic.bandwidth", "steps", "freeze_step", "gpus", "grad_accum"])
        return f"solve {key} --for {target} {draw_run(draw)}"
    if kind == "plan":
        return (f"plan --model {draw.choice(MODELS)} --cluster {draw.choice(CLUSTERS)} --gpus {draw.choice([1, 8, 16])} "
                f"--global-batch {draw.choice([16, 64])} --optimizer {draw.choice(OPTIMIZERS)}")
    if kind == "collective":
        operation = draw.choice(["all_reduce", "all_gather", "all_to_all", "broadcast", "compressed_allreduce",
                                 "send_recv"])
        return (f"collective --op {operation} --cluster {draw.choice(CLUSTERS)} --gpus {draw.choice([1, 2, 3, 16])} "
                f"-b {draw.choice(['0', '8', '1M'])} -e 1M -f 64")
    return f"{kind} {draw_run(draw)}"


def refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def fault_of(command, validator):
    """What is wrong with the answer to a command, or None; and whether there is one."""
    done = subprocess.run([PROGRAM] + command.split() + ["--format", "json"], capture_output=True, text=True,
                          check=False, timeout=300)
    if done.returncode not in (0, 2, 3) or "internal error" in done.stderr:
        return f"exit {done.returncode}: {done.stderr[-300:]}", False
    if done.returncode == 2 and not done.stdout:
        return (None if done.stderr.startswith("lambcast: ") else f"no reason: {done.stderr}"), False
    try:
        answer = json.loads(done.stdout, parse_constant=refuse_constant)
    except ValueError as error:
        return str(error), False
    for error in validator.iter_errors(answer):
        return f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}", True
    return None, True


def main(scratch):
    folder = pathlib.Path(sys.argv[2]).resolve()
    os.chdir(scratch)
    count, seed = (int(word) for word in (sys.argv[3:] + ["4", "1"][len(sys.argv[3:]):]))
    faults, answered = [], 0
    for kind in ("simulate", "phases", "advise", "advise_list", "compare", "compare_folders", "sensitivity", "solve",
                 "plan", "collective", "collective_jobs", "freeze"):
        schema = strict(json.loads((folder / f"{kind}.schema.json").read_text()))
        validator = jsonschema.Draft202012Validator(schema)
        draw, seen = random.Random(f"{kind} {seed}"), 0
        # Rejected questions do not count, but their number is limited.
        for _ in range(10 * count):
            command = draw_question(draw, kind)
            fault, is_answer = fault_of(command, validator)
            seen += is_answer
            if fault:
                faults.append(f"{command}\n    {fault}")
            if seen == count:
                break
        answered += seen
        if seen == 0:
            faults.append(f"{kind}: no question of {10 * count} is answered")
    if faults:
        sys.exit("FAILED: " + "\n".join(faults))
    print(f"{answered} drawn answers are what their schemas say")


with tempfile.TemporaryDirectory() as scratch_folder:
    main(scratch_folder)
    os.chdir("/")

#!/usr/bin/env python3
"""Every example of every help page runs: those below "Example" and the "e.g." of the short help.

    examples_test.py LAMBCAST ROOT

The examples of one command run in order in one folder, with the files that they name. Left out are examples with "...",
those for a launcher, and the "e.g." of calibrate, which depend on the measured step. An exit code of 4 (no such hardware)
and of 3 (a limit) is an answer; 1 and 2 are not.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from usage_test import QUESTIONS

DEEPSPEED = {"train_batch_size": 65536, "train_micro_batch_size_per_gpu": 16, "fp16": {"enabled": True},
             "optimizer": {"type": "OneBitLamb", "params": {"lr": 1e-3, "freeze_step": 1000, "comm_backend_name": "nccl"}}}
STUDY = ('[base]\nmodel = "bert-large"\ncluster = "commodity-10gbe"\nmicro_batch = 64\nsteps = 5993\nglobal_batch = 16384\n'
         '[grid]\ngpus = [8, 16]\noptimizer = ["lamb"]\n')
RUN = "bert-large,commodity-10gbe,8,lamb,512,64,100"
RUN_KEYS = "model,cluster,gpus,optimizer,global_batch,micro_batch,steps"
# Questions that replace one whose keys exclude that of an example.
PLAIN = ["--optimizer", "adamw", "--framework", "megatron"]


def write_files(lambcast, root):
    """Writes the files that the examples name into the current folder."""
    fixtures, log = root / "validate/importers/fixtures", root / "validate/replay/collectives"
    for name in ("ds.json", "seq128.json", "seq512.json"):
        pathlib.Path(name).write_text(json.dumps(DEEPSPEED))
    pathlib.Path("sweep.toml").write_text(STUDY)
    pathlib.Path("variance.csv").write_text("step,a\n" + "".join(f"{step},{1 + 1 / step}\n" for step in range(1, 1501)))
    pathlib.Path("all_reduce.log").write_bytes((log / "allreduce_h100_2n16r_ibndr3200_nccltests309d.csv").read_bytes())
    pathlib.Path("osu.log").write_bytes((fixtures / "osu_allreduce.txt").read_bytes())
    pathlib.Path("my_runs.csv").write_text(f"{RUN_KEYS},step_time_s\n{RUN},1.0\n")
    pathlib.Path("questions.csv").write_text(f"case,{RUN_KEYS}\na,{RUN}\n")
    pathlib.Path("published.csv").write_text("case,step_time_s\na,1.0\n")
    pathlib.Path("more_rows.csv").write_bytes((root / "validate/replay/published_training/megatron_a100.csv").read_bytes())
    for file, preset in (("my-cluster.toml", "commodity-25gbe"), ("mine.toml", "hgx-h100-ndr")):
        pathlib.Path(file).write_bytes(subprocess.run([lambcast, "presets", "show", preset], check=True, capture_output=True).stdout)
    for folder, optimizer in (("results-of-lamb", "lamb"), ("results-of-adam", "adam")):
        subprocess.run([lambcast, "sweep", "sweep.toml", "--out", folder, "--no-report", "--list", f"optimizer={optimizer}"],
                       check=True, capture_output=True)


def examples(footer):
    """Yields the commands of a help page, each as one line."""
    text = re.sub(r" *\\\n *", " ", footer[footer.find("Example"):]) if "Example" in footer else ""
    for line in text.split("\n"):
        if line.startswith("  lambcast ") and "..." not in line:
            yield line.strip()


def run(lambcast, line):
    line = line.replace("--nodes 4", "--nodes 2") if "all_reduce.log" in line else line  # as the log has it
    env = {**os.environ, "PATH": f"{os.path.dirname(lambcast)}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, timeout=300, check=False)


def with_flag(words, flag, value):
    """Returns a question with this flag, in place of its own value."""
    words = list(words)
    if flag in words and flag != "--set":
        words[words.index(flag) + 1] = value
        return words
    return [*words, flag, value]


def without(words, *flags):
    """Returns a question without these flags and their values."""
    kept, drop = [], False
    for word in words:
        if not drop and word not in flags:
            kept.append(word)
        drop = not drop and word in flags
    return kept


def usual_faults(lambcast, command, help_text):
    """Yields the "e.g." of a short help that no question of the command accepts."""
    plain = without(QUESTIONS[command], "--optimizer", "--freeze-step")
    bases = [QUESTIONS[command], [*plain, *PLAIN], [*without(plain, "--global-batch"), *PLAIN],
             [*without(plain, "--clusters"), "--optimizers", "lamb,onebit_lamb"]]
    for flag, value in re.findall(r"e\.g\. --([a-z-]+)\s+(\S+)", help_text):
        said = []
        for base in bases:
            done = run(lambcast, shlex.join(["lambcast", command, *with_flag(base, "--" + flag, value)]))
            said.append(done.stderr.strip()[:200])
            if done.returncode in (0, 3, 4):
                break
        else:
            yield f"{command} --help: e.g. --{flag} {value}: {said}"


def main(lambcast, root):
    lambcast, root = os.path.realpath(lambcast), pathlib.Path(root).resolve()
    def printed(*words):
        return subprocess.run([lambcast, *words], check=True, capture_output=True, text=True).stdout
    wrong, count = [], 0
    pages = [("lambcast", printed("--help"))] + [(command["name"], command["footer"]) for command in json.loads(printed("help", "json"))["commands"]]
    for name, page in pages:
        lines = list(examples(page))
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if lines or name in QUESTIONS:
                write_files(lambcast, root)
            if name == "calibrate":
                os.remove("mine.toml")  # its first example writes it
            for line in lines:
                done = run(lambcast, line)
                count += 1
                if done.returncode not in (0, 3, 4):
                    wrong.append(f"{name} --help: {line}: {done.returncode}: {done.stderr.strip()[:300]}")
            if name in QUESTIONS and name != "calibrate":
                wrong += usual_faults(lambcast, name, printed(name, "--help"))
            os.chdir("/")
    print("\n".join(f"FAILED: {line}" for line in wrong) or f"{count} examples run")
    return 1 if wrong or count < 40 else 0


sys.exit(main(*sys.argv[1:]))

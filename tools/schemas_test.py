#!/usr/bin/env python3
"""What the program prints as JSON is what its schemas say, field by field: none more, none less.

    schemas_test.py LAMBCAST SCHEMAS
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("no python3-jsonschema: skipped")
    sys.exit(77)

RUN = "--model bert-large --gpus 32 --global-batch 4096 --micro-batch 16 --steps 5993"
ONEBIT = "--optimizer onebit_lamb --freeze-step 1000"
TENGBE = "--cluster commodity-10gbe"
COMMANDS = {
    "simulate": [
        f"simulate {RUN} {TENGBE} {ONEBIT}",
        f"simulate {RUN} {TENGBE} --optimizer lamb --exchange powersgd:4",
        f"simulate {RUN} --cluster aws-p4d --optimizer zero_one_adam --freeze-step 10%",
        "simulate --model llama2-7b --cluster hgx-h100-ndr --gpus 64 --zero-stage 3 --framework torchtitan "
        "--precision bf16 --global-batch 256 --micro-batch 1 --optimizer adamw --steps 100",
        "simulate --model gpt3-175b --cluster selene-a100 --gpus 64 --tp 8 --pp 8 --framework megatron "
        "--global-batch 64 --micro-batch 1 --optimizer adamw --steps 10",
        "simulate --model resnet50 --cluster commodity-10gbe --gpus 8 --optimizer adam --micro-batch 32 "
        "--grad-accum 1 --steps 10",
    ],
    "phases": [
        f'simulate {RUN} {TENGBE} {ONEBIT} --then seq_len=512',
        f"simulate {RUN} --cluster aws-p4d --optimizer lamb --mtbf 12h --checkpoint-every 100",
    ],
    "advise": [
        f"advise {RUN} {TENGBE} {ONEBIT}",
        f"advise {RUN} --cluster aws-p4d --optimizer lamb",
        f"advise {RUN} --cluster hgx-h100-ndr {ONEBIT}",
        f"advise {RUN} --cluster dgx-a100-80g --optimizer adam --zero-stage 1",
        f"advise {RUN} --cluster emulated-ethernet-100mbit {ONEBIT}",
        f"advise {RUN} {TENGBE} --optimizer onebit_lamb --freeze-step 5990 --kernels fused",
    ],
    "advise_list": [
        f"advise {RUN} {TENGBE} {ONEBIT} --list seq_len=128,512",
        f"advise {RUN} --cluster hgx-h100-ndr {ONEBIT} --list seq_len=128,512",
    ],
    "compare": [
        f"compare aws-p4d commodity-10gbe {RUN} --optimizer lamb",
        "compare --clusters dgx-a100-80g,commodity-10gbe --model gpt3-175b --gpus 8 --optimizer adam "
        "--global-batch 8 --micro-batch 1 --steps 10",
    ],
    "compare_folders": ["compare of_lamb of_onebit", "compare of_lamb nothing"],
    "freeze": ["freeze variance.csv --beta2 0.99", "freeze variance.csv --beta2 0.99 --share 1 --losses"],
    "collective_jobs": ["collective --jobs jobs.toml --cluster commodity-10gbe"],
    "sensitivity": [f"sensitivity {RUN} {TENGBE} {ONEBIT}", f"sensitivity {RUN} {TENGBE} --optimizer lamb"],
    "solve": [
        f"solve freeze_step --for run_time=70min {RUN} {TENGBE} --optimizer onebit_lamb",
        f"solve grad_accum --for efficiency=50% --model bert-large --gpus 32 --micro-batch 16 {TENGBE} "
        "--optimizer lamb",
    ],
    "sites": [
        "sites --cluster two-regions --model bert-large --global-batch 4096 --micro-batch 16 --optimizer adam --steps 100",
        "sites --cluster home-links --model bert-large --global-batch 512 --micro-batch 16 --optimizer adam --steps 100 "
        "--every 1 --codec fp32",
    ],
    "plan": ["plan --model gpt2-xl --cluster dgx-a100-80g --gpus 8 --global-batch 64 --precision bf16",
             "plan --model llama2-7b --cluster hgx-h100-ndr --gpus 16 --global-batch 64 --framework megatron"],
    "collective": [
        "collective --op all_reduce --cluster hgx-h100-ndr --gpus 16 -b 1M -e 16M -f 4",
        "collective --op all_to_all --cluster commodity-10gbe --gpus 4 -b 1M -e 1M",
    ],
}


# The verdicts of words_of() (experiments/verdict/verdict.h).
WORDS = ["does not fit", "not judged", "pays", "no difference", "does not pay", "not certain"]

JOBS = """[[jobs]]
name = "first"
op = "all_reduce"
size = "64 MiB"
gpus = 8

[[jobs]]
op = "all_to_all"
size = "1 MiB"
gpus = 8
first_node = 2
"""


def prepare(program):
    """What commands read: jobs, a log of variances, two results folders and one of which nothing runs."""
    pathlib.Path("jobs.toml").write_text(JOBS)
    rows = "".join(f"{step},{1 + 5 * 0.98**step},{1 + 5 * 0.998**step}\n" for step in range(10, 2001, 10))
    pathlib.Path("variance.csv").write_text("step,embedding,head\n" + rows)
    for name, flags in (
        ("of_lamb", f"{RUN} --cluster hgx-h100-ndr --optimizer lamb"),
        ("of_onebit", f"{RUN} {TENGBE} {ONEBIT}"),
        ("nothing", "--model gpt3-175b --cluster commodity-10gbe --gpus 8 --optimizer adam --global-batch 8 "
         "--micro-batch 1 --steps 10"),
    ):
        command = f"sweep {flags} --list seq_len=128,512 --no-report --out {name}"
        subprocess.run([program] + command.split(), capture_output=True, check=True)


def strict(schema):
    """No field that the schema does not name, at any depth."""
    if schema.get("properties") and "additionalProperties" not in schema:
        schema["additionalProperties"] = False
    for below in list(schema.get("properties", {}).values()) + [schema.get("items", {})]:
        if isinstance(below, dict) and below:
            strict(below)
    return schema


def never_said(schema, path):
    """Fields of which the schema knows null alone: nobody has said what they are when they are there."""
    found = [path] if schema.get("type") == "null" else []
    for name, below in schema.get("properties", {}).items():
        found += never_said(below, f"{path}/{name}")
    if isinstance(schema.get("items"), dict):
        found += never_said(schema["items"], path + "[]")
    return found


def nowhere_null(schema, path):
    """Fields that are null in some answers by their description, and in none by their type."""
    types = schema.get("type", "null")
    found = [path] if "null" in schema.get("description", "") and "null" not in types else []
    for name, below in schema.get("properties", {}).items():
        found += nowhere_null(below, f"{path}/{name}")
    if isinstance(schema.get("items"), dict):
        found += nowhere_null(schema["items"], path + "[]")
    return found


def without_words(schema, path):
    """Objects with a verdict, as a code or a sentence, but not in the words that people read everywhere, or in other words."""
    properties = schema.get("properties", {})
    coded = any(name.endswith("verdict") or "cannot_tell" in below.get("enum", []) for name, below in properties.items())
    words = properties.get("verdict_words", {}).get("enum", [])
    found = [path] if (coded or words) and [word for word in words if word] != WORDS else []
    for name, below in properties.items():
        found += without_words(below, f"{path}/{name}")
    if isinstance(schema.get("items"), dict):
        found += without_words(schema["items"], path + "[]")
    return found


def output_of(program, command):
    arguments = command.split() + ["--format", "json"]
    done = subprocess.run([program] + arguments, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"FAILED: exit {done.returncode}: {command}\n{done.stderr}")
    return json.loads(done.stdout)


def main(scratch):
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    files = {path.name.removesuffix(".schema.json"): path for path in folder.glob("*.schema.json")}
    if set(files) != set(COMMANDS):
        sys.exit(f"FAILED: schemas {sorted(files)} and commands {sorted(COMMANDS)} differ")
    commands = json.loads(subprocess.run([program, "help", "json"], capture_output=True, check=True).stdout)["commands"]
    for command in commands:
        writes = any(flag["name"] == "--format" and "json" in flag["type"] + flag["help"] for flag in command["flags"])
        if writes and command["name"] not in files:
            sys.exit(f"FAILED: {command['name']} writes JSON that no schema describes")
    os.chdir(scratch)
    prepare(program)
    checks = 0
    for name, commands in COMMANDS.items():
        schema = json.loads(files[name].read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        if never_said(schema, name):
            sys.exit(f"FAILED: null alone: {never_said(schema, name)}")
        if nowhere_null(schema, name):
            sys.exit(f"FAILED: null in words alone: {nowhere_null(schema, name)}")
        if without_words(schema, name):
            sys.exit(f"FAILED: a verdict without verdict_words: {without_words(schema, name)}")
        if not schema.get("required"):
            sys.exit(f"FAILED: the schema of {name} requires nothing")
        validator = jsonschema.Draft202012Validator(strict(schema))
        for command in commands:
            output = output_of(program, command)
            for error in validator.iter_errors(output):
                sys.exit(f"FAILED: {command}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
            # Checks the check itself.
            first = schema["required"][0]
            broken = {key: value for key, value in output.items() if key != first}
            if validator.is_valid(broken) or validator.is_valid({**output, "unheard_of": 1}):
                sys.exit(f"FAILED: the schema of {name} holds for anything")
            checks += 1
    print(f"{checks} outputs are what {len(files)} schemas say")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch_folder:
        main(scratch_folder)
        os.chdir("/")

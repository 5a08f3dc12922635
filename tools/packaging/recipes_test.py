#!/usr/bin/env python3
"""Workflows and recipes for clusters are well formed: they are YAML, their scripts are bash, and files and build targets that
they name are there. Nothing is run.

   recipes_test.py ROOT BUILD_FOLDER
"""
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("no python3-yaml: skipped")
    sys.exit(77)

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
PATH = re.compile(r"(?<![\w./$}-])((?:tools|experiments|kernels|validate)/[\w./-]*\w)")
faults = []


def check_script(name, text):
    """Checks the syntax of a script, and the sources and targets in it."""
    plain = re.sub(r"\$\{\{.*?\}\}", "x", text)
    done = subprocess.run(["bash", "-n"], input=plain, capture_output=True, text=True, check=False)
    if done.returncode:
        faults.append(f"{name}: {done.stderr.strip()}")
    for path in PATH.findall(plain):
        if not (ROOT / path).exists():
            faults.append(f"{name}: {path} is not there")
    for target in re.findall(r"build_lambcast build Release (\w+)|--target (\w+)", plain):
        if not any(re.search(rf"^build {word}: phony", ninja, re.M) for word in target if word):
            faults.append(f"{name}: no target {target}")


def scripts_of(value):
    """Yields the scripts of a workflow: all that stands behind `run` as a text."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key == "run" and isinstance(below, str):
                yield below
            else:
                yield from scripts_of(below)
    elif isinstance(value, list):
        for below in value:
            yield from scripts_of(below)


def check_workflow(name, workflow):
    jobs = workflow["jobs"]
    for job, of in jobs.items():
        needs = of.get("needs", [])
        for needed in [needs] if isinstance(needs, str) else needs:
            if needed not in jobs:
                faults.append(f"{name}: {job} needs {needed}, which is no job")
        keys = {key for row in of.get("strategy", {}).get("matrix", {}).get("include", []) for key in row}
        for key in re.findall(r"matrix\.(\w+)", str(of)):
            if key not in keys:
                faults.append(f"{name}: {job}: matrix.{key} is not set")
    for number, script in enumerate(scripts_of(workflow)):
        check_script(f"{name} script {number + 1}", script)
    return number + 1


ninja = (BUILD / "build.ninja").read_text() if (BUILD / "build.ninja").exists() else None
if ninja is None:
    print("not built by ninja: skipped")
    sys.exit(77)
count = 0
for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
    count += check_workflow(path.name, yaml.safe_load(path.read_text()))
for path in sorted((ROOT / "tools/packaging").glob("Containerfile*")):
    for source in re.findall(r"(?<![\w/])tools/[\w./-]+", path.read_text()):
        if not (ROOT / source).exists():
            faults.append(f"{path.name}: {source} is not there")
assert count > 10, "hardly any script is found"
# Checks the check itself.
known = len(faults)
check_script("probe", "if true; tools/absent.sh --target no_such_target")
if len(faults) != known + 3:
    faults.append("a script with three faults passes")
del faults[known:known + 3]
print("\n".join(f"FAILED: {fault}" for fault in faults) or f"{count} scripts of workflows are well formed")
sys.exit(1 if faults else 0)

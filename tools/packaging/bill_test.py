#!/usr/bin/env python3
"""The bill of materials names all that the programs are made of, each with its licence and version.

   bill_test.py BILL SOURCES PROGRAM...
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

bill = json.load(open(sys.argv[1], encoding="utf-8"))
root = pathlib.Path(sys.argv[2])
assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5"
product = bill["metadata"]["component"]
assert product["name"] == "lambcast" and re.fullmatch(r"\d+\.\d+\.\d+", product["version"]), product

parts = {part["name"]: part for part in bill["components"]}
assert len(parts) == len(bill["components"]) >= 8, "a part is named twice, or few are"
how = {}
for name, part in parts.items():
    part["said"] = {each["name"].removeprefix("lambcast:"): each["value"] for each in part["properties"]}
    how.setdefault(part["said"]["how"], []).append(name)
    assert part["licenses"][0]["license"]["id"], f"{name} has no licence"
    assert part["purl"].startswith("pkg:"), f"{name} has no source"
    # Programs that are only run need no version here.
    assert part["said"]["how"] == "run" or re.fullmatch(r"\d+(\.\d+)+", part["version"]), f"{name} has no version"
assert set(how) == {"linked", "compiled", "inlined", "run"}, how
assert sorted(bill["dependencies"][0]["dependsOn"]) == sorted(parts)

# Sources include only these headers, those of the system and, with a GPU, CUDA.
headers = tuple(part["said"]["headers"] for part in parts.values() if "headers" in part["said"])
system = ("sys/", "netinet/", "sanitizer/", "cuda", "nccl")
beside = ("catch2/", "benchmark/", "simgrid/")  # of tests and benchmarks, which nobody ships
absent = tuple(header for part, header in [("MPI", "mpi.h"), ("pybind11", "pybind11/")] if part not in parts)
includes = 0
for path in root.rglob("*"):
    if path.suffix not in (".cc", ".h", ".cu", ".cuh") or path.relative_to(root).parts[0].startswith("build"):
        continue
    for header in re.findall(r"^#include <([^>]+)>", path.read_text(encoding="utf-8"), re.M):
        if "/" in header or re.match(r"(mpi|cuda|nccl)", header):
            includes += 1
            known = headers + system + beside + absent
            assert header.startswith(known), f"{path} includes {header}, which is in no bill of materials"
assert includes > 50, "hardly anything is included"

# Programs need only these libraries and those of the compiler.
libraries = tuple(part["said"]["library"] for part in parts.values() if "library" in part["said"])
own = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "ld-linux", "libasan", "libubsan", "libtsan", "libgcov")
for program in sys.argv[3:]:
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert needed, f"{program} needs nothing"
    for library in needed:
        assert library.startswith(libraries + own), f"{program} needs {library}, which is in no bill of materials"

# The inlined file is the one named in its README.
script = root / "experiments/report/uplot/uPlot.iife.min.js"
found = hashlib.sha256(script.read_bytes()).hexdigest()
assert parts["uPlot"]["hashes"] == [{"alg": "SHA-256", "content": found}]
assert found in (script.parent / "README.md").read_text(encoding="utf-8")
print(f"{len(parts)} parts, {includes} includes, {len(sys.argv) - 3} programs")

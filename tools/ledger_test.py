#!/usr/bin/env python3
"""Each key of each input file is applied, costless for a reason, or named in a finding.

    ledger_test.py LAMBCAST [FILE ...]

Removes and changes each key of the files, by default of those that ship, and forecasts again. A key fails that the ledger
(--explain inputs) lacks, or that it calls applied though no change of it in any of the files moves forecast, findings or
refusal: in one file another key may hide its effect. The long form takes files that were fetched: launch scripts, DeepSpeed
JSONs, config.json, YAML of Accelerate, LLaMA-Factory, axolotl and GPT-NeoX, torchtitan TOML, descriptions of clusters,
topologies of nodes, logs of collectives and of training. A file that does not run is counted and passed over.
"""
import concurrent.futures
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHIPPED = ["models/deepspeed/fuzz/hjson/zero3.json", "models/huggingface/fuzz/huggingface/gpt2.json",
           *(f"models/launchers/fuzz/launchers/{name}" for name in ("accelerate", "axolotl", "fsdp", "neox")),
           "models/megatron/fuzz/megatron/plain.args", "models/torchtitan/fuzz/torchtitan/plain.toml",
           "topologies/presets/dgx-a100-80g.toml", "validate/importers/fixtures/nccl_all_reduce.txt"]
MODEL = ["--model", "llama2-7b"]
RUN = ["--optimizer", "adamw"]
BATCH = ["--micro-batch", "1", "--grad-accum", "2"]
LENGTH = ["--seq-len", "512"]
# Flags that complete a file which lacks values of a run; the first list that runs is used.
FLAGS = {
    "--config": [[], ["--micro-batch", "1"], BATCH, MODEL, MODEL + RUN, MODEL + RUN + ["--micro-batch", "1"], MODEL + BATCH, MODEL + RUN + BATCH, RUN + BATCH,
                 RUN + BATCH + ["--set", "model.vocab=50257"]],
    "--model": [RUN + BATCH, RUN + BATCH + LENGTH],
    "--megatron-args": [[], ["--set", "model.vocab=50257"]],
    "--torchtitan": [[], ["--model", "llama3-8b"]],
    "--topology": [MODEL + RUN + BATCH],
    "--cluster": [MODEL + RUN + BATCH + ["--zero-stage", "3"]],
    "calibrate": [[], ["--nodes", "1"], ["--nodes", "2"], ["--ranks", "16", "--nodes", "2"], ["--ranks", "8", "--nodes", "1"],
                  ["--op", "all_reduce", "--ranks", "8", "--nodes", "1"], MODEL + RUN + BATCH],
}
COLLECTIVES = r"busbw|BusBW|\"bus_bw\"|# OSU |# Benchmarking |#bytes|\"sum_received\""
# Clusters to try in this order; most keys change the time on a small network.
CLUSTERS = [["--cluster", name, "--gpus", gpus]
            for name, gpus in (("dgx-a100-80g", "16"), ("hgx-h100-ndr", "64"), ("dgx-a100-80g", "8"), ("dgx-a100-80g", "2"),
                               ("dgx-a100-80g", "128"), ("hgx-h100-ndr", "1024"))]


def kind_of(path, text):
    if text.lstrip().startswith("<") or re.match(r"\s*(\x1b\S*)?GPU0|SwitchName=|[^\n]*\n?- topology:", text):
        return "--topology"
    if re.search(rf"{COLLECTIVES}|elapsed time per iteration|SamplesPerSec=|\btps: |iter time \(s\)", text):
        return "calibrate"
    if path.suffix == ".toml" and re.search(r"^\[nic\]", text, re.M):
        return "--cluster"
    if path.suffix == ".toml":
        return "--torchtitan"
    if path.suffix in (".sh", ".slurm", ".args"):
        return "--megatron-args"
    return "--model" if '"model_type"' in text or '"architectures"' in text else "--config"


def mutated(value):
    """Yields other values of the same kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield from (value * 2, value + 1, 1, 0, value / 2 if isinstance(value, float) else value // 2)
    elif value in ("true", "false"):
        yield "false" if value == "true" else "true"
    elif isinstance(value, str):
        yield from ("0", "1", "none", "true") if value == "auto" or not value else (value + "x", "none", "localhost")
    elif isinstance(value, list):
        yield value[:-1] if value else [0]
        if value and isinstance(value[0], str):
            yield [value[0] + "x"]
            yield [value[0].replace("all_reduce", "broadcast")]
    elif value is None:
        yield from (0, 1, 2, True)


def of_json(text):
    """Yields each key of a JSON text with the texts in which it is removed or another."""
    whole = json.loads(text)

    def within(node, at):
        for key in node:
            path = at + [key]
            if isinstance(node[key], dict) and node[key]:
                yield from within(node[key], path)
            if isinstance(node[key], list) and node[key] and isinstance(node[key][0], dict):
                yield from within(node[key][0], path + [0])
            yield path

    for path in within(whole, []):
        texts = []

        def change(edit):
            other = copy.deepcopy(whole)
            node = other
            for key in path[:-1]:
                node = node[key]
            edit(node)
            texts.append(json.dumps(other, indent=1))

        value = whole
        for key in path:
            value = value[key]
        change(lambda node: node.pop(path[-1]))
        for new in mutated(value):
            change(lambda node: node.__setitem__(path[-1], new))
        yield ".".join(key for key in path if key != 0), texts


def of_lines(text):
    """The same of YAML and TOML, a key a line; what is indented below a key goes with it."""
    lines = text.splitlines()
    section, parents = "", []
    for at, line in enumerate(lines):
        if header := re.match(r"\s*\[\[?([\w.]+)\]", line):
            section = header[1] + "."
        found = re.match(r"(\s*)\"?([A-Za-z][\w-]*)\"?\s*[:=]\s*(.*?),?\s*$", line)
        if not found or line.lstrip().startswith("#"):
            continue
        indent, key, value = found.groups()
        end = at + 1
        while end < len(lines) and (lines[end].startswith(indent + " ") or (indent == "" and lines[end].startswith("- "))):
            end += 1
        if sum(re.match(rf'\s*"?{key}"?\s*:', other) is not None for other in lines) > 1 and indent == "":
            continue  # a repeated key, of which the last one counts
        parents = [(width, name) for width, name in parents if width < len(indent)] + [(len(indent), key)]
        without = lines[:at] + lines[end:]
        texts = ["\n".join(without)]
        plain = re.sub(r"\s+#.*", "", value)
        try:
            known = json.loads(plain.lower() if plain.lower() in ("true", "false", "null") else plain)
        except ValueError:
            known = plain
        for new in mutated(known) if end == at + 1 else ():
            written = json.dumps(new) if not isinstance(known, str) else new
            texts.append("\n".join(lines[:at] + [line.replace(plain, written) if plain else line + " " + str(new)] + lines[end:]))
        yield section + ".".join(name for _, name in parents), texts


def of_arguments(text):
    """The same of arguments, in a list or a script; all that have the name at once."""
    for key in dict.fromkeys(re.findall(r"(?<![\w-])--([A-Za-z][\w-]+)", text)):
        argument = rf"(?<![\w-])--{key}(?![\w-])((?:=|[ \t]+)(?!--|\\)[^\s\\\"')]+)?"
        texts = [re.sub(argument, "", text)]
        for value in ("1", "2", "3", "4", "1024", "none"):
            texts.append(re.sub(rf"(--{key}[= \t]+)(?!--|\\)([^\s\\\"')]+)", rf"\g<1>{value}", text))
        yield "--" + key.replace("_", "-"), [other for other in texts if other != text]


def of_attributes(text):
    """The same of XML; all attributes that have the name at once. Other topologies have lines of columns."""
    for name in dict.fromkeys(re.findall(r' ([a-z_]+)="', text)):
        attribute = rf' {name}="([^"]*)"'
        yield name, [re.sub(attribute, "", text), *(re.sub(attribute, f' {name}="{value}"', text) for value in ("0", "7", "0x0680"))]


def of_log(text):
    """The same of a log: numbers behind names in the rows of a step, and in the head of nccl-tests; columns of tables."""
    rows = [line for line in text.splitlines() if re.search(r"# +nThread|elapsed time per|SamplesPerSec=|\btps: |iter time", line)]
    name = r"(?<![\w/(])([A-Za-z][\w/() ]*?)(:? +|[:=] *)(\d[\d.,E+-]*)"
    for key in dict.fromkeys(found[0] for row in rows for found in re.findall(name, row)):
        number = rf"({re.escape(key)}(?:: *| +|= *))(\d[\d.,E+-]*)"
        change = lambda new: "\n".join(re.sub(number, new, line) if line in rows else line for line in text.splitlines())
        yield key.strip(), [change(""), change(r"\g<1>3"), change(r"\g<1>16"), change(r"\g<1>0")]


class File:
    def __init__(self, program, path, folder):
        self.program, self.folder = program, folder
        self.path = pathlib.Path(path)
        self.text = self.path.read_text(errors="replace")
        self.flag = kind_of(self.path, self.text)
        self.copy = folder / ("file" + (self.path.suffix or ".yaml"))

    def run(self, text, *more):
        self.copy.write_text(text)
        command = ["simulate", self.flag, str(self.copy)]
        if self.flag == "calibrate":
            step = not re.search(COLLECTIVES, self.text)
            command = ["calibrate", "-o", "-", *(["--log"] if step else []), str(self.copy)]
            more = more if "inputs" in more else ()
        ran = subprocess.run([self.program, *command, *self.flags, *more], capture_output=True, text=True,
                             timeout=120, cwd=self.path.parent)
        return ran.returncode, ran.stdout, ran.stderr

    def starts(self):
        variables = []
        # Scripts state their GPUs; --gpus would hide them.
        first = [["--cluster", "selene-a100"]] if self.flag == "--megatron-args" else []
        if self.flag == "calibrate":
            first = [["--cluster", "dgx-a100-80g"]]
        clusters = [["--gpus", "16"], ["--gpus", "4"]] if self.flag == "--cluster" else first + CLUSTERS
        for cluster in clusters:
            for flags in FLAGS[self.flag]:
                for _ in range(12):
                    self.flags = cluster + flags + variables
                    code, _, error = self.run(self.text)
                    if code == 0:
                        return True
                    unset = re.search(r"--set-var (\w+)=", error)
                    if not unset or f"{unset[1]}=1" in variables:
                        break
                    variables += ["--set-var", f"{unset[1]}=1"]
        return False

    def answer(self, text):
        if self.flag != "--cluster":
            return self.one_answer(text)
        # Some keys of a stack only affect compressed exchanges over MPI.
        flags = self.flags
        self.flags = flags[:2] + MODEL + BATCH + ["--optimizer", "onebit_adam", "--backend", "mpi"]
        over_mpi = self.one_answer(text)
        self.flags = flags
        return self.one_answer(text) + over_mpi

    def one_answer(self, text):
        code, out, error = self.run(text, "--format", "json")
        plain = lambda words: re.sub(r"\S*file\.\w+(:\d+)?", "FILE", words)
        if code:
            return plain(error)
        if self.flag == "calibrate":
            return re.sub(r"\d[\d.]* s\b|(name|source) = .*", "", plain(out + error))
        answer = json.loads(out)
        findings = [plain(finding["message"]) for finding in answer["findings"]]
        sources = answer["provenance"] if self.flag == "--cluster" else ""
        return json.dumps([answer["stages"], answer["memory"], answer["run"], sorted(findings), sources])

    def keys(self):
        if self.flag == "--megatron-args":
            return of_arguments(self.text)
        if self.flag == "--topology" and "<" in self.text:
            return of_attributes(self.text)
        if self.flag == "calibrate" and self.copy.suffix != ".json":
            return of_log(self.text)
        return of_json(self.text) if self.copy.suffix == ".json" else of_lines(self.text)


def ledger_of(text):
    entries = {}
    for line in text.splitlines():
        if row := re.match(r"\s*\d*\s+(\S.*?)\s+(applied|costless|named)(?:\s|$)", line):
            entries[row[1].replace("_", "-")] = row[2]
    return entries


def treatment(entries, key):
    """Returns the row of the key, of a section that it belongs to, or of a key below it, and its name."""
    key = key.replace("_", "-")
    parts = key.split(".")
    above = [".".join(parts[first:last]) for last in range(len(parts), 0, -1) for first in range(last)]
    for name in above + [name for name in entries if name.startswith(key + ".") or f".{key}." in name or name.endswith("." + key)]:
        if name in entries:
            return name, entries[name]
    return key, None


def check(program, path):
    """Returns whether the file runs, and of each key whether something moves with it; None: not in the ledger."""
    with tempfile.TemporaryDirectory() as folder:
        file = File(program, path, pathlib.Path(folder))
        if not file.starts():
            return False, {}
        entries = ledger_of(file.run(file.text, "--explain", "inputs")[1])
        before = file.answer(file.text)
        moves = {}
        for key, texts in file.keys():
            name, treated = treatment(entries, key)
            # A row with a name shorter than the key belongs to a section: then the key itself is
            # the label.
            label = file.flag, key if len(name) < len(key.split(".")[-1]) or treated is None else name
            # Arguments of launchers and of other commands in a script do not belong to the program.
            if treated is None and file.flag != "--megatron-args":
                moves[label] = None
            elif treated is not None:
                moves[label] = moves.get(label) or treated != "applied" or any(file.answer(other) != before for other in texts)
        return True, moves


def main():
    program, files = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    paths = [str(pathlib.Path(file).resolve()) for file in files] or [str(ROOT / file) for file in SHIPPED]
    ran, keys, lacking, still, moved = 0, 0, {}, {}, set()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, (runs, moves) in zip(paths, pool.map(lambda path: check(program, path), paths)):
            ran, keys = ran + runs, keys + len(moves)
            for key, moving in moves.items():
                if moving is None:
                    lacking.setdefault(key, path)
                elif moving:
                    moved.add(key)
                else:
                    still.setdefault(key, path)
    silent = [f"{flag} {key}: not in the ledger, in {path}" for (flag, key), path in lacking.items()]
    silent += [f"{flag} {key}: applied, and nothing moves with it, as in {path}"
               for (flag, key), path in still.items() if (flag, key) not in moved]
    for words in sorted(silent):
        print("FAILED:", words)
    print(f"{ran} of {len(paths)} files run, {keys} keys, {len(silent)} silent")
    sys.exit(1 if silent or (not files and ran < len(paths)) else 0)


if __name__ == "__main__":
    main()

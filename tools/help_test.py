#!/usr/bin/env python3
"""Every flag of every command says what it takes: a unit, a list of values or the form of a text, and its default.

    help_test.py LAMBCAST

The short help of a large command shows at most 30 flags; --help-all shows all. examples_test.py runs their examples.
"""
import re
import subprocess
import sys

COMMANDS = ("simulate advise plan compare sensitivity solve sites sweep report rerun collective survey measure profile calibrate freeze "
            "validate presets help").split()
SHORT = "simulate advise plan compare sensitivity solve sites sweep".split()
# Nouns that a number may count.
UNIT = re.compile(r"\b(GPUs?|nodes?|ranks?|steps?|samples?|tokens?|elements?|microseconds?|us|size|per cent|%|seconds?|passes|"
                  r"layers|stages?|chunks|directions|norm|places|rows?|stage|stages|cases|processes|threads|times|"
                  r"points?|calls|updates|rounds|layouts|bytes|lines|groups|MiB|factor|values|cores|share|port|number|"
                  r"iterations|repetitions)\b", re.I)
# Forms of a text value: an example, a list, a file, or a form in capitals.
FORM = re.compile(r"\d|=|:|,|\b[Ff]ile\b|\b[Ff]older\b|\bname\b|\bpreset\b|[A-Z]{2,}|\bor\b")
# Inputs of a question that are required or optional without a default value.
NO_DEFAULT = set("""config hosts megatron-args set-var torchtitan model cluster topology gpus nodes dp set versions deepspeed-version micro-batch
grad-accum global-batch rampup-batch-size samples tokens steps-done optimizer lora-rank secondary-ranks shard-groups""".split())


def flags_of(text):
    """Yields (name, type, description) of each flag of a help."""
    entry = None
    # Lists of flags that exclude or need one another do not describe the flag's value.
    text = re.sub(r" (Excludes|Needs):((?:\s+--?[a-z][a-z-]*)+)", " ", text)
    for line in text.split("\n"):
        opened = re.match(r"  (?:-\w,)?(--[a-z0-9-]+|-\w|[A-Z]+)(?:,-\w)?(?: (\S+(?: \.\.\.| REQUIRED)*))?(?: +(\S.*))?$", line)
        if opened:
            if entry:
                yield tuple(entry)
            entry = [opened[1].removeprefix("--"), opened[2] or "", opened[3] or ""]
        elif entry and re.match(r"\s{4,}\S", line):
            entry[2] += " " + line.strip()
        elif entry and re.match(r"  \S", line) and not entry[2].endswith("."):
            entry[2] += " " + line.strip()
        elif entry and not line.strip():
            yield tuple(entry)
            entry = None
    if entry:
        yield tuple(entry)


def fault(name, kind, text):
    """Returns what a flag leaves unsaid, or nothing."""
    if name in ("help", "help-all", "version") or not kind:
        return ""
    if not re.search(r"default|required|may be repeated", text + kind.lower()) and name not in NO_DEFAULT:
        return "states no default"
    if "{" in kind:
        return ""
    plain = kind.split(":")[0].split(" ")[0]
    if plain in ("N", "X", "INT", "UINT", "FLOAT", "N|%") and not UNIT.search(text):
        return "names no unit"
    if plain == "TEXT" and not FORM.search(text):
        return "shows no form or example"
    if plain == "WORD" and not re.search(r"[a-z0-9_]+(?: \([^)]*\))?[,:] |\bor\b", text):
        return "lists no values"
    return ""


def main(lambcast):
    def printed(*words):
        return subprocess.run([lambcast, *words], check=True, capture_output=True, text=True).stdout
    wrong, count = [], 0
    for command in COMMANDS:
        in_full = printed(command, "--help-all" if command in SHORT + ["calibrate"] else "--help")
        for name, kind, text in flags_of(in_full):
            count += 1
            said = fault(name, kind, text)
            if said:
                wrong.append(f"{command} {name} {kind}: {said}: {text}")
    keys = [(name, kind, " ".join(text.split())) for name, kind, text in re.findall(
        r"^  ([a-z0-9_]+) +(whole number or per cent|whole number|number|word|true or false); +(.*(?:\n {20,}.*)*)",
        printed("help", "keys"), re.M)]
    for name, _, text in keys:
        if name.replace("_", "-") not in NO_DEFAULT and "default" not in text:
            wrong.append(f"key {name} states no default: {text}")
    for command in SHORT:
        short = list(flags_of(printed(command, "--help")))
        whole = {name for name, _, _ in flags_of(printed(command, "--help-all"))}
        if not 10 <= len(short) <= 30 or not {name for name, _, _ in short} < whole:
            wrong.append(f"{command} --help shows {len(short)} flags of {len(whole)}")
        if "--help-all" not in printed(command, "--help"):
            wrong.append(f"{command} --help does not name --help-all")
    # Checks the check itself.
    assert fault("a", "N", "default: 1") and fault("a", "TEXT", "default") and not fault("a", "N", "number of GPUs (default: 1)")
    assert fault("a", "SIZE", "smallest size in bytes")
    print("\n".join(f"FAILED: {line}" for line in wrong) or f"{count} flags say what they take")
    return 1 if wrong or count < 300 or len(keys) < 50 else 0


sys.exit(main(sys.argv[1]))

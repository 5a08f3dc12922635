#!/usr/bin/env python3
"""The texts that users read in errors and findings, taken from the sources.

    tools/message_texts.py         prints them by folder, as a page of the manual's site

A message is what a call of CALLS says: its string literals, joined if nothing stands between them. {} stands for a value.
Its cause and its remedy come from the same call: the key or flag that it names, and the values that it allows. Findings
have theirs in experiments/reference/findings.toml, and messages that name no key have those of their folder (SUBJECTS).
"""
import pathlib
import re
import tomllib

CALLS = re.compile(r"\b(fail_input|fail_unknown|describe|complain|fail|refuse\w*|note|warn\w*|Error|Finding|finding)\s*[({]|(Severity::\w+)")
# Messages of the command line itself, built as texts.
RETURNS = re.compile(r"\breturn fmt::format\(()()")
WITH_RETURNS = ("tools/refusal_words.cc", "tools/survey.cc", "tools/validate.cc")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Messages about flags before a command runs, from CLI11.
OF_COMMAND_LINE = (
    ("{} is required", "a flag or word that the command cannot do without", "give it; COMMAND --help shows its form"),
    ("{} excludes {}", "two flags that contradict each other", "leave one of them out"),
    ("{} requires {}", "a flag that means something only with another", "give both, or none"),
    ("{}: has no value", "a flag without its value", "give the value behind the flag"),
    ("{} does not say its format", "the file of --export", "a file name that ends as the format: .json, .csv, .txt, .svg or .png"),
    ("{} is a picture file, and this answer has no picture", "the file of --export", "FILE.json, FILE.csv or FILE.txt"),
    ("no usable NVIDIA GPU: {}", "a machine without a GPU that CUDA can use", "run it where there is one, or leave the profile out"),
    ("Could not convert: {} = {}", "a value that is no number", "a number, as COMMAND --help shows"),
    ("{}: Number less or equal to 0: {}", "a number that must be above zero", "a number above zero"))
# Subject of the messages of a folder, and the remedy for those that name no allowed value.
_LINE = "correct the file at the line that the message names"
SUBJECTS = {
    "sim/base": ("a file or value that cannot be read or written", "correct the file or value that the message names"),
    "sim/collectives": ("an algorithm that a collective cannot run by", "another --algorithm, --protocol or number of ranks"),
    "sim/engine": ("a fault of the simulator", "report it with the command"),
    "topologies": ("the description of a cluster", "correct the key; lambcast presets show NAME prints one that is whole"),
    "topologies/sites": ("the description of sites", "correct the key; lambcast presets show two-regions prints one that is whole"),
    "models/deepspeed": ("the DeepSpeed file of --config", _LINE),
    "models/device": ("the profile of a GPU", "correct the key; lambcast presets show a100-80g prints one that is whole"),
    "models/huggingface": ("the config.json of --model", "correct the key, or give a preset or description in place of the file"),
    "models/launchers": ("the file of Accelerate, GPT-NeoX or another trainer", _LINE),
    "models/megatron": ("the arguments of --megatron-args", "correct the argument, or take it out of the file and give the flag"),
    "models/parallel": ("the layout of the run", "another --tp, --cp, --ep, --pp or --interleave"),
    "models/recipe": ("the optimizer's settings", "correct the value that the message names"),
    "models/shape": ("the description of a model", "correct the key; lambcast presets show bert-large prints one that is whole"),
    "models/torchtitan": ("the job file of --torchtitan", _LINE),
    "models/training/plan": ("what the run exchanges and keeps", "another --exchange, --zero-stage or layout"),
    "models/training/price": ("a size that no number is known for", "a value within the range that the message names"),
    "models/training/run": ("the length or size of the run", "fewer GPUs, layers or steps"),
    "experiments/advise": ("the question of lambcast advise", "an optimizer and exchange that it can compare"),
    "experiments/compare": ("the question of compare, sensitivity or solve", "correct the flag that the message names"),
    "experiments/convergence": ("the files of the convergence study", _LINE),
    "experiments/output": ("a forecast that cannot be printed so", "another --explain, or fewer GPUs"),
    "experiments/phases": ("the phases and pauses of a run, or a log for freeze", "correct the flag or line that the message names"),
    "experiments/report": ("a results folder", "a folder that lambcast sweep --out wrote"),
    "experiments/scenario": ("a flag of the what-if, or a combination of them", "correct the flag that the message names"),
    "experiments/search": ("the layouts that plan may try", "fewer fixed flags, or other GPUs"),
    "experiments/sites": ("training by sites", "correct the flag or key that the message names"),
    "experiments/sweep": ("a sweep file or a results folder", "correct the file, or choose another --out"),
    "validate": ("a table of measurements", _LINE),
    "validate/calibrate": ("measurements that a cluster is fitted to", "tables of more sizes, or of the cluster that --cluster names"),
    "validate/emulated_ethernet": ("the emulated Ethernet", "run it as root on Linux"),
    "validate/importers": ("a log or table of another program", "the file as that program wrote it; --op, --ranks and --nodes add what it lacks"),
    "validate/measure": ("a measurement on this machine", "correct the flag; lambcast measure --help lists them"),
    "validate/program": ("a training log or trace", "the file as the training program wrote it"),
    "validate/replay": ("rows of measured runs", _LINE),
    "validate/survey": ("a survey of a cluster", "start it with a launcher, and -o in a folder of its own"),
    "tools": ("the flags of a command", "correct the flag; COMMAND --help lists them"),
    "tools/web": ("the forecast in a browser", "use the lambcast command"),
}
ROOT = pathlib.Path(__file__).resolve().parent.parent


def argument_end(text, begin):
    """Returns where the call that opens before `begin` closes."""
    depth, at = 1, begin
    while at < len(text) and depth > 0:
        if text[at] == '"':
            literal = LITERAL.match(text, at)
            at = literal.end() if literal else at + 1
            continue
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def messages(text):
    """Yields (line, message) of a source."""
    text = re.sub(r"//[^\n\"]*$", "", text, flags=re.M)
    seen = set()
    for call in CALLS.finditer(text):
        end = argument_end(text, call.end())
        joined, before = "", None
        for literal in [*LITERAL.finditer(text, call.end(), end), None]:
            if literal and before is not None and not text[before:literal.start()].strip():
                joined, before = joined + literal[1], literal.end()
                continue
            if before is not None and joined.count(" ") >= 2 and place not in seen:
                seen.add(place)
                yield text.count("\n", 0, place) + 1, joined.replace('\\"', '"').replace("\\n", " ")
            if literal:
                joined, before, place = literal[1], literal.end(), literal.start()


def arguments(text, begin, end):
    """Returns the arguments of a call, as texts."""
    parts, depth, at, start = [], 0, begin, begin
    while at < end - 1:
        if text[at] == '"':
            literal = LITERAL.match(text, at)
            at = literal.end() if literal else at + 1
            continue
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[at], 0)
        if text[at] == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:end - 1]]


def texts(argument):
    """Returns the texts of an argument: literals with nothing between them are one."""
    joined, before = [], None
    for literal in LITERAL.finditer(argument):
        if before is not None and not argument[before:literal.start()].strip():
            joined[-1] += literal[1]
        else:
            joined.append(literal[1])
        before = literal.end()
    return [text.replace('\\"', '"').replace("\\n", " ").strip() for text in joined]


def words(argument):
    """Returns the longest text of an argument, that of a choice between several."""
    return max(texts(argument), key=len, default="")


def values(argument):
    """Returns what a call allows, or nothing if the sources do not hold it."""
    said = [text for text in texts(argument) if re.search(r"[\w%]", re.sub(r"\{[^{}]*\}", "", text))]
    return " or ".join(said)


def key_of(where):
    """Returns the flag or key that a place names, or nothing."""
    flag = re.search(r'\bflag\("([a-z_]+)"\)', where)
    if flag:
        return "--" + flag[1].replace("_", "-")
    names = [name for name in LITERAL.findall(where) if re.fullmatch(r"--?[A-Za-z-]+|[A-Za-z_.]+", name)]
    return names[-1] if names else ""


def entries(path, text, findings):
    """Yields (message, cause, remedy) of a source."""
    cause, remedy = SUBJECTS.get(str(path.parent), ("", ""))
    text = re.sub(r"//[^\n\"]*$", "", text, flags=re.M)
    calls = [*CALLS.finditer(text), *(RETURNS.finditer(text) if str(path) in WITH_RETURNS else ())]
    for call in sorted(calls, key=lambda found: found.start()):
        end = argument_end(text, call.end())
        given = arguments(text, call.end(), end)
        name = call[1] or call[0]
        if name == "fail_unknown" and len(given) > 1:
            yield f"unknown {words(given[1]) or '{}'} '{{}}'", about(key_of(given[0]), cause), "a word of the list that it prints"
            continue
        if call[2]:  # Severity::note, "code", message
            said = [words(argument) for argument in given]
            code = said[1] if len(said) > 1 else ""
            if code in findings:
                yield finding(max((text for text in said[2:] if " " in text), key=len, default="{}"), code, findings)
            continue
        if call.re is RETURNS:
            yield words(given[0]), cause, remedy
            continue
        if "Severity::" in given[0]:
            continue  # the finding inside is a match of its own
        if name == "complain" or name not in ("fail_input", "describe", "refuse", "fail"):
            for _, message in messages(text[call.start():end]):
                yield message, cause, remedy
            continue
        said = words(given[1]) if len(given) > 1 else words(given[0])
        if said.count(" ") >= 1:
            allowed = values(given[2]) if len(given) > 2 else ""
            yield said, about(key_of(given[0]) if len(given) > 1 else "", cause), allowed or remedy


def finding(message, code, findings):
    """Returns the entry of a finding, which findings.toml explains."""
    meaning, _, advice = findings[code].partition(": ")
    return f"{message} [{code}]", meaning, advice or "nothing to do"


def about(key, cause):
    return f"the value of `{key}`" if key else cause


def sources():
    return [(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
            for top in ("sim", "topologies", "models", "experiments", "validate", "tools")
            for path in sorted((ROOT / top).rglob("*.cc")) if not path.stem.endswith(("_test", "_fuzz", "_case"))]


def all_entries():
    """Returns (folder, message, cause, remedy) of all sources, each message of a folder once."""
    findings = tomllib.loads((ROOT / "experiments/reference/findings.toml").read_text(encoding="utf-8"))["finding"]
    found = [("command line", *entry) for entry in OF_COMMAND_LINE]
    for path, text in sources():
        if not any(True for _ in CALLS.finditer(text)):
            continue
        found += [(str(path.parent), *entry) for entry in entries(path, text, findings)]
    page = "\n".join(message for _, message, _, _ in found)
    found += [("findings", *finding("{}", code, findings)) for code in findings if f"[{code}]" not in page]
    return list(dict.fromkeys(found))


def patterns():
    """Returns a pattern for each message that has enough words of its own to be recognised."""
    out = []
    for _, message, _, _ in all_entries():
        parts = re.split(r"\{[^{}]*\}", message)
        if sum(len(part) for part in parts) >= 9:
            out.append(re.compile(".*?".join(re.escape(part.replace("{{", "{").replace("}}", "}")) for part in parts), re.S))
    return out


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def page():
    """Returns the page: a table for each folder."""
    out, folder = ("# Messages\n\nEach error and each finding, by the part of the program that raises it. `{}` stands for a "
                   "value.\n"), ""
    for of, message, cause, remedy in all_entries():
        if of != folder:
            folder = of
            out += f"\n## {folder}\n\n| message | what it is about | what to do |\n| --- | --- | --- |\n"
        out += "| `" + cell(message.replace("`", "'")) + f"` | {cell(cause)} | {cell(remedy)} |\n"
    return out


if __name__ == "__main__":
    print(page(), end="")

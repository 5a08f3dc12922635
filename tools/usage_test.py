#!/usr/bin/env python3
"""How every command answers words that it cannot use.

    usage_test.py LAMBCAST

--help-all works in every command, also where required words are missing. All that is missing is named at once. A flag that
takes text, fed with a word that it cannot mean, is named in the refusal. The page of messages has each refusal, with what it is
about and what to do.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import message_texts

JOB = ("--model bert-large --cluster commodity-10gbe --gpus 32 --optimizer onebit_lamb --global-batch 65536 --micro-batch 64 "
       "--steps 100 --freeze-step 20").split()
# A question that each command answers, or rejects only because the file "log" is missing.
QUESTIONS = {"simulate": JOB, "advise": JOB, "sensitivity": JOB, "plan": JOB,
             "compare": ["--clusters", "commodity-10gbe,commodity-25gbe", *JOB[:2], *JOB[4:]],
             "solve": ["cluster.nic.bandwidth", "--for", "run_time=1h", *JOB], "sites": ["--cluster", "two-regions", *JOB[:2], *JOB[6:]],
             "sweep": [*JOB, "--format", "csv", "--list", "seq_len=128,256"],
             "collective": ["--cluster", "commodity-10gbe", "--gpus", "8"], "freeze": ["freeze.csv"],
             "calibrate": ["--cluster", "commodity-10gbe", "-o", "new.toml", "log"], "validate": ["--canary"],
             "measure": ["--backend", "mpi"], "survey": ["--cluster", "commodity-10gbe", "-o", "folder"]}
# Flags that accept any text: names, folders and files to write, and hosts, which a file may name
# freely.
FREE = {"--trace", "--name", "--source", "--out", "--output", "--write-sweep", "--hosts", "-o", "--manifest", "--rows", "--register"}
# Flags that are only read together with another one, and those for training steps.
NEEDED = {"--mtbf": ["--checkpoint-every", "10"]}
STEPS = {"--runs", "--log", "--job-trace", "--measured"}
WORD = "no-such-word"
SEEN, CODES = set(), set()


def run(lambcast, *words):
    return subprocess.run([lambcast, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)


def complaint(answer):
    lines = [line for line in answer.stderr.split("\n") if line.startswith("lambcast: ")]
    said = next((line for line in lines if not re.match(r"lambcast: (note|warning|see) ?", line)), "")
    SEEN.add(said)
    CODES.update(re.findall(r"(?:note|warning): .* (\[[a-z0-9-]+\])$", answer.stderr + answer.stdout, re.M))
    return said


def help_faults(lambcast, names):
    """Yields the commands without --help-all, whatever else they were given."""
    for name in [*names, "presets list", "presets show"]:
        for more in ([], ["--help"], ["--color", "never"]):
            answer = run(lambcast, *name.split(), *more, "--help-all")
            if answer.returncode != 0 or "Usage: lambcast " + name not in answer.stdout or answer.stderr:
                yield f"{name} {' '.join(more)} --help-all: {complaint(answer) or answer.stdout[:80]}"


def missing_faults(lambcast, names):
    """Yields the commands that name what is missing in more than one line."""
    values = {"KEY": [["gpus"]], "DIR": [["folder"]], "LOG": [["log"]], "FILE": [["log"]], "NAME": [["bert-large"]],
              "--for": [["--for", "run_time=1h"]], "--out": [["--out", "folder"]], "--output": [["--output", "new.toml"]],
              "--backend": [["--backend", "mpi"]]}
    for flag, value in zip(JOB[::2], JOB[1::2]):
        values[flag] = [[flag, value]]
    for name in names:
        asked, rounds = [], []
        while len(rounds) < 4:
            said = complaint(run(lambcast, name, *asked))
            wanted = re.search(r"(?:([\w, -]+): (?:is )?missing|([\w, -]+) is required)", said)
            if not wanted:
                break
            rounds.append(said)
            for word in re.findall(r"--[a-z-]+|[A-Z]{3,}", wanted[1] or wanted[2]):
                asked += values.get(word, [[word]])[0]
        # A second round is allowed for sweep, compare and sites, which read their own words first.
        if len(rounds) > (2 if name in ("sweep", "compare", "sites") else 1):
            yield f"{name}: names what is missing bit by bit: {rounds}"


def command_faults(lambcast, names):
    """Yields the misspelt commands that are answered with other than one line and the right name, with and without --help."""
    for name in names:
        for wrong in (name[:-1] + "x", name + "s", name[0] + name[2:]):
            for words in ([wrong], [wrong, "--help"], [wrong, "--help-all"], [wrong, *JOB]):
                answer = run(lambcast, *words)
                SEEN.add(complaint(answer))
                if wrong not in names and (answer.returncode != 2 or answer.stdout or answer.stderr.count("\n") != 1
                                           or not re.search("did you mean '", answer.stderr)):
                    yield f"{' '.join(words[:2])}: {answer.returncode}: {answer.stderr[:200]}"


def refusal_faults(lambcast, commands):
    """Yields the text flags whose refusal does not name them."""
    tried = 0
    for command in commands:
        question = QUESTIONS.get(command["name"])
        for flag in command["flags"]:
            names = [name.strip() for name in flag["name"].split(",")]
            if question is None or not flag["type"] or not names[-1].startswith("-") or FREE & set(names):
                continue
            words = [*question, *NEEDED.get(names[-1], [])]
            if names[-1] in STEPS and "log" in words:
                words.remove("log")
            given = next((name for name in names if name in words), None)
            if given:
                words[words.index(given) + 1] = WORD
            elif flag["type"] == "[true|false]" and command["name"] in ("compare", "sweep"):
                words += [names[-1] + "=" + WORD]  # a word by itself names what they compare
            else:
                words += [names[-1], WORD]
            answer = run(lambcast, command["name"], *words)
            tried += 1
            # A sweep continues after a row that cannot run, and the row gives the reason; so do
            # compare and plan.
            rows = command["name"] == "sweep" or answer.returncode == 3
            said = complaint(answer) + (answer.stdout if rows else "")
            if (answer.returncode == 0 and not rows) or not any(re.search(rf"(?<![\w-]){name}(?![\w-])", said) for name in names):
                yield f"{command['name']} {names[-1]} {WORD}: {answer.returncode} {complaint(answer)}"
    if tried < 300:
        yield f"only {tried} flags were tried"


def page_faults():
    """Yields the refusals that the page of messages lacks, and its entries without a cause or remedy."""
    patterns = message_texts.patterns()
    for said in sorted(SEEN - {""}):
        if not any(pattern.search(said) for pattern in patterns):
            yield f"the page of messages lacks: {said}"
    page = message_texts.page()
    for code in sorted(CODES):
        if code not in page:
            yield f"the page of messages lacks the finding {code}"
    for folder, message, cause, remedy in message_texts.all_entries():
        if not cause or not remedy:
            yield f"the page of messages: {folder}: {message}: no cause or no remedy"
    if len(SEEN) < 100 or len(CODES) < 5:
        yield f"only {len(SEEN)} different refusals and {len(CODES)} findings were seen"


def main(lambcast):
    lambcast = os.path.realpath(lambcast)
    commands = json.loads(run(lambcast, "help", "json").stdout)["commands"]
    names = [command["name"] for command in commands]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("freeze.csv", "w", encoding="utf-8") as log:
            log.write("step,a,b\n1,1,1\n2,2,2\n")
        wrong = [*help_faults(lambcast, names), *missing_faults(lambcast, names), *command_faults(lambcast, names),
                 *refusal_faults(lambcast, commands)]
        wrong += page_faults()
    print("\n".join(f"FAILED: {line}" for line in wrong) or f"{len(names)} commands answer what they cannot use")
    return 1 if wrong or len(names) < 15 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

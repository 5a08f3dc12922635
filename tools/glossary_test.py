#!/usr/bin/env python3
"""Every phase, part and verdict that results name is a term of the glossary, and no text has other words for a verdict.

    glossary_test.py LAMBCAST ROOT

The words come from the tables of the sources, and from answers, so that a word that moves to another table is not lost.
"""
import json
import pathlib
import re
import subprocess
import sys

JOB = "--model bert-large --cluster commodity-10gbe --gpus 32 --global-batch 65536 --micro-batch 64 --steps 5993"
ANSWERS = [f"simulate {JOB} --optimizer onebit_lamb --freeze-step 1000", f"simulate {JOB} --optimizer lamb --exchange local:16",
           f"simulate {JOB} --optimizer zero_one_adam --freeze-step 1000", f"simulate {JOB} --optimizer galore_adamw8bit",
           "simulate --model llama2-7b --cluster hgx-h100-ndr --gpus 64 --zero-stage 3 --framework torchtitan --precision bf16 "
           "--global-batch 256 --micro-batch 1 --optimizer adamw --steps 100",
           "plan --model gpt2-xl --cluster dgx-a100-80g --gpus 8 --global-batch 64 --precision bf16"]


# Words that must not replace the verdicts "pays", "does not pay", "no difference" and "not certain". Codes such as
# "compression-loses" may contain them.
FOREIGN = re.compile(r"(?<![\w.-])(wins|won|loses|losing|sure|surely|unsure|stops? paying|beats|profitable|worthwhile)(?![\w-])", re.I)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def foreign_words(root):
    """Yields each text of the program, its pages and its manual that has another word for a verdict."""
    def texts(path, line):
        return [line] if path.suffix in (".md", ".html") else () if line.strip().startswith(("//", "#")) else LITERAL.findall(line)
    paths = [path for top in ("sim", "topologies", "models", "experiments", "validate", "tools")
             for end in ("*.cc", "*.h", "*.js", "*.html", "*.schema.json") for path in sorted((root / top).rglob(end))
             if "_test" not in path.stem and "fuzz" not in path.parts and "uplot" not in path.parts]
    paths += [*(root / "tools/manual").glob("*.md"), root / "README.md", root / "validate/trust.md"]
    for path in paths:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for text in texts(path, line):
                found = FOREIGN.search(text)
                # Class names of pages and codes of findings are single words, which are not checked.
                if found and " " in text.strip():
                    yield f"{path.relative_to(root)}:{number}: '{found[0]}' is no word of a verdict: {text.strip()[:80]}"


def terms(root):
    """The words of the first column of the glossary, and those that its rows set as code."""
    found = set()
    for row in (root / "tools/manual/glossary.md").read_text().splitlines():
        if row.startswith("| ") and not row.startswith(("| term", "| ---")):
            term, meaning = row.strip("| ").split(" | ", 1)
            found |= {word.strip("` ") for word in term.split(",")} | set(re.findall(r"`([^`]+)`", row))
            if term == "verdict":  # its meaning lists the words
                found |= {word.strip() for word in re.split(r",| or ", meaning.split(" ([")[0])}
    return found


def of_sources(root):
    """Phases, groups and parts of a step, parts of memory and verdicts, by the tables that print them."""
    def quoted(path, begin, end):
        return re.findall(r'"([a-z_]+)"', re.search(begin + r".*?" + end, (root / path).read_text(), re.S)[0])
    yield from quoted("models/optimizer/passes.h", r"names\[\] = \{", r"\};")
    yield from quoted("models/training/run/step_parts.h", r"part_group_names\{", r"\};")
    yield from quoted("models/training/run/step_parts.h", r"parts_of_step\{", r"\};\n")
    for path in [*sorted((root / "models/training/memory").glob("*.cc")), root / "models/training/plan/optimizer_state.cc"]:
        if not path.stem.endswith("_test"):
            yield from re.findall(r'(?:\badd|emplace_back)\("([a-z_]+)"', path.read_text())
    verdicts = re.search(r"verdict_names\[\] = .*?\};", (root / "experiments/verdict/verdict.cc").read_text(), re.S)[0]
    yield from re.findall(r'\{"[a-z_]+", "([a-z ]+)"\}', verdicts)


def of_answer(answer):
    for stage in answer.get("stages", []):
        yield stage["name"]
    yield from answer.get("memory", {}).get("parts", {})
    for layout in answer.get("layouts", []):
        yield layout["largest_loss"]


def main(lambcast, root):
    known, words = terms(root), {word: "the sources" for word in of_sources(root)}
    if len(words) < 35:
        return f"FAILED: only {len(words)} words found in the sources: {sorted(words)}"
    for command in ANSWERS:
        done = subprocess.run([lambcast, *command.split(), "--format", "json"], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"FAILED: {command}: {done.stderr}"
        words.update({word: command for word in of_answer(json.loads(done.stdout))})
    lost = [f"FAILED: {text}" for text in foreign_words(root)]
    lost += [f"FAILED: {word} is not a term of tools/manual/glossary.md: {where}" for word, where in sorted(words.items()) if word not in known]
    return "\n".join(lost)


if __name__ == "__main__":
    fault = main(sys.argv[1], pathlib.Path(sys.argv[2]))
    print(fault or "every word of a result is in the glossary")
    sys.exit(1 if fault else 0)

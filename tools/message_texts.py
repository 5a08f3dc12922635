#!/usr/bin/env python3
"""The texts that users read in errors and findings, taken from the sources.

    tools/message_texts.py         prints them by folder, as a page of the manual's site

A message is what a call of CALLS says: its string literals, joined if nothing stands between them. {} stands for a value.
"""
import pathlib
import re

CALLS = re.compile(r"\b(fail_input|fail|refuse\w*|note|warn\w*|Error|Finding|finding)\s*[({]|(Severity::\w+)")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
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


def page(sources):
    """Returns the page: a list for each folder."""
    out, folder = "# Messages\n\nEach error and each finding, by the folder that raises it. `{}` stands for a value.\n", ""
    for path, text in sources:
        found = [message for _, message in messages(text)]
        if found and str(path.parent) != folder:
            folder = str(path.parent)
            out += f"\n## {folder}\n\n"
        for message in found:
            out += "* `" + message.replace("`", "'") + "`\n"
    return out


if __name__ == "__main__":
    print(page((path.relative_to(ROOT), path.read_text(encoding="utf-8"))
               for top in ("sim", "topologies", "models", "experiments", "validate", "tools")
               for path in sorted((ROOT / top).rglob("*.cc"))
               if not path.stem.endswith(("_test", "_fuzz", "_case"))), end="")

#!/usr/bin/env python3
"""The reference for programs holds what the help prints, and llms.txt links what is there.

    llms_test.py LAMBCAST
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main(lambcast, folder):
    def printed(*words):
        return subprocess.run([lambcast, *words], check=True, capture_output=True, text=True).stdout
    reference = json.loads(printed("help", "json"))
    flags = 0
    for command in reference["commands"]:
        known = {name for flag in command["flags"] for name in flag["name"].split(", ")}
        named = set(re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", printed(command["name"], "--help"), re.M))
        # `measure` passes its flags on to lambcast-measure, which defines them.
        assert command["name"] == "measure" or named <= known | {"--help-all"}, f"{command['name']}: {named - known}"
        flags += len(known)
    assert flags > 700, f"only {flags} flags"
    topics = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", printed("help", "reference"), re.M | re.S))
    assert len(topics) >= 6, topics.keys()
    for topic, text in topics.items():
        entries = [entry["name"] for section in reference[topic] for entry in section["entries"]]
        assert entries == re.findall(r"^\| `(.+?)` \|", text, re.M), f"{topic} differs from help reference"
    (folder / "reference.json").write_text(json.dumps(reference), encoding="utf-8")
    for form, chapter in ((), "manual/{}.md"), (("--site",), "{}.html"):
        subprocess.run([HERE / "make_llms", folder / "reference.json", folder / "llms.txt", *form], check=True)
        text = (folder / "llms.txt").read_text(encoding="utf-8")
        assert text.startswith("# lambcast ") and "\n> " in text
        for command in reference["commands"]:
            assert f"- `lambcast {command['name']}`: " in text, f"no {command['name']}"
        for name in sorted(HERE.glob("*.md")):
            assert name.stem == "README" or f"({chapter.format(name.stem)})" in text, f"{form}: no link to {name.name}"
    example = re.search(r"^    lambcast (advise .*\\\n.*)$", text, re.M)[1].replace("\\\n", "")
    assert json.loads(printed(*example.split()))["verdict_words"] == "pays"
    print(f"{len(reference['commands'])} commands with {flags} flags, {len(topics)} topics")


with tempfile.TemporaryDirectory() as scratch:
    main(sys.argv[1], pathlib.Path(scratch))

"""Forecasts of compressed large-batch training, as dicts and tables.

    import lambcast
    run = lambcast.simulate(model="bert-large", cluster="commodity-10gbe", gpus=32,
                            optimizer="onebit_lamb", global_batch=16384, micro_batch=64,
                            steps=5993, freeze_step="20%")
    run["run"]["speedup_vs_baseline"]
    lambcast.sweep(model="bert-large", ..., gpus="8..64", global_batch=[4096, 16384])
    lambcast.compare("aws-p4d", "commodity-10gbe", model="bert-large", ...)["answer"]

Arguments are the flags of the command line with underscores (`lambcast help keys`): True gives a
switch, and keys with dots are passed as **{"cluster.nic.bandwidth": "10Gbit/s"}. Results have the
keys and columns of the command line (`lambcast help fields`, `lambcast help columns`), because it
is the program that computes them: the one that LAMBCAST names, the one this package was installed
with, or the first in PATH. What it refuses is raised with the line that it prints.
"""

import csv
import json
import os
import subprocess
import tempfile
import warnings

try:
    import pandas
except ImportError:
    pandas = None

__all__ = ["Error", "UsageError", "advise", "collective", "compare", "read_results", "sensitivity", "simulate",
           "solve", "sweep"]


class Error(Exception):
    """What the program said, and its exit code: 1 failed, 3 a limit was exceeded, 4 something is missing."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class UsageError(Error, ValueError):
    """Arguments or files that cannot be used (exit code 2)."""


def simulate(**flags):
    """The forecast of one configuration: `lambcast simulate --format json` as a dict."""
    return json.loads(_run("simulate", *_arguments(flags), "--format", "json"))


def advise(**flags):
    """Does compression pay here: `lambcast advise --format json` as a dict, its "answer" in words.

    A flag with a list of values or a range is asked for each of them, as in sweep().
    """
    return _answer("advise", *_arguments(flags, axes=True))


def compare(*names, **flags):
    """Clusters, or folders that sweep() wrote, side by side: `lambcast compare --format json` as a dict.

    clusters, optimizers and exchanges may be lists: every combination of them.
    """
    flags = {key: ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else value
             for key, value in flags.items()}
    return _answer("compare", *map(os.fspath, names), *_arguments(flags))


def solve(key, wanted, low=None, high=None, **flags):
    """The value of `key` that gives what is wanted ("efficiency=90%"): `lambcast solve --format json` as a dict.

    low and high bound the values to look at. That none gives it is an answer too.
    """
    bounds = [word for flag, value in (("--from", low), ("--to", high)) if value is not None
              for word in (flag, _text(value))]
    return _answer("solve", key, "--for", wanted, *bounds, *_arguments(flags))


def sensitivity(**flags):
    """Which inputs move the answer most: `lambcast sensitivity --format json` as a dict."""
    return _answer("sensitivity", *_arguments(flags))


def collective(**flags):
    """The times of one collective: `lambcast collective --format json` as a dict.

    b, e and f are the smallest and the largest size and the factor between them, as in nccl-tests.
    """
    return json.loads(_run("collective", *_arguments(flags), "--format", "json"))


def sweep(file=None, out=None, frame=None, **flags):
    """The rows of `lambcast sweep`, as a DataFrame where there is pandas, else as a list of dicts.

    `file` is a sweep file or a study that ships ("bert_large"); without one the flags say it all. A
    flag with a list of values is an axis, and so is one with a range ("8..64", "8:64:x2"). Rows are
    kept in the folder `out` and gone on with there; without one they are only returned. frame=True
    or False chooses between the two forms.
    """
    with tempfile.TemporaryDirectory() as folder:
        arguments = [] if file is None else [os.fspath(file)]
        resume = out is not None and os.path.exists(os.path.join(out, "results.csv"))
        arguments += ["--out", os.fspath(out or os.path.join(folder, "out")), "--no-report"]
        _run("sweep", *arguments, *_arguments(flags, axes=True), *["--resume"] * resume)
        return read_results(arguments[arguments.index("--out") + 1], frame)


def read_results(folder, frame=None):
    """The rows of a folder that `lambcast sweep --out` wrote, in the forms of sweep()."""
    path = os.path.join(folder, "results.csv")
    if frame or (frame is None and pandas is not None):
        if pandas is None:
            raise Error("pandas is not installed: frame=False gives a list of dicts", 4)
        return pandas.read_csv(path, float_precision="round_trip")
    with open(path, newline="", encoding="utf-8") as rows:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(rows)]


def _value(text):
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _is_range(value):
    return isinstance(value, str) and (".." in value or value.count(":") == 2)


def _text(value):
    return str(value).lower() if isinstance(value, bool) else os.fspath(value) if hasattr(
        value, "__fspath__") else str(value)


def _arguments(flags, axes=False):
    words = []
    for key, value in flags.items():
        if axes and isinstance(value, (list, tuple, range)):
            words += ["--list", f"{key}={','.join(map(_text, value))}"]
        elif axes and _is_range(value):
            words += ["--scan", f"{key}={value}"]
        elif "." in key:
            words += ["--set", f"{key}={_text(value)}"]
        elif value is True:
            words.append("--" + key.replace("_", "-"))
        elif value is not None and value is not False:
            words += [("-" if len(key) == 1 else "--") + key.replace("_", "-"), _text(value)]
    return words


def _program():
    if "LAMBCAST" in os.environ:
        return os.environ["LAMBCAST"]
    # PREFIX/lib/python3/dist-packages/lambcast/__init__.py
    prefix = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    beside = os.path.join(prefix, "bin", "lambcast")
    return beside if os.path.exists(beside) else "lambcast"


def _answer(*arguments):
    return json.loads(_run(*arguments, "--format", "json", answers=(0, 3)))


def _run(*arguments, answers=(0,)):
    try:
        done = subprocess.run([_program(), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Error(f"{_program()}: {error.strerror}: install lambcast, or set LAMBCAST to the program",
                    4) from None
    said = [line[len("lambcast: "):] for line in done.stderr.splitlines()
            if line.startswith("lambcast: ") and not line.startswith("lambcast: see lambcast ")]
    if done.returncode not in answers or done.returncode != 0 and not done.stdout:
        message = "\n".join(said) or f"lambcast ended with {done.returncode}"
        raise (UsageError if done.returncode == 2 else Error)(message, done.returncode)
    for line in said:
        warnings.warn(line, stacklevel=4 if 3 in answers else 3)
    return done.stdout


def __getattr__(name):
    if name == "__version__":
        return _run("--version").split()[1]
    raise AttributeError(f"module 'lambcast' has no attribute '{name}'")

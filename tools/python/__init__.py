"""Forecasts of compressed large-batch training, as dicts and tables.

    import lambcast
    run = lambcast.simulate(model="bert-large", cluster="commodity-10gbe", gpus=32,
                            optimizer="onebit_lamb", global_batch=16384, micro_batch=64,
                            steps=5993, freeze_step="20%")
    run["run"]["speedup_vs_baseline"]
    lambcast.sweep(model="bert-large", ..., gpus="8..64", global_batch=[4096, 16384])
    lambcast.compare("aws-p4d", "commodity-10gbe", model="bert-large", ...)["answer"]

Arguments are the flags of the command line with underscores (`lambcast help keys`), but for those
that say where an answer goes: True gives a switch, and keys with dots are passed as
**{"cluster.nic.bandwidth": "10Gbit/s"}. Results have the keys and columns of the command line
(`lambcast help fields`, `lambcast help columns`). What it would refuse is raised with its line.
"""

import csv
import json
import os
import tempfile
import warnings

from ._answer import Answer

try:
    from . import _lambcast
except ImportError as missing:
    raise ImportError(f"lambcast: no compiled module for this Python in {os.path.dirname(__file__)} "
                      "(try: cmake --build build --target lambcast_python, with pybind11-dev and "
                      f"python3-dev installed): {missing}") from None

try:
    import pandas
except ImportError:
    pandas = None

__all__ = ["Answer", "Error", "UsageError", "advise", "collective", "compare", "plan", "read_results", "sensitivity",
           "simulate", "solve", "sweep"]
__version__ = _lambcast.version


class Error(Exception):
    """Why there is no answer, and the exit code of the command: 1 failed, 3 a limit was exceeded, 4 something is missing."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class UsageError(Error, ValueError):
    """Arguments or files that cannot be used (exit code 2)."""


def simulate(then=(), **flags):
    """The forecast of one configuration: `lambcast simulate --format json` as a dict.

    `then` are the phases after the first, each "KEY=VALUE KEY=VALUE ...".
    """
    return Answer(json.loads(_lambcast.simulate(_texts(flags), _list(then))))


def advise(**flags):
    """Does compression pay here: `lambcast advise --format json` as a dict, its "answer" in words.

    A flag with a list of values or a range is asked for each of them, as in sweep().
    """
    return Answer(json.loads(_lambcast.advise(*_texts_and_axes(flags))))


def plan(**flags):
    """The best layouts: `lambcast plan --format json` as a dict."""
    return Answer(json.loads(_lambcast.plan(_texts(flags))))


def compare(*names, clusters=(), optimizers=(), exchanges=(), **flags):
    """Clusters, or folders that sweep() wrote, side by side: `lambcast compare --format json` as a dict.

    clusters, optimizers and exchanges are lists, or texts with commas: every combination of them.
    """
    axes = [_list(axis.split(",") if isinstance(axis, str) else axis) for axis in (clusters, optimizers, exchanges)]
    return Answer(json.loads(_lambcast.compare(_list(names), _texts(flags), *axes)))


def solve(key, wanted, low=None, high=None, **flags):
    """The value of `key` that gives what is wanted ("efficiency=90%"): `lambcast solve --format json` as a dict.

    low and high bound the values to look at. That none gives it is an answer too.
    """
    low, high = [None if end is None else _text(end) for end in (low, high)]
    return Answer(json.loads(_lambcast.solve(key, wanted, low, high, _texts(flags))))


def sensitivity(by=5, **flags):
    """Which inputs move the answer most, each moved by so many per cent: `lambcast sensitivity --format json`."""
    return Answer(json.loads(_lambcast.sensitivity(_texts(flags), by)))


def collective(**flags):
    """The times of one collective: `lambcast collective --format json` as a dict.

    b, e and f are the smallest and the largest size and the factor between them, as in nccl-tests.
    """
    return Answer(json.loads(_lambcast.collective(_texts(flags))))


def sweep(file=None, out=None, frame=None, long=False, **flags):
    """The rows of `lambcast sweep`, as a DataFrame where there is pandas, else as a list of dicts.

    `file` is a sweep file or a study that ships ("bert_large"); without one the flags say it all. A
    flag with a list of values is an axis, and so is one with a range ("8..64", "8:64:x2"). Rows are
    kept in the folder `out` and gone on with there; without one they are only returned. frame=True
    or False chooses between the two forms, and long=True gives a row for every kind of step.
    """
    with tempfile.TemporaryDirectory() as folder:
        resume = out is not None and os.path.exists(os.path.join(out, "results.csv"))
        out = os.fspath(out or os.path.join(folder, "out"))
        for note in _lambcast.sweep(os.fspath(file or ""), out, resume, *_texts_and_axes(flags)):
            warnings.warn(note, stacklevel=2)
        return read_results(out, frame, long)


def read_results(folder, frame=None, long=False):
    """The rows of a folder that `lambcast sweep --out` wrote, in the forms of sweep().

    A DataFrame leaves out the columns that are empty in every row. long=True gives a row for every
    kind of step of every point: `stage` says which, and its columns have no prefix.
    """
    path = os.path.join(folder, "results.csv")
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        state = "is empty" if os.path.isfile(path) else "does not exist"
        raise UsageError(f"{path}: {state} (allowed: a folder that lambcast sweep --out wrote)", 2)
    if frame or (frame is None and pandas is not None):
        if pandas is None:
            raise Error("pandas is not installed: frame=False gives a list of dicts", 4)
        rows = pandas.read_csv(path, float_precision="round_trip")
        if long:
            rows = pandas.DataFrame(_long(rows.to_dict("records")))
        return rows.dropna(axis="columns", how="all")
    with open(path, newline="", encoding="utf-8") as lines:
        rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(lines)]
    return _long(rows) if long else rows


def _long(rows):
    """A row for every kind of step that the rows have; `warmup_step_time_us` is its step_time_us."""
    suffix = "_step_time_us"
    stages = [key[: -len(suffix)] for key in (rows[0] if rows else ()) if key.endswith(suffix)]
    figures = {key: (stage, key[len(stage) + 1 :]) for key in (rows[0] if rows else ())
               for stage in stages if key.startswith(stage + "_")}
    names = dict.fromkeys(name for _, name in figures.values())
    of = {place: key for key, place in figures.items()}
    return [{**{key: value for key, value in row.items() if key not in figures}, "stage": stage,
             **{name: row.get(of.get((stage, name))) for name in names}}
            for row in rows for stage in stages if _has_value(row[stage + suffix])]


def _has_value(value):
    return value is not None and value == value  # NaN stands for an empty cell in a DataFrame


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


def _text(value):
    return str(value).lower() if isinstance(value, bool) else os.fspath(value) if hasattr(
        value, "__fspath__") else str(value)


def _list(values):
    return [_text(value) for value in ([values] if isinstance(values, str) else values)]


def _texts(flags):
    return {key.removeprefix("run."): _text(value) for key, value in flags.items()
            if value is not None and value is not False}


def _texts_and_axes(flags):
    lists = {key: value for key, value in flags.items() if isinstance(value, (list, tuple, range))}
    scans = {key: value for key, value in flags.items()
             if isinstance(value, str) and (".." in value or value.count(":") == 2)}
    return (_texts({key: value for key, value in flags.items() if key not in lists and key not in scans}),
            [f"{key}={','.join(map(_text, values))}" for key, values in lists.items()],
            [f"{key}={scan}" for key, scan in scans.items()])

#!/usr/bin/env python3
"""How far forecasts are off where nothing was measured: where the widths of intervals come from.

    leave_out.py BUILD

Fits descriptions to parts of the public tables, forecasts the rest, and prints for every size band
what 90 of 100 rows were off by beyond the band of their fit, as topologies/calibration.h widens it:
excess = sqrt(max(0, log(measured / forecast)^2 - log(end of the band)^2)), and per doubling past
the ranks and nodes measured in the experiments called w. Beside it: how many rows lie inside the
interval that the program gave them, which is meant to be 90 of 100. Takes a minute.
"""

import csv
import math
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLES = HERE.parent / "replay" / "collectives"
BANDS = ((65536, "below 64 KiB"), (4 * 1048576, "to 4 MiB"), (math.inf, "above"))
OPERATIONS = ("allgather", "allreduce", "reducescatter")


def perlmutter(operations=OPERATIONS, nodes=(1, 2, 4, 8)):
    found = []
    for path in sorted(TABLES.glob("perlmutter_*.csv")):
        operation, table_nodes = re.match(r"perlmutter_(\w+)_a100_(\d+)n", path.name).groups()
        if operation in operations and int(table_nodes) in nodes:
            found.append(path)
    return found


def h100(*letters):
    return [next(TABLES.glob(f"*nccltests309{letter}.csv")) for letter in letters]


def experiments():
    """What is sought, a name, the description before the fit, tables to fit, tables to forecast."""
    for fitted, unseen in (((1, 2), (4, 8)), ((1, 2, 4), (8,)), ((4, 8), (2,)), ((8,), (2, 4))):
        yield ("w", "Perlmutter", "perlmutter-a100", perlmutter(nodes=fitted),
               perlmutter(nodes=unseen))
    yield "w", "H100", "hgx-h100-ndr", h100("a"), h100("e")
    yield "w", "H100", "hgx-h100-ndr", h100("e"), h100("a", "d")
    for one in OPERATIONS:
        for other in OPERATIONS:
            if one != other:
                yield "o", "Perlmutter", "perlmutter-a100", perlmutter((one,)), perlmutter((other,))
    one, several = perlmutter(nodes=(1,)), perlmutter(nodes=(2, 4, 8))
    yield "c", "one node", "perlmutter-a100", several, one
    yield "c", "several", "perlmutter-a100", one, several


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                            check=False)
    if result.returncode not in (0, 3):
        sys.exit(result.stderr.strip())


def value(description, key):
    return [float(x) for x in
            re.search(rf"^{key} = \[(\S+), (\S+)\]", description, re.M).groups()]


def bands_of(description):
    """(end, low, high) of the bands of sizes that were fitted."""
    return [(float(end or "inf"), float(low), float(high)) for end, low, high in
            re.findall(r'^\[\[calibration\.bands\]\]\n(?:below = "(\d+) B"\n)?'
                       r"low = (\S+)\nhigh = (\S+)", description, re.M)]


def doublings_past(x, measured):
    low, high = measured
    return max(0, math.log2(low / x), math.log2(x / high))


def excesses(lambcast, folder, base, fitted, unseen, per_doubling):
    """(size, excess, inside its interval) of every row of the unseen tables."""
    mine, rows = folder / "mine.toml", folder / "rows.csv"
    run(lambcast, "calibrate", "--cluster", HERE / "bases" / f"{base}.toml", "-o", mine, *fitted)
    description = mine.read_text(encoding="utf-8")
    bands = bands_of(description)
    for table in unseen:
        run(lambcast, "validate", "--against", table, "--cluster", mine, "--rows", rows)
        with open(rows, encoding="utf-8") as text:
            for row in csv.DictReader(text):
                size = int(row["size_bytes"])
                low, high = next((low, high) for end, low, high in bands if size < end)
                off = math.log(float(row["measured_us"]) / float(row["forecast_us"]))
                end = math.log(high if off > 0 else low)
                excess = math.sqrt(max(0.0, off * off - end * end))
                if per_doubling:
                    excess /= max(doublings_past(int(row["ranks"]), value(description, "ranks")),
                                  doublings_past(int(row["nodes"]), value(description, "nodes")))
                inside = float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"])
                yield size, excess, inside


def quantile(values, q):
    values = sorted(values)
    return values[math.ceil(q * len(values)) - 1]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    lambcast = pathlib.Path(sys.argv[1]).resolve() / "lambcast"
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for sought, name, base, fitted, unseen in experiments():
            found.setdefault((sought, name), []).extend(
                excesses(lambcast, pathlib.Path(folder), base, fitted, unseen, sought == "w"))
    print(f"{'':<14}" + "".join(f"{name:>26}" for _, name in BANDS))
    for (sought, name), rows in found.items():
        line = f"{sought} {name:<12}"
        below = 0
        for end, _ in BANDS:
            band = [(excess, inside) for size, excess, inside in rows if below <= size < end]
            below = end
            covered = sum(inside for _, inside in band)
            line += f"{quantile([e for e, _ in band], 0.9):>9.2f} ({covered:>4} of {len(band):>4})"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

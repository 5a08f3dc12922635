#!/usr/bin/env python3
"""How far forecasts are off where nothing was measured: where the widths of intervals come from.

    leave_out.py BUILD

Fits descriptions to parts of the public tables, forecasts the rest, and prints for every size band
what 90 of 100 rows were off by beyond the band of their fit, as topologies/calibration.h widens it:
excess = sqrt(max(0, log(measured / forecast)^2 - log(end of the band)^2)). In the experiments
called w that is for a doubling: divided by the root of how many lie between a table's layout and
the nearest measured one. In u nothing is fitted, tables are forecast from the descriptions before,
and fabrics count alike, however many rows they have. Beside it: how many rows lie inside the
interval that the program gave them, which is meant to be 90 of 100. Takes a minute or two.

In h every description is fitted to every other row of its tables and forecasts the rest, in turn:
the median over fabrics of the root mean square of log(measured / forecast), what is typical of a
fit; then, fabrics alike, the share inside the intervals of this machine and their interval score
(validate/interval_score.h).
"""

import csv
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TABLES = HERE.parent / "replay" / "collectives"
BANDS = ((65536, "below 64 KiB"), (4 * 1048576, "to 4 MiB"), (math.inf, "above"))
OPERATIONS = ("allgather", "allreduce", "reducescatter")


def perlmutter(operations=OPERATIONS, nodes=(1, 2, 4, 8), gpus_per_node=(1, 2, 4)):
    found = []
    for path in sorted(TABLES.glob("perlmutter_*.csv")):
        operation, table_nodes, ranks = re.match(r"perlmutter_(\w+)_a100_(\d+)n(\d+)r",
                                                 path.name).groups()
        if (operation in operations and int(table_nodes) in nodes
                and int(ranks) // int(table_nodes) in gpus_per_node):
            found.append(path)
    return found


def h100(*letters):
    return [next(TABLES.glob(f"*nccltests309{letter}.csv")) for letter in letters]


def nic_rate(base):
    """Whether a description says what its NICs really carry (nic_rate_of in cluster.h)."""
    text = (HERE / "bases" / f"{base}.toml").read_text(encoding="utf-8")
    rates = []
    for key in ("nominal", "bandwidth"):
        number, unit = re.search(rf'^{key} = {{ value = "(\S+) (\S+)"', text, re.M).groups()
        rates.append(float(number) / (8 if unit == "Gbit/s" else 1))
    kind = re.search(r'^bandwidth = .* kind = "(\w+)"', text, re.M)[1]
    below = kind == "published" and rates[1] < rates[0]
    return "effective" if kind in ("measured", "fitted") or below else "nominal"


def experiments():
    """What is sought, a name, the description before the fit, tables to fit, tables to forecast."""
    for fitted, unseen in (((1, 2), (4, 8)), ((1, 2, 4), (8,)), ((4, 8), (2,)), ((8,), (2, 4))):
        yield ("w", "Perlmutter", "perlmutter-a100", perlmutter(nodes=fitted),
               perlmutter(nodes=unseen))
    yield "w", "H100", "hgx-h100-ndr", h100("a"), h100("e")
    yield "w", "H100", "hgx-h100-ndr", h100("e"), h100("a", "d")
    for fitted, unseen in (((4,), (1, 2)), ((1,), (2, 4)), ((2,), (1, 4)), ((1, 2), (4,)),
                           ((2, 4), (1,)), ((1, 4), (2,))):
        yield ("w", "GPUs a node", "perlmutter-a100",
               perlmutter(nodes=(2, 4, 8), gpus_per_node=fitted),
               perlmutter(nodes=(2, 4, 8), gpus_per_node=unseen))
    for one in OPERATIONS:
        for other in OPERATIONS:
            if one != other:
                yield "o", "Perlmutter", "perlmutter-a100", perlmutter((one,)), perlmutter((other,))
    one, several = perlmutter(nodes=(1,)), perlmutter(nodes=(2, 4, 8))
    yield "c", "one node", "perlmutter-a100", several, one
    yield "c", "several", "perlmutter-a100", one, several
    with open(TABLES / "tables.csv", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if (TABLES / row["table"]).exists():
                yield "u", nic_rate(row["cluster"]), row["cluster"], [], [TABLES / row["table"]]


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                            check=False)
    if result.returncode not in (0, 3):
        sys.exit(result.stderr.strip())


def layouts_of(description):
    """(fewest nodes, most nodes, GPUs of each) that were fitted."""
    return [tuple(map(int, found)) for found in
            re.findall(r"^\[\[calibration\.layouts\]\]\n"
                       r"nodes = \[(\d+), (\d+)\]\ngpus_per_node = (\d+)", description, re.M)]


def bands_of(description):
    """(end, low, high) of the bands of sizes that were fitted."""
    bands = tomllib.loads(description)["calibration"]["bands"]
    return [(float(band.get("below", "inf").split()[0]), band["low"], band["high"]) for band in bands]


def doublings(ranks, nodes, layouts):
    """To the nearest layout."""
    return min(max(0, math.log2(fewest / nodes), math.log2(nodes / most))
               + abs(math.log2(ranks / nodes / gpus)) for fewest, most, gpus in layouts)


def excesses(lambcast, folder, base, fitted, unseen, per_doubling):
    """(size, excess, inside its interval) of every row of the unseen tables."""
    mine, rows = HERE / "bases" / f"{base}.toml", folder / "rows.csv"
    bands = [(math.inf, 1, 1)]
    if fitted:
        base, mine = mine, folder / "mine.toml"
        run(lambcast, "calibrate", "--force", "--cluster", base, "-o", mine, *fitted)
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
                    excess /= math.sqrt(doublings(int(row["ranks"]), int(row["nodes"]),
                                                  layouts_of(description)))
                inside = float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"])
                yield size, excess, inside


def every_other_row(table, half, folder):
    """A table of half of its rows."""
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = [line for line in lines if line[0].isdigit()]
    part = folder / f"{half}_{table.name}"
    part.write_text("".join([line for line in lines if not line[0].isdigit()] + rows[half::2]),
                    encoding="utf-8")
    return part


def halves(lambcast, folder):
    """By fabric: (size, log(measured / forecast), inside, interval score) of rows held out."""
    fabrics = {}
    with open(TABLES / "tables.csv", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if (TABLES / row["table"]).exists():
                fabrics.setdefault(row["cluster"], []).append(TABLES / row["table"])
    mine, out = folder / "mine.toml", folder / "rows.csv"
    found = {}
    for fabric, tables in fabrics.items():
        for half in (0, 1):
            seen = [every_other_row(table, half, folder) for table in tables]
            run(lambcast, "calibrate", "--force", "--cluster", HERE / "bases" / f"{fabric}.toml",
                "-o", mine, *seen)
            for table in tables:
                run(lambcast, "validate", "--against", every_other_row(table, 1 - half, folder),
                    "--cluster", mine, "--rows", out)
                with open(out, encoding="utf-8") as text:
                    for row in csv.DictReader(text):
                        low, high, measured, forecast = (
                            math.log(float(row[f"{key}_us"]))
                            for key in ("low", "high", "measured", "forecast"))
                        score = high - low + 20 * (max(0, low - measured) + max(0, measured - high))
                        found.setdefault(fabric, []).append(
                            (int(row["size_bytes"]), measured - forecast, low <= measured <= high,
                             score))
    return found


def halves_line(found):
    line, below = f"{'h halves':<14}", 0
    for end, _ in BANDS:
        spreads, insides, scores = [], [], []
        for rows in found.values():
            band = [row for row in rows if below <= row[0] < end]
            if band:
                spreads.append(math.sqrt(sum(row[1] ** 2 for row in band) / len(band)))
                insides.append(sum(row[2] for row in band) / len(band))
                scores.append(sum(row[3] for row in band) / len(band))
        below = end
        line += (f"{statistics.median(spreads):>9.2f} ({statistics.mean(insides):>4.0%}, "
                 f"{statistics.mean(scores):.2f})")
    return line


def quantile(values, q):
    """Of (value, weight): below it lies that share of the weight."""
    left = q * sum(weight for _, weight in values) * (1 - 1e-9)
    for value, weight in sorted(values):
        left -= weight
        if left <= 0:
            return value
    return math.nan


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    lambcast = pathlib.Path(sys.argv[1]).resolve() / "lambcast"
    found = {}  # by query and name: the rows by description
    with tempfile.TemporaryDirectory() as folder:
        for sought, name, base, fitted, unseen in experiments():
            found.setdefault((sought, name), {}).setdefault(base, []).extend(
                excesses(lambcast, pathlib.Path(folder), base, fitted, unseen, sought == "w"))
        of_halves = halves(lambcast, pathlib.Path(folder))
    print(f"{'':<14}" + "".join(f"{name:>26}" for _, name in BANDS))
    for (sought, name), fabrics in found.items():
        line = f"{sought} {name:<12}"
        below = 0
        for end, _ in BANDS:
            band = [[row for row in rows if below <= row[0] < end] for rows in fabrics.values()]
            below = end
            off = [(excess, 1 / len(rows)) for rows in band for _, excess, _ in rows]
            covered = sum(inside for rows in band for _, _, inside in rows)
            line += f"{quantile(off, 0.9):>9.2f} ({covered:>4} of {len(off):>4})"
        print(line)
    print(halves_line(of_halves))
    return 0


if __name__ == "__main__":
    sys.exit(main())

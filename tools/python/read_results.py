#!/usr/bin/env python3
"""Reads a folder that a sweep wrote, cell by cell as in a notebook: read_results.py [FOLDER]

    lambcast sweep bert_large --out results
"""
# %% The rows: a DataFrame if pandas is installed, else a list of dicts.
import sys

import lambcast

folder = sys.argv[1] if len(sys.argv) > 1 else "results"
try:
    rows = lambcast.read_results(folder, frame=False)
except lambcast.Error as error:
    print(f"read_results.py: {error}", file=sys.stderr)
    sys.exit(error.code)
runs = [row for row in rows if row["status"] == "ok"]
print(f"{len(rows)} points, {len(runs)} of them run")

# %% Which point gains most by compression?
compressed = [row for row in runs if row["optimizer"] != row["baseline_optimizer"]]
if compressed:
    best = max(compressed, key=lambda row: row["speedup_vs_baseline"])
    print(f"{best['optimizer']} on {best['gpus']} GPUs of {best['cluster']}, batch {best['global_batch']}: "
          f"{best['speedup_vs_baseline']:.2f}x ({best['speedup_low']:.2f} to {best['speedup_high']:.2f}x)")

# %% The same in pandas, and where the time of a step goes (`lambcast report FOLDER --parts`).
if lambcast.pandas is not None:
    frame = lambcast.read_results(folder)
    print(frame[frame.status == "ok"].pivot_table(
        index="gpus", columns="optimizer", values="run_samples_per_s", aggfunc="max").round(0))

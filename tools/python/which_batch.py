#!/usr/bin/env python3
"""From which batch on does compression no longer pay? A sweep and a question from Python."""
import lambcast

run = {"model": "bert-large", "cluster": "commodity-10gbe", "optimizer": "onebit_lamb", "micro_batch": 64,
       "steps": 5993, "freeze_step": "20%", "gpus": 32}
rows = lambcast.sweep(**run, global_batch=[2048, 8192, 32768, 131072], frame=False)
print("batch    speed-up  within          a run")
for row in rows:
    print(f"{row['global_batch']:<8} {row['speedup_vs_baseline']:.2f}x     "
          f"{row['speedup_low']:.2f} to {row['speedup_high']:.2f}x  {row['run_time_s'] / 3600:6.1f} h")

# The reverse question: at which value does the speed-up exceed 1.2?
print(lambcast.solve("grad_accum", "speedup=1.2", **run)["answer"])

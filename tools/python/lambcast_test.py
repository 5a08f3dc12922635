#!/usr/bin/env python3
"""The package gives what the command line gives: the program to compare with is the one that LAMBCAST names."""

import concurrent.futures
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import lambcast

PROGRAM = os.environ["LAMBCAST"]
RUN = {"model": "bert-large", "cluster": "commodity-10gbe", "gpus": 32, "optimizer": "onebit_lamb",
       "micro_batch": 16, "steps": 1000, "freeze_step": "20%"}
FLAGS = ["--model", "bert-large", "--cluster", "commodity-10gbe", "--gpus", "32", "--optimizer",
         "onebit_lamb", "--micro-batch", "16", "--steps", "1000", "--freeze-step", "20%"]


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


class Package(unittest.TestCase):
    def test_simulate_has_the_fields_of_the_command(self):
        expected = json.loads(printed("simulate", *FLAGS, "--format", "json"))
        self.assertEqual(lambcast.simulate(**RUN), expected)
        self.assertGreater(expected["run"]["speedup_vs_baseline"], 0)

    def test_switches_settings_and_what_is_not_said(self):
        expected = printed("simulate", *FLAGS, "--cuda-aware", "--set", "cluster.nic.bandwidth=5Gbit/s",
                           "--format", "json")
        self.assertEqual(lambcast.simulate(**RUN, cuda_aware=True, seq_len=None, sequence_parallel=False,
                                           **{"cluster.nic.bandwidth": "5Gbit/s"}), json.loads(expected))

    def test_collective(self):
        expected = printed("collective", "--op", "all_gather", "--cluster", "commodity-10gbe", "--gpus",
                           "16", "-b", "1M", "-e", "16M", "-f", "4", "--format", "json")
        found = lambcast.collective(op="all_gather", cluster="commodity-10gbe", gpus=16, b="1M", e="16M", f=4)
        self.assertEqual(found, json.loads(expected))
        self.assertEqual([row["size_bytes"] for row in found["results"]], [2**20, 2**22, 2**24])

    def test_questions_have_the_fields_of_their_commands(self):
        plain = [word for word in FLAGS if word not in ("--freeze-step", "20%")]
        asked = {key: value for key, value in RUN.items() if key != "freeze_step"}
        clusters = ["commodity-10gbe", "aws-p4d"]
        of_any = {key: value for key, value in RUN.items() if key != "cluster"}
        words = [word for word in FLAGS if word not in ("--cluster", "commodity-10gbe")]
        for found, command in [
                (lambcast.advise(**RUN), ["advise", *FLAGS]),
                (lambcast.advise(**RUN, seq_len=[128, 512]), ["advise", *FLAGS, "--list", "seq_len=128,512"]),
                (lambcast.compare(*clusters, **of_any), ["compare", *clusters, *words]),
                (lambcast.compare(clusters=clusters, **of_any), ["compare", "--clusters", ",".join(clusters), *words]),
                (lambcast.sensitivity(**RUN), ["sensitivity", *FLAGS]),
                (lambcast.solve("freeze_step", "run_time=20min", low=10, high=900, **asked),
                 ["solve", "freeze_step", "--for", "run_time=20min", "--from", "10", "--to", "900", *plain])]:
            self.assertEqual(found, json.loads(printed(*command, "--format", "json")))

    def test_that_no_value_gives_it_is_an_answer(self):
        asked = dict(RUN, global_batch=4096)
        self.assertEqual(lambcast.solve("cluster.nic.bandwidth", "speedup=100", **asked)["kind"], "never")
        with self.assertRaisesRegex(lambcast.UsageError, "did you mean"):
            lambcast.solve("gpus", "speedup=1.1", **dict(asked, model="bert-larg"))
        with self.assertRaisesRegex(lambcast.UsageError, "is not METRIC=VALUE"):
            lambcast.solve("gpus", "fast", **asked)

    def test_sweep_in_both_forms(self):
        axes = dict(RUN, gpus="4..32", global_batch=[1024, 4096])
        rows = lambcast.sweep(**axes, frame=False)
        expected = printed("sweep", *[word for word in FLAGS if word not in ("--gpus", "32")],
                           "--scan", "gpus=4..32", "--list", "global_batch=1024,4096", "--format", "csv")
        table = list(csv.DictReader(expected.splitlines()))
        self.assertEqual(len(rows), 8)
        self.assertEqual([list(row) for row in rows], [list(row) for row in table])
        for row, texts in zip(rows, table):
            self.assertEqual(row["run_time_s"], float(texts["run_time_s"]))
            self.assertIs(type(row["gpus"]), int)
            self.assertIs(row["fits"], texts["fits"] == "true")
            self.assertIsNone(row["uniform_step_time_us"])
        long = lambcast.sweep(**axes, frame=False, long=True)
        self.assertEqual([row["stage"] for row in long], ["warmup", "compression"] * 8)
        for row, of in zip(rows, long[::2]):
            self.assertEqual((of["gpus"], of["step_time_us"]), (row["gpus"], row["warmup_step_time_us"]))
            self.assertNotIn("warmup_step_time_us", of)
        if lambcast.pandas is None:
            self.assertEqual(lambcast.sweep(**axes), rows)
            with self.assertRaisesRegex(lambcast.Error, "pandas is not installed"):
                lambcast.sweep(**axes, frame=True)
        else:
            frame = lambcast.sweep(**axes)
            filled = [key for key in rows[0] if any(row[key] is not None for row in rows)]
            self.assertEqual(list(frame.columns), filled)
            self.assertEqual(list(frame.run_time_s), [row["run_time_s"] for row in rows])

    def test_a_folder_is_kept_and_gone_on_with(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            rows = lambcast.sweep("exchanges", out=out, frame=False)
            results = os.path.join(out, "results.csv")
            with open(results, "rb") as file:
                whole = file.read()
            os.truncate(results, len(whole) // 2)
            self.assertEqual(lambcast.sweep("exchanges", out=out, frame=False), rows)
            with open(results, "rb") as file:
                self.assertEqual(file.read(), whole)
            self.assertEqual(lambcast.read_results(out, frame=False), rows)

    def test_errors_are_the_line_of_the_program(self):
        for call, line in [(lambda: lambcast.simulate(**dict(RUN, model="bert-larg")), "did you mean 'bert-large'"),
                           (lambda: lambcast.simulate(modle="bert-large"), "modle"),
                           (lambda: lambcast.collective(cluster="absent.toml", gpus=4), "absent.toml"),
                           (lambda: lambcast.sweep("absent.toml"), "absent.toml: does not exist")]:
            with self.assertRaises(lambcast.UsageError) as raised:
                call()
            self.assertIn(line, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))
            self.assertEqual(raised.exception.code, 2)
            self.assertIsInstance(raised.exception, ValueError)

    def test_notes_are_warnings(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            lambcast.sweep(model="mixtral-8x7b", cluster="hgx-h100-ndr", micro_batch=1, seq_len=128,
                           precision="fp32", optimizer="adamw", steps=100, gpus=[64, 128],
                           frame=False)
        self.assertEqual([warning.category for warning in told], [UserWarning])
        self.assertIn("experts-replicated", str(told[0].message))

    def test_a_run_of_phases(self):
        asked = {"mtbf": "12 h", "checkpoint_every": 100, "startup_time": "5 min"}
        then = "seq_len=512 global_batch=1024 steps=100"
        expected = printed("simulate", *FLAGS, "--mtbf", "12 h", "--checkpoint-every", "100", "--startup-time", "5 min",
                           "--then", then, "--format", "json")
        self.assertEqual(lambcast.simulate(**RUN, **asked, then=[then]), json.loads(expected))
        self.assertEqual(lambcast.simulate(**RUN, **asked, then=then), json.loads(expected))
        with self.assertRaisesRegex(lambcast.UsageError, "^checkpoint_every: 'often' is not a whole number$"):
            lambcast.simulate(**RUN, checkpoint_every="often")

    def test_layouts(self):
        asked = {"model": "llama2-7b", "cluster": "dgx-a100-80g", "gpus": 16, "global_batch": 64}
        expected = printed("plan", "--model", "llama2-7b", "--cluster", "dgx-a100-80g", "--gpus", "16",
                           "--global-batch", "64", "--best", "3", "--format", "json")
        self.assertEqual(lambcast.plan(**asked, best=3), json.loads(expected))
        with self.assertRaisesRegex(lambcast.UsageError, r"best: 0 is out of range \(allowed: 1 to 1000\)"):
            lambcast.plan(**asked, best=0)

    def test_collectives_at_the_same_time(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as jobs:
            jobs.write('[[jobs]]\nop = "all_reduce"\nsize = "64 MiB"\ngpus = 8\n')
            jobs.flush()
            expected = printed("collective", "--jobs", jobs.name, "--cluster", "dgx-a100-80g", "--format", "json")
            self.assertEqual(lambcast.collective(jobs=jobs.name, cluster="dgx-a100-80g"), json.loads(expected))

    def test_a_run_that_does_not_fit(self):
        found = lambcast.simulate(model="llama2-13b", cluster="commodity-10gbe", gpus=32, optimizer="lamb",
                                  micro_batch=4, grad_accum=8, steps=100)
        expected = printed("simulate", "--model", "llama2-13b", "--cluster", "commodity-10gbe", "--gpus", "32",
                           "--optimizer", "lamb", "--micro-batch", "4", "--grad-accum", "8", "--steps", "100",
                           "--format", "json")
        self.assertEqual(found, json.loads(expected))
        self.assertIn("layout-that-fits", [finding["code"] for finding in found["findings"]])

    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            folders = [os.path.join(folder, name) for name in ("lamb", "onebit")]
            for out, optimizer in zip(folders, ("lamb", "onebit_lamb")):
                lambcast.sweep(**dict(RUN, gpus=[8, 16], optimizer=optimizer), out=out, frame=False)
            self.assertEqual(lambcast.compare(*folders), json.loads(printed("compare", *folders, "--format", "json")))
            with self.assertRaisesRegex(lambcast.UsageError, "take no other arguments"):
                lambcast.compare(*folders, gpus=8)

    def test_threads_compute_at_the_same_time(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda gpus: lambcast.simulate(**dict(RUN, gpus=gpus)), [8, 16, 32, 64] * 4))
        for gpus, answer in zip([8, 16, 32, 64] * 4, found):
            self.assertEqual(answer, lambcast.simulate(**dict(RUN, gpus=gpus)))

    def test_an_interrupt_ends_what_takes_long(self):
        for call in ["sweep('bert_large', frame=False, **{'cluster.nic.bandwidth': '1Gbit/s:2000Gbit/s:1'})",
                     "collective(op='all_to_all', cluster='hgx-h100-ndr', gpus=2048, symmetry='off', network='flow')"]:
            code = ("import lambcast, os, signal, sys, threading, time\n"
                    "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                    f"begun = time.monotonic()\ntry:\n    lambcast.{call}\n"
                    "except KeyboardInterrupt:\n    os._exit(42 if time.monotonic() - begun < 10 else 1)\n")
            self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 42, call)

    def test_version(self):
        self.assertTrue(printed("--version").startswith(f"lambcast {lambcast.__version__} ("))
        with self.assertRaises(AttributeError):
            getattr(lambcast, "absent")

    def test_examples(self):
        def run(*words):
            return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
        text = run("which_batch.py")
        self.assertRegex(text, r"131072 +[0-9.]+x")
        self.assertRegex(text, r"\n.*grad_accum")
        with tempfile.TemporaryDirectory() as folder:
            lambcast.sweep("bert_large", out=folder + "/results", frame=False, gpus=[16, 64])
            text = run("read_results.py", folder + "/results")
        self.assertRegex(text, r"^\d+ points, \d+ of them run\n\w+ on \d+ GPUs of [\w-]+, batch \d+: [0-9.]+x")
        self.assertEqual("gpus" in text, lambcast.pandas is not None)

    def test_no_results_are_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for state in ["does not exist", "is empty"]:
                with self.assertRaisesRegex(lambcast.UsageError, f"results.csv: {state} .allowed: a folder that"):
                    lambcast.read_results(folder)
                example = subprocess.run([sys.executable, "read_results.py", folder], capture_output=True, text=True)
                self.assertEqual(example.returncode, 2)
                self.assertRegex(example.stderr, rf"^read_results.py: .*results.csv: {state} .*\n$")
                open(os.path.join(folder, "results.csv"), "w", encoding="utf-8").close()


if __name__ == "__main__":
    unittest.main()

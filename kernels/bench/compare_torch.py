#!/usr/bin/env python3
"""Our compression kernels against the same algorithm in PyTorch tensor operations.

    compare_torch.py --bench build/kernels/kernels_bench [--elements N] [--ranks 8]
    compare_torch.py --check

Both run on the same GPU, one after the other: the PyTorch side here, one operation after the other
in the order DeepSpeed 0.15.4 applies them (runtime/comm/nccl.py and fp16/onebit/adam.py), ours
through kernels_bench. The exchange is left out on both sides: the received signs are this rank's
own, n times over.

DeepSpeed packs and unpacks with cupy, and so does this where cupy is installed. Elsewhere PyTorch
has no such operation: two of its own stand in for each, which cost about three times the memory
traffic. Their time is therefore measured apart, and without cupy the factor that counts is the one
that gives DeepSpeed's packing for nothing while ours is counted.

--check compares one step of the PyTorch side with NumPy on the CPU: that what is timed is the
algorithm, and packs as it must.

Wants a CUDA PyTorch; exit code 4 when that or the GPU is missing, 3 below the factor wanted or when
the check fails.
"""

import argparse
import csv
import math
import statistics
import subprocess
import sys

BERT_LARGE = 335_184_706
WANTED_FACTOR = 5.0
# The compression path of the fused kernels, and one step of 1-bit Adam, whose update decodes.
OUR_PATH = ("onebit_worker_momentum", "onebit_server_n8", "onebit_decode")
OUR_STEP = ("onebit_worker_momentum", "onebit_server_n8", "onebit_adam_step")


def signs_of(x):
    """+1 where x >= 0, else -1, by way of the bool that is packed."""
    return x.sign().add_(1).bool().float().add_(-0.5).mul_(2.0)


class TorchPacking:
    """Eight bools to a byte, the first in the most significant bit, and back to 0 and 1."""

    name = "PyTorch operations"
    # Eight bytes of 0 or 1, read as one integer and multiplied by this, put byte i in bit 63 - i,
    # without carries.
    GATHER = 0x8040201008040201 - 2**64

    def __init__(self, torch, device):
        self.torch = torch
        self.shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)

    def pack(self, bits):
        gathered = bits.view(self.torch.uint8).view(self.torch.int64) * self.GATHER
        return gathered.view(self.torch.uint8).view(-1, 8)[:, 7].contiguous()

    def unpack(self, packed):
        return packed.unsqueeze(-1).bitwise_right_shift(self.shifts).bitwise_and_(1).view(-1)


class CupyPacking:
    name = "cupy"

    def __init__(self, torch, cupy):
        self.torch, self.cupy = torch, cupy

    def pack(self, bits):
        bits = bits.view(self.torch.uint8)
        return self.torch.from_dlpack(self.cupy.packbits(self.cupy.from_dlpack(bits)))

    def unpack(self, packed):
        return self.torch.from_dlpack(self.cupy.unpackbits(self.cupy.from_dlpack(packed)))


class Stopwatch:
    """Device time of the calls made through it."""

    def __init__(self, torch):
        self.torch, self.pairs = torch, []

    def __call__(self, function, *arguments):
        start, stop = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        result = function(*arguments)
        stop.record()
        self.pairs.append((start, stop))
        return result

    def us(self):
        self.torch.cuda.synchronize()
        return sum(start.elapsed_time(stop) for start, stop in self.pairs) * 1e3


def torch_path(torch, state, ranks, packing, timed):
    """Momentum update, worker phase, server phase and decode of one rank; no exchange."""
    m, g = state["m"], state["g"]
    m.mul_(0.9).add_(g, alpha=0.1).mul_(1.0001)
    buffer = m
    buffer.add_(state["worker_error"])
    worker_scale = torch.norm(buffer) / math.sqrt(buffer.numel())
    state["worker_error"].copy_(buffer - worker_scale * signs_of(buffer))
    packed = timed(packing.pack, buffer.sign().add_(1).bool())

    received = packed.view(ranks, -1)[0].repeat(ranks, 1)
    scales = worker_scale.expand(ranks, 1) * (1.0 / ranks)
    y = timed(packing.unpack, received.reshape(-1)).float().add_(-0.5).mul_(2.0).view(ranks, -1)
    y = y.mul_(scales).sum(0)
    y.add_(state["server_error"])
    server_scale = torch.norm(y) / math.sqrt(y.numel())
    state["server_error"].copy_(y - server_scale * signs_of(y))
    served = timed(packing.pack, y.sign().add_(1).bool())

    gathered = served.repeat(ranks)
    decoded = timed(packing.unpack, gathered).float().add_(-0.5).mul_(2.0).view(ranks, -1)
    m.copy_(decoded.mul_(server_scale.expand(ranks, 1)).flatten())


def torch_update(state, lr=1e-3, eps=1e-8, weight_decay=0.01):
    """What 1-bit Adam does with the averaged momentum."""
    update = state["m"] / (state["v"].sqrt() + eps)
    update += weight_decay * state["p"]
    state["p"].add_(-lr * update)


def new_state(torch, elements, ranks, device):
    divider = ranks * math.lcm(ranks, 8)
    padded = -(-elements // divider) * divider
    state = {name: torch.rand(padded, device=device) - 0.5
             for name in ("p", "m", "g", "worker_error")}
    state["v"] = torch.rand(padded, device=device) + 0.1
    state["server_error"] = torch.rand(padded // ranks, device=device) - 0.5
    return state


def time_torch_us(torch, packing, elements, ranks, iterations=10, warmup=3):
    """Medians: the compression path, the packing and unpacking in it, the update."""
    state = new_state(torch, elements, ranks, "cuda")
    samples = []
    for _ in range(warmup + iterations):
        path, packed, update = (Stopwatch(torch) for _ in range(3))
        path(torch_path, torch, state, ranks, packing, packed)
        update(torch_update, state)
        samples.append((path.us(), packed.us(), update.us()))
    del state
    torch.cuda.empty_cache()
    return tuple(statistics.median(column) for column in zip(*samples[warmup:]))


def time_ours_us(bench, elements):
    """The compression path and the step."""
    result = subprocess.run([bench, "--elements", str(elements), "--csv"], capture_output=True,
                            text=True, check=False)
    if result.returncode not in (0, 3):
        sys.exit(f"{bench} failed: {result.stderr.strip()}")
    rows = {row["kernel"]: float(row["time_us"])
            for row in csv.DictReader(result.stdout.splitlines())}
    return tuple(sum(rows[name] for name in names) for names in (OUR_PATH, OUR_STEP))


def packing_of(torch):
    try:
        import cupy
    except ImportError:
        return TorchPacking(torch, "cuda")
    return CupyPacking(torch, cupy)


def check(torch, elements=100_000, ranks=8):
    """One step against NumPy in double precision; returns whether all agree."""
    import numpy

    packing = TorchPacking(torch, "cpu")
    state = new_state(torch, elements, ranks, "cpu")
    before = {name: x.numpy().astype(float) for name, x in state.items()}
    torch_path(torch, state, ranks, packing, lambda function, *arguments: function(*arguments))

    def compress(c):
        scale, signs = math.sqrt(numpy.mean(c * c)), numpy.where(c < 0, -1.0, 1.0)
        return scale, signs, c - scale * signs

    c = (0.9 * before["m"] + 0.1 * before["g"]) * 1.0001 + before["worker_error"]
    worker_scale, signs, worker_error = compress(c)
    mean = worker_scale * signs[: c.size // ranks]
    server_scale, served, server_error = compress(mean + before["server_error"])
    wanted = {"worker_error": worker_error, "server_error": server_error,
              "m": numpy.tile(server_scale * served, ranks)}
    bits = torch.rand(4096) > 0.5
    packed = packing.pack(bits)
    good = bool((packed.numpy() == numpy.packbits(bits.numpy())).all())
    good &= bool((packing.unpack(packed).numpy() == bits.numpy()).all())
    for name, x in wanted.items():
        # A value within rounding of zero may have the other sign.
        wrong = int((abs(state[name].numpy() - x) > 1e-5).sum())
        print(f"{name}: {wrong} of {x.size} differ by more than 1e-5")
        good &= wrong <= x.size // 10_000
    print(f"PyTorch {torch.__version__}: {'agrees' if good else 'DIFFERS'}")
    return good


def report(packing, theirs, packed, their_update, ours, our_step):
    """Prints the comparison; returns the factor that counts."""
    factor, free_packing = theirs / ours, (theirs - packed) / ours
    print(f"compression path: PyTorch operations {theirs:.0f} us, {packed:.0f} of them packing and "
          f"unpacking by {packing}; fused kernels {ours:.0f} us")
    print(f"factor {factor:.1f}, without their packing {free_packing:.1f}; "
          f"{'the first' if packing == CupyPacking.name else 'the second'} counts")
    print(f"with the update of 1-bit Adam: {theirs + their_update:.0f} us, "
          f"{our_step:.0f} us, factor {(theirs + their_update) / our_step:.1f}")
    return factor if packing == CupyPacking.name else free_packing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--bench", help="the kernels_bench program")
    what.add_argument("--check", action="store_true", help="the PyTorch side against NumPy, no GPU")
    parser.add_argument("--elements", type=int, default=BERT_LARGE)
    parser.add_argument("--ranks", type=int, default=8, choices=[8],
                        help="kernels_bench serves 8 ranks")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed", file=sys.stderr)
        return 4
    if arguments.check:
        return 0 if check(torch) else 3
    if not torch.cuda.is_available():
        print("PyTorch finds no CUDA GPU", file=sys.stderr)
        return 4
    packing = packing_of(torch)
    theirs = time_torch_us(torch, packing, arguments.elements, arguments.ranks)
    ours = time_ours_us(arguments.bench, arguments.elements)
    print(f"GPU {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{arguments.elements} elements, {arguments.ranks} ranks")
    return 0 if report(packing.name, *theirs, *ours) >= WANTED_FACTOR else 3


if __name__ == "__main__":
    sys.exit(main())

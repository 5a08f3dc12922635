#!/usr/bin/env python3
"""Our compression kernels against the same algorithm in PyTorch tensor operations.

    compare_torch.py --bench build/kernels/kernels_bench [--elements N] [--ranks 8]

Both run on the same GPU, one after the other: the PyTorch side here, one operation after the other
in the order DeepSpeed 0.15.4 applies them (runtime/comm/nccl.py), ours through kernels_bench.
The exchange is left out on both sides: the received signs are this rank's own, n times over.
Wants a CUDA PyTorch; exit code 4 when that or the GPU is missing, 3 below the factor wanted.
"""

import argparse
import csv
import math
import subprocess
import sys

BERT_LARGE = 335_184_706
WANTED_FACTOR = 5.0
# What one step of the compression path is made of, on our side.
OURS = ("onebit_worker_momentum", "onebit_server_n8", "onebit_decode")


def signs_of(x):
    """+1 where x >= 0, else -1, by way of the bool that is packed."""
    return x.sign().add_(1).bool().float().add_(-0.5).mul_(2.0)


def pack(torch, bits):
    """Eight bools to a byte, the first in the most significant bit."""
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=bits.device)
    return (bits.view(-1, 8).to(torch.uint8) * weights).sum(1, dtype=torch.uint8)


def unpack(torch, packed):
    shifts = torch.tensor([7, 6, 5, 4, 3, 2, 1, 0], dtype=torch.uint8, device=packed.device)
    return packed.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and(1).reshape(-1)


def torch_path(torch, state, ranks):
    """Momentum update, worker phase, server phase and decode of one rank; no exchange."""
    m, g = state["m"], state["g"]
    m.mul_(0.9).add_(g, alpha=0.1).mul_(1.0001)
    buffer = m
    buffer.add_(state["worker_error"])
    worker_scale = torch.norm(buffer) / math.sqrt(buffer.numel())
    state["worker_error"].copy_(buffer - worker_scale * signs_of(buffer))
    packed = pack(torch, buffer.sign().add_(1).bool())

    received = packed.view(ranks, -1)[0].repeat(ranks, 1)
    scales = worker_scale.expand(ranks, 1) * (1.0 / ranks)
    y = unpack(torch, received.reshape(-1)).float().add_(-0.5).mul_(2.0).view(ranks, -1)
    y = y.mul_(scales).sum(0)
    y.add_(state["server_error"])
    server_scale = torch.norm(y) / math.sqrt(y.numel())
    state["server_error"].copy_(y - server_scale * signs_of(y))
    served = pack(torch, y.sign().add_(1).bool())

    gathered = served.repeat(ranks)
    decoded = unpack(torch, gathered).float().add_(-0.5).mul_(2.0).view(ranks, -1)
    m.copy_(decoded.mul_(server_scale.expand(ranks, 1)).flatten())


def time_torch_us(torch, elements, ranks, iterations=10, warmup=3):
    divider = ranks * math.lcm(ranks, 8)
    padded = -(-elements // divider) * divider
    state = {name: torch.rand(padded, device="cuda") - 0.5 for name in ("m", "g", "worker_error")}
    state["server_error"] = torch.rand(padded // ranks, device="cuda") - 0.5
    samples = []
    for i in range(warmup + iterations):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch_path(torch, state, ranks)
        stop.record()
        stop.synchronize()
        if i >= warmup:
            samples.append(start.elapsed_time(stop) * 1e3)
    del state
    torch.cuda.empty_cache()
    return sorted(samples)[len(samples) // 2]


def time_ours_us(bench, elements):
    result = subprocess.run([bench, "--elements", str(elements), "--csv"], capture_output=True,
                            text=True, check=False)
    if result.returncode not in (0, 3):
        sys.exit(f"{bench} failed: {result.stderr.strip()}")
    rows = {row["kernel"]: float(row["time_us"])
            for row in csv.DictReader(result.stdout.splitlines())}
    return sum(rows[name] for name in OURS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the kernels_bench program")
    parser.add_argument("--elements", type=int, default=BERT_LARGE)
    parser.add_argument("--ranks", type=int, default=8, choices=[8],
                        help="kernels_bench serves 8 ranks")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed", file=sys.stderr)
        return 4
    if not torch.cuda.is_available():
        print("PyTorch finds no CUDA GPU", file=sys.stderr)
        return 4
    theirs = time_torch_us(torch, arguments.elements, arguments.ranks)
    ours = time_ours_us(arguments.bench, arguments.elements)
    print(f"GPU {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{arguments.elements} elements, {arguments.ranks} ranks")
    print(f"PyTorch operations {theirs:.0f} us, fused kernels {ours:.0f} us, "
          f"factor {theirs / ours:.1f}")
    return 0 if theirs / ours >= WANTED_FACTOR else 3


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Trains processes of the PyTorch package and compares their weights, step by step, with the emulated
world on the gradients that their optimizers saw.

  training_test.py REPLAY LIBRARIES RANKS [TOLERANCE [DEVICE]]

REPLAY is emulated_replay, LIBRARIES the folder of the library to test. The weights must agree within
TOLERANCE times their root mean square (0: to the bit), where sums are rounded otherwise within 1e-6
or more. DEVICE is cpu (the default), over gloo, or cuda, over NCCL; ranks share a GPU where there are
more of them than GPUs. Exit code 77: no PyTorch, one without gloo, or no GPU.
"""

import csv
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.distributed as dist
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-torch)")
    sys.exit(77)
if not dist.is_available() or not dist.is_gloo_available():
    print("skipped: this PyTorch has no gloo")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import refused  # noqa: E402 (in the folder of this file)
import skipped  # noqa: E402
import unseen_rows  # noqa: E402

STEPS = 30
LAMB = dict(optimizer="OneBitLamb", options=dict(freeze_step=10), lr=0.02)
ADAM = dict(optimizer="OneBitAdam", options=dict(freeze_step=10), lr=0.01)
ZERO_ONE = dict(optimizer="ZeroOneAdam", lr=0.01, options=dict(
    var_freeze_step=12, var_update_scaler=3, local_step_scaler=5, local_step_clipper=4))
CASES = {
    "1-bit LAMB": LAMB,
    "1-bit LAMB with a mask and tensors that never freeze": {**LAMB, "mask": 1, "non_freeze": 1},
    "1-bit LAMB, clipped, loss scaled": {**LAMB, "max_grad_norm": 0.3, "loss_scale": 1024.0},
    "1-bit LAMB through a checkpoint": {**LAMB, "resume_at": 20},
    "1-bit LAMB in bf16, gradients that overflow": {
        **LAMB, "sixteen": "bfloat16", "overflow": (4, 17)},
    "1-bit LAMB in fp16 with scaled loss, clipped, gradients that overflow": {
        **LAMB, "sixteen": "float16", "loss_scale": 1024.0, "max_grad_norm": 0.3,
        "overflow": (4, 17)},
    "1-bit LAMB of a model part fp32, part bf16, through a checkpoint": {
        **LAMB, "sixteen": "bfloat16", "mixed": 1, "resume_at": 20},
    "1-bit Adam in fp16 under a GradScaler": {**ADAM, "sixteen": "float16", "scaler": 1024.0,
                                              "overflow": (4, 19)},
    "1-bit Adam with a mask and a group that never freezes": {**ADAM, "mask": 1, "non_freeze": 1},
    "1-bit Adam through a checkpoint, gradients that overflow": {
        **ADAM, "resume_at": 17, "overflow": (4, 19)},
    "1-bit Adam, clipped": {**ADAM, "max_grad_norm": 0.3},
    "0/1 Adam": ZERO_ONE,
    "0/1 Adam with a mask": {**ZERO_ONE, "mask": 1},
    "0/1 Adam in bf16 through a checkpoint between two synchronisations": {
        **ZERO_ONE, "sixteen": "bfloat16", "resume_at": 23},
}


def flowers():
    with open(os.path.join(HERE, "..", "emulated_world", "iris.csv"), newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    names = sorted({row["species"] for row in rows})
    lengths = torch.tensor([[float(row[key]) for key in row if key != "species"] for row in rows])
    return ((lengths - lengths.mean(0)) / lengths.std(0),
            torch.tensor([names.index(row["species"]) for row in rows]))


class InFloat(torch.nn.Linear):
    """Weights in 16 bits, products in fp32: PyTorch 1.13 has no products of fp16 on a CPU."""

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.float(), self.bias.float())


def network(case):
    torch.manual_seed(1936)
    model = torch.nn.Sequential(InFloat(4, 16), torch.nn.Tanh(), InFloat(16, 3))
    if "sixteen" in case:
        model.to(getattr(torch, case["sixteen"]))
    if "mixed" in case:  # as where LayerNorm stays in fp32
        model[0].bias.data = model[0].bias.data.float()
    return model


def groups_of(case, model):
    """Weights decay; biases do not, learn faster, and never freeze where the case says so."""
    weights, biases = [model[0].weight, model[2].weight], [model[0].bias, model[2].bias]
    first = dict(params=weights, weight_decay=0.01)
    second = dict(params=biases, weight_decay=0.0, lr=2 * case["lr"])
    if "non_freeze" in case:
        second["non_freeze"] = True
    if "mask" not in case:
        return [first, second]
    mask = torch.ones_like(weights[0])
    mask[:, 1] = 0  # a length of the flowers that the network shall not learn from
    return [dict(first, params=weights[:1], exp_avg_mask=mask), dict(first, params=weights[1:]),
            second]


def build(case, model):
    import lambcast.torch as lambcast
    kind = getattr(lambcast, case["optimizer"])
    optimizer = kind(groups_of(case, model), lr=case["lr"], betas=(0.9, 0.99),
                     max_grad_norm=case.get("max_grad_norm", 0.0), **case["options"])
    optimizer.loss_scale = case.get("loss_scale", 1.0)
    return optimizer


def loss_scale(case):
    return case.get("scaler", case.get("loss_scale", 1.0))


def step(optimizer, case):
    """Under a GradScaler: what its step() does around that of an optimizer that leaves it to it."""
    if "scaler" not in case:
        return optimizer.step()
    assert optimizer._step_supports_amp_scaling
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(case["scaler"]), torch.zeros(1)
    optimizer.step()
    del optimizer.grad_scale, optimizer.found_inf


def in_parallel(optimizer, model, case):
    import lambcast.torch as lambcast
    if "sixteen" in case:  # gloo of PyTorch 1.13 does not add bf16, and rounds fp16 its own way
        return model
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    parallel.register_comm_hook(optimizer, lambcast.averaging_hook)
    return parallel


def average_by_hand(optimizer, model):
    for p in model.parameters():
        mean = p.grad.float()
        dist.all_reduce(mean)
        p.grad.copy_(mean / dist.get_world_size())


def flat(tensors):
    return torch.cat([t.detach().float().reshape(-1) for t in tensors])


def train(case, folder):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    lengths, species = (t[rank::ranks] for t in flowers())
    model = network(case)
    optimizer = build(case, model)
    order = [p for f in optimizer.flats for p in f.parameters]
    if rank == 0:
        describe(case, optimizer, folder)
    parallel = in_parallel(optimizer, model, case)
    gradients, weights, rates = [], [], []
    for k in range(STEPS):
        if case.get("resume_at") == k:
            path = f"{folder}/saved{rank}.pt"
            torch.save((model.state_dict(), optimizer.state_dict()), path)
            model = network(case)
            model_state, state = torch.load(path)
            optimizer = build(case, model)
            model.load_state_dict(model_state)
            optimizer.load_state_dict(state)
            order = [p for f in optimizer.flats for p in f.parameters]
            parallel = in_parallel(optimizer, model, case)
        rate = case["lr"] * (1 - k / STEPS)
        for group, times in zip(optimizer.param_groups, lr_scales(case)):
            group["lr"] = rate * times
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(parallel(lengths), species)
        (loss * loss_scale(case)).backward()
        if parallel is model and optimizer.averages_gradients:
            average_by_hand(optimizer, model)
        if k in case.get("overflow", ()) and (rank == 1 or optimizer.averages_gradients):
            order[0].grad[0] = float("inf")
        gradients.append(flat([p.grad for p in order]) / loss_scale(case))
        step(optimizer, case)
        assert optimizer.overflow == (k in case.get("overflow", ())), f"step {k}"
        weights.append(torch.cat([f.p for f in optimizer.flats]).clone())
        read, masters = flat(order), weights[-1].split([p.numel() for p in order])
        rounded = torch.cat([m.to(p.dtype).float() for m, p in zip(masters, order)])
        assert torch.equal(read, rounded), f"step {k}"
        rates.append(rate)
    # No step has made an fp32 copy of a gradient in 16 bits.
    assert all(f.arrived.dtype == torch.float32 or f.full is None for f in optimizer.flats)
    for name, steps in (("gradients", gradients), ("own", weights)):
        torch.stack(steps).cpu().numpy().tofile(f"{folder}/{name}{rank}.f32")
    torch.tensor(rates, dtype=torch.float64).cpu().numpy().tofile(f"{folder}/rates.f64")


def lr_scales(case):
    return [1, 1, 2] if "mask" in case else [1, 2]


def describe(case, optimizer, folder):
    """The problem as the emulated world takes it: tensors as they travel."""
    lines = {case["optimizer"]: [], "ranks": [dist.get_world_size()], "beta1": [0.9],
             "beta2": [0.99], "max_grad_norm": [case.get("max_grad_norm", 0.0)],
             **{key: [value] for key, value in case["options"].items()}}
    keys = ("sizes", "lr_scale", "weight_decay", "non_freeze")
    lines.update({key: [] for key in keys})
    for f in optimizer.flats:
        whole = case["optimizer"] != "OneBitLamb"  # a group travels as one tensor
        sizes = [f.elements] if whole else f.sizes
        for size, group in zip(sizes, f.owners):
            values = (size, group["lr"] / case["lr"], group["weight_decay"], int(f.never_freezes))
            for key, value in zip(keys, values):
                lines[key].append(value)
    with open(f"{folder}/problem.txt", "w", encoding="ascii") as file:
        for key, values in lines.items():
            file.write(" ".join([key, *map(str, values)]) + "\n")
    torch.cat([f.p for f in optimizer.flats]).cpu().numpy().tofile(f"{folder}/initial.f32")
    masks = [torch.ones(f.elements) if f.mask is None else f.mask for f in optimizer.flats]
    torch.cat(masks).cpu().numpy().tofile(f"{folder}/mask.f32")


def use_gpu(rank, ranks):
    """NCCL takes two ranks of one GPU for a mistake, unless each claims to be a host of its own."""
    gpus = torch.cuda.device_count()
    if gpus < ranks:
        os.environ.update(NCCL_HOSTID=f"rank{rank}", NCCL_NET="Socket", NCCL_P2P_DISABLE="1",
                          NCCL_SHM_DISABLE="1", NCCL_MAX_NCHANNELS="4", NCCL_RUNTIME_CONNECT="0")
    torch.cuda.set_device(rank % gpus)
    torch.set_default_device(f"cuda:{rank % gpus}")


def worker(rank, ranks, root, device):
    torch.set_num_threads(1)
    if device == "cuda":
        use_gpu(rank, ranks)
    dist.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=ranks,
                            init_method=f"file://{root}/rendezvous")
    for number, case in enumerate(CASES.values()):
        os.makedirs(f"{root}/{number}", exist_ok=True)
        train(case, f"{root}/{number}")
    refused.arguments()
    refused.saved_states()
    refused.steps()
    broadcast_masks()
    empty_groups_and_parameters()
    unseen_rows.stay(average_by_hand)
    skipped.stay()
    skipped.on_one_rank()
    dist.barrier()


def broadcast_masks():
    """A mask multiplies the momentum: of a row it holds for every row."""
    import lambcast.torch as lambcast
    p = torch.nn.Parameter(torch.ones(2, 3))
    row = torch.tensor([1.0, 0.0, 1.0])
    optimizer = lambcast.OneBitAdam([dict(params=[p], exp_avg_mask=row)])
    assert torch.equal(optimizer.flats[0].mask, torch.tensor([1.0, 0, 1, 1, 0, 1]))


def empty_groups_and_parameters():
    """A first group of nothing, as of a recipe whose model has no such weights, and a parameter of
    no elements: the others move as without them."""
    import lambcast.torch as lambcast
    for kind in (lambcast.OneBitAdam, lambcast.OneBitLamb, lambcast.ZeroOneAdam):
        moved = []
        for more in ([], [torch.nn.Parameter(torch.empty(0, 4))]):
            p = torch.nn.Parameter(torch.linspace(-1, 1, 12).view(3, 4))
            groups = [dict(params=[]), dict(params=[p, *more])] if more else [dict(params=[p])]
            freeze = "var_freeze_step" if kind is lambcast.ZeroOneAdam else "freeze_step"
            optimizer = kind(groups, lr=0.1, **{freeze: 2})
            for k in range(4):
                p.grad = torch.linspace(-1, 2, 12).view(3, 4) + k
                optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
            moved.append(p.detach().clone())
        assert torch.isfinite(moved[1]).all() and torch.equal(*moved), kind.kind


def compare(name, case, folder, ranks, replay, tolerance):
    def stacked(of):
        return torch.stack([
            torch.from_file(f"{folder}/{of}{r}.f32", size=os.path.getsize(f"{folder}/{of}{r}.f32")
                            // 4).view(STEPS, -1) for r in range(ranks)], dim=1)
    stacked("gradients").contiguous().numpy().tofile(f"{folder}/gradients.f32")
    subprocess.run([replay, folder], check=True)
    own = stacked("own")
    path = f"{folder}/weights.f32"
    emulated = torch.from_file(path, size=os.path.getsize(path) // 4).view_as(own)
    # The emulated world computes these sums in double: norms, and sums of three and more gradients.
    if "max_grad_norm" in case or ("non_freeze" in case and ranks > 2):
        tolerance = max(tolerance, 1e-6)
    moved = (own[-1] - own[0]).pow(2).mean().sqrt()
    assert moved > 1e-3, f"{name}: nothing moved"
    for k in range(STEPS):
        apart = (own[k] - emulated[k]).abs().max() / emulated[k].pow(2).mean().sqrt()
        assert apart <= tolerance, f"{name}: {apart:.2g} apart at step {k}, rank by rank"
    print(f"{name}: {ranks} processes, {STEPS} steps, weights as in the emulated world")


def main():
    replay, libraries, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    tolerance = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    device = sys.argv[5] if len(sys.argv) > 5 else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    os.environ["LAMBCAST_TORCH_LIBRARIES"] = libraries
    with tempfile.TemporaryDirectory() as root:
        torch.multiprocessing.spawn(worker, (ranks, root, device), nprocs=ranks)
        for number, (name, case) in enumerate(CASES.items()):
            compare(name, case, f"{root}/{number}", ranks, replay, tolerance)


if __name__ == "__main__":
    main()

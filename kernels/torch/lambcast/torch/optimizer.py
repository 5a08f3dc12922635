"""What the three optimizers share: flat state, overflow and clipping, groups, checkpoints."""

import copy
import math
import warnings
from numbers import Real

import torch
import torch.distributed as dist

from . import saved_state
from .compressed_allreduce import CompressedAllreduce
from .flat import Flat
from .library import WORKSPACE, Gradient, Options, library_for

# Keys that may differ between groups; all other keys must be equal in all groups.
PER_GROUP = {"params", "lr", "initial_lr", "weight_decay", "exp_avg_mask", "non_freeze"}

COMM_BACKENDS = ("nccl", "mpi", "hccl", "compressed")  # DeepSpeed's


def check_backend(name):
    if name not in COMM_BACKENDS:
        raise ValueError(f"lambcast: comm_backend_name: {name!r} (allowed: "
                         f"{', '.join(COMM_BACKENDS)})")


def whole(name, value):
    """Returns a count as int, or raises ValueError. A float such as 1e3 is one, a text is not."""
    if _is_number(value) and value >= 1 and value == value // 1 and math.isfinite(value):
        return int(value)
    raise ValueError(f"lambcast: {name}: {value!r} (allowed: whole numbers, 1 and more)")


def _is_number(value):
    """A scalar tensor is a number, as for PyTorch's own optimizers."""
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, Real) and not isinstance(value, bool)


def check_numbers(group):
    """Raises ValueError for the first setting of a group that no step could be taken with."""
    def refuse(name, allowed):
        raise ValueError(f"lambcast: {name}: {group[name]!r} (allowed: {allowed})")
    for name in ("lr", "eps", "weight_decay", "max_grad_norm", "min_coeff", "factor_min",
                 "factor_threshold"):
        if name in group and not (_is_number(group[name]) and 0 <= float(group[name]) < math.inf):
            refuse(name, "0 and more")
    if len(group["betas"]) != 2 or not all(map(_is_fraction, group["betas"])):
        refuse("betas", "two of 0 to below 1")
    if "coeff_beta" in group and not _is_fraction(group["coeff_beta"]):
        refuse("coeff_beta", "0 to below 1")
    for most, least in (("max_coeff", "min_coeff"), ("factor_max", "factor_min")):
        if most in group and not (_is_number(group[most]) and group[most] >= group[least]):
            refuse(most, f"{least}, {group[least]}, and more")


def _is_fraction(value):
    return _is_number(value) and 0 <= value < 1


class OneBitOptimizer(torch.optim.Optimizer):
    """Before step() the gradients are those of `loss * loss_scale` of this rank, averaged over the
    ranks where `averages_gradients` says so; with max_grad_norm they are clipped by their common
    norm. A gradient that is not finite on any rank leaves all state of all ranks as it is, and sets
    `overflow`.

    A parameter whose gradient is None on all ranks is skipped, as DeepSpeed's optimizers do in fp32:
    its weights do not decay, and its moments stay. If other ranks have a gradient, this one counts
    as zeros. DeepSpeed's 1-bit LAMB still moves such a parameter after the freeze; this one does not.
    """

    kind = None  # name of the class whose state this is, for subclasses too
    deepspeed_name = None  # as DeepSpeed's messages have it

    def __init__(self, params, defaults, deepspeed, amsgrad, process_group, comm_backend_name,
                 moves_unseen):
        if amsgrad:
            raise RuntimeError(f"{self.deepspeed_name} does not support the AMSGrad variant.")
        check_backend(comm_backend_name)
        super().__init__(params, defaults)
        self.process_group = process_group
        self.ranks = dist.get_world_size(process_group)
        self.moves_unseen = moves_unseen
        self.loss_scale = 1.0
        self.overflow = False
        self.steps = 0  # those that moved the weights
        self._engine = deepspeed
        self.library = library_for(self._check_groups(self.param_groups))
        self._factor = torch.ones(1, dtype=torch.float32, device=self.library.device)
        self.flats = self._flats()
        self.exchanges = [
            None if flat.never_freezes else
            CompressedAllreduce(self.library, flat.elements, process_group)
            for flat in self.flats]
        self._squared = torch.zeros(1, dtype=torch.float64, device=self.library.device)
        self._workspace = torch.zeros(WORKSPACE, dtype=torch.float64, device=self.library.device)

    def add_param_group(self, group):
        """Of the constructor alone: what travels, and what is owed, is laid out once."""
        if hasattr(self, "flats"):
            raise RuntimeError(f"lambcast: add_param_group: {self.kind} takes its groups when it is "
                               "constructed alone (allowed: a new one of all groups)")
        super().add_param_group(group)

    def _check_groups(self, groups):
        """The device of all parameters. A group may be empty, as long as one is not."""
        devices = {p.device for group in groups for p in group["params"]}
        if not devices:
            raise ValueError("lambcast: groups without a parameter (allowed: one at least)")
        if len(devices) > 1:
            raise ValueError(f"lambcast: parameters on several devices: {sorted(map(str, devices))}")
        for group in groups:
            check_numbers(group)
            for key in self.defaults:
                if key not in PER_GROUP and group[key] != groups[0][key]:
                    raise ValueError(f"lambcast: {key} is {group[key]} in a group and "
                                     f"{groups[0][key]} in others (allowed per group: lr, "
                                     "weight_decay, exp_avg_mask, non_freeze)")
        return devices.pop()

    def _flat(self, groups):
        """One stretch of all parameters of `groups`, with their masks."""
        owners = [(group, p) for group in groups for p in group["params"]]
        masks = [group.get("exp_avg_mask") for group, _ in owners]
        mask = None
        if any(m is not None for m in masks):
            parts = [torch.ones(p.numel(), device="cpu") if m is None else self._mask(m, p)
                     for m, (_, p) in zip(masks, owners)]
            mask = torch.cat(parts).to(owners[0][1].device)
        flat = Flat([p for _, p in owners], self._factor, mask)
        flat.owners = [group for group, _ in owners]
        flat.never_freezes = bool(groups[0].get("non_freeze", False))
        return flat

    @staticmethod
    def _mask(mask, parameter):
        """As it multiplies the momentum: of the parameter's shape, or broadcast to it."""
        if not isinstance(mask, torch.Tensor):
            raise ValueError(f"lambcast: exp_avg_mask: {mask!r} (allowed: a tensor)")
        try:
            return mask.detach().float().cpu().expand(parameter.shape).reshape(-1)
        except RuntimeError:
            raise ValueError(f"lambcast: exp_avg_mask of shape {tuple(mask.shape)} in a group with "
                             f"a parameter of shape {tuple(parameter.shape)} (allowed: that shape, "
                             "or one that is broadcast to it)") from None

    def _options(self, flat):
        group = flat.owners[0]
        names = [name for name, _ in Options._fields_ if name in group]
        beta1, beta2 = group["betas"]
        return Options(beta1=beta1, beta2=beta2, moves_unseen=self.moves_unseen,
                       **{name: float(group[name]) for name in names})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._check_parameters()
        for flat in self.flats:
            flat.gather_gradients()
        self.overflow = not self._find_factor()
        if self.overflow:
            return loss
        if not any(any(flat.present) for flat in self.flats):
            raise RuntimeError("lambcast: step: no parameter has a gradient on any rank (allowed: "
                               "one at least; try: call backward() first, and construct the "
                               "optimizer after the last change of the model's parameters)")
        self.steps += 1
        skipped = [pair for flat in self.flats for pair in flat.kept(self._moved(flat))]
        self._update()
        for part, before in skipped:
            part.copy_(before)
        self._end_step()
        if self._engine is not None:
            self._engine.enable_backward_allreduce = self.averages_gradients
        return loss

    def _check_parameters(self):
        """Raises RuntimeError if a step could not move, or not read, one of the parameters."""
        own = {id(p) for flat in self.flats for p in flat.parameters}
        for p in (p for group in self.param_groups for p in group["params"]):
            if id(p) not in own:
                raise RuntimeError("lambcast: step: a parameter of shape "
                                   f"{tuple(p.shape)} was put into param_groups after the "
                                   "optimizer was constructed (try: construct a new optimizer)")
            if p.grad is not None and p.grad.is_sparse:
                raise RuntimeError(f"{self.deepspeed_name} does not support sparse gradients")
        for flat in self.flats:
            flat.check_places()

    def _moved(self, flat):
        """Which parameters of a segment this step moves."""
        return flat.present

    def _end_step(self):
        """Work at the end of a step, with the skipped parameters as they were before it."""

    def _find_factor(self):
        """Sets the factor that unscales and clips the gradients. Returns false if a gradient of any
        rank is not finite."""
        total = torch.zeros_like(self._squared)
        for flat in self.flats:
            self.library.call("measure", flat.gradient, flat.elements, self._squared,
                              self._workspace)
            total += self._squared
        if not self.averages_gradients and self.ranks > 1:
            # All ranks clip by the same norm, the root mean square over the ranks.
            total = self._sum_over_ranks(total) / self.ranks
        if not torch.isfinite(total).item():
            return False
        limit = float(self.param_groups[0]["max_grad_norm"])
        self.library.call("gradient_factor", total, self._loss_scale(), limit, self._factor)
        return True

    def _sum_over_ranks(self, total):
        """Returns the sum of `total` over the ranks. The same all-reduce says which parameters have
        a gradient on any rank, so that all ranks skip the same ones."""
        present = torch.tensor([p for flat in self.flats for p in flat.present], dtype=total.dtype)
        sums = torch.cat([total, present.to(total.device)])
        dist.all_reduce(sums, group=self.process_group)
        counts = iter(sums[1:].tolist())
        for flat in self.flats:
            flat.present = [next(counts) > 0 for _ in flat.present]
        return sums[:1]

    # A GradScaler leaves unscaling and the overflow check, which is common to all ranks, to step().
    # During step() it sets grad_scale (None: already unscaled).
    _step_supports_amp_scaling = True

    def _loss_scale(self):
        scale = getattr(self, "grad_scale", None)
        return float(self.loss_scale if scale is None else scale)

    def _averaged(self, flat):
        """Returns the mean gradient over the ranks, in fp32, of a segment that never freezes."""
        if self.ranks == 1:
            return flat.gradient
        mean = flat.unscaled(self.library)
        dist.all_reduce(mean, group=self.process_group)
        mean /= self.ranks
        return Gradient(mean)

    # Checkpoints: DeepSpeed's names per parameter; this rank's error feedback and other state are
    # stored separately.

    def _numbers(self):
        return {id(p): i for i, p in enumerate(
            p for group in self.param_groups for p in group["params"])}

    def _parts(self):
        """Yields for every parameter its number and its part of each buffer."""
        numbers = self._numbers()
        for flat in self.flats:
            for t, parameter in enumerate(flat.parameters):
                yield numbers[id(parameter)], flat.parts(t)

    def state_dict(self):
        numbers = self._numbers()
        state = {number: {"step": self.steps, **{key: part.clone() for key, part in parts.items()}}
                 for number, parts in self._parts()}
        for flat in self.flats:
            for parameter, master in zip(flat.parameters, flat.views(flat.p)):
                if parameter.dtype != torch.float32:
                    state[numbers[id(parameter)]]["master"] = master.clone()
        groups = [{**{key: value for key, value in group.items() if key != "params"},
                   "params": [numbers[id(p)] for p in group["params"]]}
                  for group in self.param_groups]
        owed = [None if exchange is None else exchange.owed() for exchange in self.exchanges]
        return {"state": state, "param_groups": copy.deepcopy(groups),
                "lambcast": {"optimizer": self.kind, "rank": dist.get_rank(self.process_group),
                             "ranks": self.ranks, "steps": self.steps, "stage": self._stage(),
                             "owed": owed}}

    @torch.no_grad()
    def load_state_dict(self, saved):
        """All or nothing: what does not fit raises ValueError before anything is written. A mask is
        the script's, as with DeepSpeed: none is loaded."""
        saved_state.check(saved, self)
        own = saved["lambcast"]
        for group, other in zip(self.param_groups, saved["param_groups"]):
            group.update(saved_state.merged(group, copy.deepcopy(other)))
        for number, parts in self._parts():
            for key, part in parts.items():
                part.copy_(saved["state"][number][key])
        numbers = self._numbers()
        for flat in self.flats:
            flat.load_masters([saved["state"][numbers[id(p)]].get("master")
                               for p in flat.parameters])
        self.steps = own["steps"]
        self._set_stage(own["stage"])
        if own["ranks"] != self.ranks:
            warnings.warn(f"lambcast: saved on {own['ranks']} ranks, loaded on {self.ranks}: what "
                          "they owed is forgotten")
        for exchange, owed in zip(self.exchanges, own["owed"]):
            if exchange is None:
                continue
            exchange.forget()
            if own["ranks"] == self.ranks:
                exchange.load_owed(owed)

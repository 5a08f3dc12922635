"""What the three optimizers share: flat state, overflow and clipping, groups, checkpoints."""

import copy
import warnings

import torch
import torch.distributed as dist

from .compressed_allreduce import CompressedAllreduce
from .flat import Flat
from .library import WORKSPACE, Options, library_for

# Of a group; what else a group sets must be alike in all.
PER_GROUP = {"params", "lr", "initial_lr", "weight_decay", "exp_avg_mask", "non_freeze"}


class OneBitOptimizer(torch.optim.Optimizer):
    """Before step() the gradients are those of `loss * loss_scale` of this rank, averaged over the
    ranks where `averages_gradients` says so; with max_grad_norm they are clipped by their common
    norm. A gradient that is not finite on any rank leaves all state of all ranks as it is, and sets
    `overflow`.
    """

    def __init__(self, params, defaults, deepspeed, amsgrad, process_group):
        if amsgrad:
            raise RuntimeError(f"{type(self).__name__} does not support the AMSGrad variant.")
        super().__init__(params, defaults)
        self.process_group = process_group
        self.ranks = dist.get_world_size(process_group)
        self.loss_scale = 1.0
        self.overflow = False
        self.steps = 0  # those that moved the weights
        self._engine = deepspeed
        self._check_groups(defaults)
        self.library = library_for(self.param_groups[0]["params"][0].device)
        self.flats = self._flats()
        self.exchanges = [
            None if flat.never_freezes else
            CompressedAllreduce(self.library, flat.elements, process_group)
            for flat in self.flats]
        self._squared = torch.zeros(1, dtype=torch.float64, device=self.library.device)
        self._workspace = torch.zeros(WORKSPACE, dtype=torch.float64, device=self.library.device)

    def _check_groups(self, defaults):
        devices = {p.device for group in self.param_groups for p in group["params"]}
        if len(devices) > 1:
            raise ValueError(f"lambcast: parameters on several devices: {sorted(map(str, devices))}")
        for group in self.param_groups:
            for key, value in defaults.items():
                if key not in PER_GROUP and group[key] != value:
                    raise ValueError(f"lambcast: {key} is {group[key]} in a group and {value} in "
                                     "others (allowed per group: lr, weight_decay, exp_avg_mask, "
                                     "non_freeze)")

    def _flat(self, groups):
        """One stretch of all parameters of `groups`, with their masks."""
        owners = [(group, p) for group in groups for p in group["params"]]
        masks = [group.get("exp_avg_mask") for group, _ in owners]
        mask = None
        if any(m is not None for m in masks):
            parts = [torch.ones(p.numel()) if m is None else
                     m.detach().float().cpu().reshape(-1).expand(p.numel())
                     for m, (_, p) in zip(masks, owners)]
            mask = torch.cat(parts).to(owners[0][1].device)
        flat = Flat([p for _, p in owners], mask)
        flat.owners = [group for group, _ in owners]
        flat.never_freezes = bool(groups[0].get("non_freeze", False))
        return flat

    def _options(self, flat):
        group = flat.owners[0]
        names = [name for name, _ in Options._fields_ if name in group]
        beta1, beta2 = group["betas"]
        return Options(beta1=beta1, beta2=beta2, **{name: float(group[name]) for name in names})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for flat in self.flats:
            flat.gather_gradients()
        self.overflow = not self._unscale_and_clip()
        if self.overflow:
            return loss
        self.steps += 1
        self._update()
        if self._engine is not None:
            self._engine.enable_backward_allreduce = self.averages_gradients
        return loss

    def _unscale_and_clip(self):
        """False where a gradient of any rank is not finite."""
        total = torch.zeros_like(self._squared)
        for flat in self.flats:
            self.library.call("measure", flat.arrived, self.library.format_of(flat.arrived),
                              flat.elements, self._squared, self._workspace)
            total += self._squared
        if not self.averages_gradients and self.ranks > 1:
            # The norm by which all clip alike: the root mean square over the ranks.
            dist.all_reduce(total, group=self.process_group)
            total /= self.ranks
        if not torch.isfinite(total).item():
            return False
        limit = float(self.param_groups[0]["max_grad_norm"])
        loss_scale = self._loss_scale()
        for flat in self.flats:
            if flat.arrived is not flat.g or loss_scale != 1.0 or limit > 0:
                self.library.call("unscale_and_clip", flat.arrived,
                                  self.library.format_of(flat.arrived), flat.g, flat.elements,
                                  total, loss_scale, limit)
        return True

    # A GradScaler leaves unscaling and the check for overflow, which is one over all ranks, to
    # step(), and sets grad_scale (None: unscaled already) for its time.
    _step_supports_amp_scaling = True

    def _loss_scale(self):
        scale = getattr(self, "grad_scale", None)
        return float(self.loss_scale if scale is None else scale)

    def _average_gradient(self, flat):
        """In full precision, of a stretch that never freezes."""
        if self.ranks > 1:
            dist.all_reduce(flat.g, group=self.process_group)
            flat.g /= self.ranks

    # Checkpoints: DeepSpeed's names per parameter; what this rank owes and the rest beside them.

    def state_dict(self):
        numbers = {id(p): i for i, p in enumerate(
            p for group in self.param_groups for p in group["params"])}
        state = {}
        for flat in self.flats:
            for t, parameter in enumerate(flat.parameters):
                own = {"step": self.steps}
                for key, buffer in flat.state.items():
                    part = flat.views(buffer)[t] if buffer.numel() == flat.elements else buffer[t]
                    own[key] = part.clone()
                if parameter.dtype != torch.float32:
                    own["master"] = flat.views(flat.p)[t].clone()
                state[numbers[id(parameter)]] = own
        groups = [{**{key: value for key, value in group.items() if key != "params"},
                   "params": [numbers[id(p)] for p in group["params"]]}
                  for group in self.param_groups]
        owed = [None if exchange is None else exchange.owed() for exchange in self.exchanges]
        return {"state": state, "param_groups": copy.deepcopy(groups),
                "lambcast": {"rank": dist.get_rank(self.process_group), "ranks": self.ranks,
                             "steps": self.steps, "stage": self._stage(), "owed": owed}}

    @torch.no_grad()
    def load_state_dict(self, saved):
        own = saved["lambcast"]
        if len(saved["param_groups"]) != len(self.param_groups):
            raise ValueError(f"lambcast: {len(saved['param_groups'])} groups were saved, there are "
                             f"{len(self.param_groups)}")
        for group, other in zip(self.param_groups, saved["param_groups"]):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(f"lambcast: a group of {len(other['params'])} parameters was saved "
                                 f"where one of {len(group['params'])} is")
            group.update({key: value for key, value in copy.deepcopy(other).items()
                          if key != "params"})
        numbers = {id(p): i for i, p in enumerate(
            p for group in self.param_groups for p in group["params"])}
        for flat in self.flats:
            for t, parameter in enumerate(flat.parameters):
                entries = saved["state"][numbers[id(parameter)]]
                for key, buffer in flat.state.items():
                    part = flat.views(buffer)[t] if buffer.numel() == flat.elements else buffer[t]
                    part.copy_(entries[key])
            flat.load_masters([saved["state"][numbers[id(p)]].get("master")
                               for p in flat.parameters])
        self.steps = own["steps"]
        self._set_stage(own["stage"])
        self._load_owed(own)

    def _load_owed(self, own):
        here = (dist.get_rank(self.process_group), self.ranks)
        if own["ranks"] != self.ranks:
            warnings.warn(f"lambcast: saved on {own['ranks']} ranks, loaded on {self.ranks}: what "
                          "they owed is forgotten")
        elif own["rank"] != here[0]:
            raise ValueError(f"lambcast: the state of rank {own['rank']} on rank {here[0]}; every "
                             "rank saves and loads what it owes itself")
        for exchange, owed in zip(self.exchanges, own["owed"]):
            if exchange is None:
                continue
            exchange.forget()
            if own["ranks"] == self.ranks:
                exchange.load_owed(owed)

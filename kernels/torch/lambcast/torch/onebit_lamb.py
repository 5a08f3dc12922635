"""1-bit LAMB (arXiv:2104.06069): LAMB on averaged gradients until freeze_step; then frozen variance
and coefficients, and one compressed_allreduce of the momenta of all tensors. One rank alone
compresses too, where DeepSpeed's does not."""

import torch

from .optimizer import OneBitOptimizer, whole


class OneBitLamb(OneBitOptimizer):
    """DeepSpeed's arguments; as there, bias_correction, eps_inside_sqrt, cuda_aware and
    comm_backend_name do nothing. max_grad_norm clips, which DeepSpeed leaves to its engine.
    `deepspeed` may be an engine, whose enable_backward_allreduce is then kept. Weights that no
    gradient had reached when their variance froze stay as they are (but for decay); moves_unseen:
    they move as DeepSpeed's do without a mask, by scale / eps. Groups may have
    non_freeze, which DeepSpeed's 1-bit LAMB does not know."""

    kind = "OneBitLamb"
    deepspeed_name = "1-bit Lamb"

    def __init__(self, params, deepspeed=None, lr=1e-3, freeze_step=100000, bias_correction=True,
                 betas=(0.9, 0.999), eps=1e-8, eps_inside_sqrt=False, weight_decay=0.0,
                 max_grad_norm=0.0, max_coeff=10.0, min_coeff=0.01, amsgrad=False,
                 cuda_aware=False, comm_backend_name="nccl", coeff_beta=0.9, factor_max=4.0,
                 factor_min=0.5, factor_threshold=0.1, process_group=None, moves_unseen=False):
        freeze_step = whole("freeze_step", freeze_step)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      max_grad_norm=max_grad_norm, max_coeff=max_coeff,
                                      min_coeff=min_coeff, coeff_beta=coeff_beta,
                                      factor_max=factor_max, factor_min=factor_min,
                                      factor_threshold=factor_threshold), deepspeed, amsgrad,
                         process_group, comm_backend_name, moves_unseen)
        self.freeze_step = freeze_step
        self.tensors = [self.library.tensors(flat.sizes) for flat in self.flats]
        for flat in self.flats:
            def per_tensor(value):
                return torch.full((len(flat.sizes),), value, device=flat.device)
            flat.state["exp_avg_sq_fresh"] = flat.zeros()
            flat.state["running_average"], flat.state["running_weight"] = (per_tensor(0.0),
                                                                           per_tensor(0.0))
            flat.state["scaling_coeff"], flat.state["last_factor"] = (per_tensor(1.0),
                                                                      per_tensor(1.0))

    def _flats(self):
        never = [group for group in self.param_groups if group.get("non_freeze", False)]
        rest = [group for group in self.param_groups if not group.get("non_freeze", False)]
        return [self._flat(groups) for groups in (rest, never)
                if any(group["params"] for group in groups)]

    @property
    def averages_gradients(self):
        return self.steps < self.freeze_step

    def _update(self):
        warm_up = self.steps <= self.freeze_step
        for flat, exchange, tensors in zip(self.flats, self.exchanges, self.tensors):
            tensors.set([float(group["lr"]) for group in flat.owners],
                        [float(group["weight_decay"]) for group in flat.owners])
            if warm_up or exchange is None:
                gradient = flat.gradient if warm_up else self._averaged(flat)
                s = flat.state
                self.library.call("lamb_step", tensors.handle, flat.weights, s["exp_avg"],
                                  s["exp_avg_sq"], gradient, s["running_average"],
                                  s["running_weight"], self._options(flat))
            else:
                self._compressed(flat, exchange, tensors)

    def _end_step(self):
        """Freezes the variance, that of parameters which the last step skipped too."""
        if self.steps != self.freeze_step:
            return
        for flat, tensors in zip(self.flats, self.tensors):
            flat.state["exp_avg_sq_fresh"].copy_(flat.state["exp_avg_sq"])
            self.library.call("scaling", tensors.handle, flat.state["exp_avg"],
                              flat.state["scaling_coeff"])

    def _compressed(self, flat, exchange, tensors):
        s, options = flat.state, self._options(flat)
        exchange.average(s["exp_avg"], flat.gradient, options.beta1, tensors.handle,
                         s["scaling_coeff"])
        self.library.call("onebit_lamb_step", tensors.handle, flat.weights, s["exp_avg"],
                          s["exp_avg_sq"], s["exp_avg_sq_fresh"], exchange.signs, exchange.scales,
                          exchange.chunk, flat.mask, s["scaling_coeff"], s["running_average"],
                          s["running_weight"], s["last_factor"], options)

    def _stage(self):
        return {"freeze_step": self.freeze_step}

    def _set_stage(self, stage):
        # If this freeze_step would change the saved stage, the saved one is used: a past freeze
        # cannot be undone, and a later one cannot be moved into the past.
        if self.averages_gradients != (self.steps < stage["freeze_step"]):
            self.freeze_step = stage["freeze_step"]

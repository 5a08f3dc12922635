"""1-bit Adam (arXiv:2102.02888): Adam without bias correction on averaged gradients until
freeze_step; then a frozen variance and one compressed_allreduce of the momentum per group."""

from .optimizer import OneBitOptimizer, whole


class OneBitAdam(OneBitOptimizer):
    """DeepSpeed's arguments; as there, bias_correction, eps_inside_sqrt, cuda_aware and
    comm_backend_name do nothing. max_grad_norm clips, which DeepSpeed leaves to its engine.
    `deepspeed` may be an engine, whose enable_backward_allreduce is then kept. Weights that no
    gradient had reached when their variance froze stay as they are (but for decay); moves_unseen:
    they move as DeepSpeed's do without a mask, by scale / eps."""

    kind = "OneBitAdam"
    deepspeed_name = "1-bit Adam"

    def __init__(self, params, deepspeed=None, lr=1e-3, freeze_step=100000, bias_correction=True,
                 betas=(0.9, 0.999), eps=1e-8, eps_inside_sqrt=False, weight_decay=0.0,
                 max_grad_norm=0.0, amsgrad=False, cuda_aware=False, comm_backend_name="nccl",
                 process_group=None, moves_unseen=False):
        freeze_step = whole("freeze_step", freeze_step)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      max_grad_norm=max_grad_norm), deepspeed, amsgrad,
                         process_group, comm_backend_name, moves_unseen)
        self.freeze_step = freeze_step

    def _flats(self):
        return [self._flat([group]) for group in self.param_groups if group["params"]]

    @property
    def averages_gradients(self):
        return self.steps < self.freeze_step

    def _update(self):
        warm_up = self.steps <= self.freeze_step
        for flat, exchange in zip(self.flats, self.exchanges):
            m, v = flat.state["exp_avg"], flat.state["exp_avg_sq"]
            options, call = self._options(flat), self.library.call
            if warm_up or exchange is None:
                gradient = flat.gradient if warm_up else self._averaged(flat)
                call("adam_step", flat.weights, m, v, gradient, flat.elements, options)
                continue
            if self.ranks == 1:
                m.mul_(options.beta1).add_(flat.unscaled(self.library),
                                            alpha=1 - options.beta1)
                if flat.mask is not None:
                    m.mul_(flat.mask)
                call("adam_apply", flat.weights, m, v, flat.elements, options)
            else:
                exchange.average(m, flat.gradient, options.beta1)
                call("onebit_adam_step", flat.weights, m, v, exchange.signs, exchange.scales,
                     exchange.chunk, flat.mask, flat.elements, options)

    def _stage(self):
        return {"freeze_step": self.freeze_step}

    def _set_stage(self, stage):
        # If this freeze_step would change the saved stage, the saved one is used: a past freeze
        # cannot be undone, and a later one cannot be moved into the past.
        if self.averages_gradients != (self.steps < stage["freeze_step"]):
            self.freeze_step = stage["freeze_step"]

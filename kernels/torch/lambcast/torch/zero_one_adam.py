"""0/1 Adam (arXiv:2202.06009): variance updates at growing intervals on averaged gradients, 1-bit
gradients in between; once the variance is frozen, local steps with a 1-bit synchronisation at
growing intervals. emulated_world/zero_one_adam.h has the policy."""

from .library import FULL, SILENT, ZeroOnePolicy
from .optimizer import OneBitOptimizer, whole


class ZeroOneAdam(OneBitOptimizer):
    """DeepSpeed's arguments; as there, bias_correction, eps_inside_sqrt, cuda_aware and
    comm_backend_name do nothing. max_grad_norm clips, which DeepSpeed leaves to its engine.
    `deepspeed` may be an engine, whose enable_backward_allreduce is then kept. Weights that no
    gradient had reached when their variance froze stay as they are (but for decay); moves_unseen:
    they move as DeepSpeed's do without a mask, by scale / eps."""

    kind = "ZeroOneAdam"
    deepspeed_name = "0/1 Adam"

    def __init__(self, params, deepspeed=None, lr=1e-3, bias_correction=True, betas=(0.9, 0.999),
                 eps=1e-8, eps_inside_sqrt=False, weight_decay=0.0, max_grad_norm=0.0,
                 var_freeze_step=100000, var_update_scaler=16, local_step_scaler=32678,
                 local_step_clipper=16, amsgrad=False, cuda_aware=False, comm_backend_name="nccl",
                 process_group=None, moves_unseen=False):
        counts = {name: whole(name, value) for name, value in (
            ("var_freeze_step", var_freeze_step), ("var_update_scaler", var_update_scaler),
            ("local_step_scaler", local_step_scaler), ("local_step_clipper", local_step_clipper))}
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                      max_grad_norm=max_grad_norm), deepspeed, amsgrad,
                         process_group, comm_backend_name, moves_unseen)
        if any(flat.never_freezes for flat in self.flats):
            raise ValueError("lambcast: 0/1 Adam has no groups that never freeze")
        for name, value in counts.items():
            setattr(self, name, value)
        self.policy = ZeroOnePolicy(var_interval=1, local_interval=1)
        self.lrs = [0.0] * len(self.flats)  # learning rates since the last synchronisation, summed
        for flat in self.flats:
            flat.state["momentum_accumulator"] = flat.zeros()
            flat.since_synchronised = [False] * len(flat.parameters)

    def _flats(self):
        return [self._flat([group]) for group in self.param_groups if group["params"]]

    @property
    def averages_gradients(self):
        """Of the next step."""
        return self.library.zero_one_kind(self.policy, self.steps + 1) == FULL

    def _moved(self, flat):
        """A synchronisation also moves parameters whose last gradient came in a local step: their
        weights differ between the ranks until then."""
        if not self.policy.frozen:
            return flat.present
        moved = [any(pair) for pair in zip(flat.present, flat.since_synchronised)]
        silent = self.library.zero_one_kind(self.policy, self.steps) == SILENT
        flat.since_synchronised = moved if silent else [False] * len(moved)
        return flat.present if silent else moved

    def _update(self):
        kind = self.library.zero_one_kind(self.policy, self.steps)
        if self.policy.frozen:
            self._local_step(synchronise=kind != SILENT)
        elif kind == FULL:
            for flat in self.flats:
                self.library.call("adam_step", flat.weights, flat.state["exp_avg"],
                                  flat.state["exp_avg_sq"], flat.gradient, flat.elements,
                                  self._options(flat))
        else:
            self._onebit_gradient_step()
        was_frozen = self.policy.frozen
        self.library.zero_one_advance(self.policy, self.steps, self.var_freeze_step,
                                      self.var_update_scaler, self.local_step_scaler,
                                      self.local_step_clipper)
        if self.policy.frozen and not was_frozen:  # what was owed of gradients is no debt of u
            for exchange in self.exchanges:
                exchange.forget()

    def _onebit_gradient_step(self):
        for flat, exchange in zip(self.flats, self.exchanges):
            self.library.call("zero_one_onebit_step", flat.weights, flat.state["exp_avg"],
                              flat.state["exp_avg_sq"], flat.gradient,
                              *self._average(flat, exchange, None, flat.gradient), flat.elements,
                              self._options(flat))

    def _average(self, flat, exchange, x, gradient=None):
        """Signs, scales, chunk and mask of the average of `x` or of the gradient. The step decodes
        them as it goes."""
        if self.ranks == 1:
            return None, None, 0, None
        exchange.average(x, gradient)
        return exchange.signs, exchange.scales, exchange.chunk, flat.mask

    def _local_step(self, synchronise):
        for i, (flat, exchange) in enumerate(zip(self.flats, self.exchanges)):
            m, v, u = (flat.state[key] for key in ("exp_avg", "exp_avg_sq",
                                                   "momentum_accumulator"))
            options, call = self._options(flat), self.library.call
            self.lrs[i] += options.lr
            local = flat.weights, m, v, u, flat.gradient, flat.elements, options
            if not synchronise or self.lrs[i] == 0:
                call("zero_one_local_step", *local)
                continue
            call("zero_one_sync_begin", *local)
            call("zero_one_sync_end", flat.weights, m, v, u, *self._average(flat, exchange, u),
                 flat.elements, self.lrs[i], options)
            self.lrs[i] = 0.0

    def _stage(self):
        return {"policy": self.policy.values(), "lrs": list(self.lrs)}

    def _set_stage(self, stage):
        self.policy, self.lrs = ZeroOnePolicy(**stage["policy"]), list(stage["lrs"])
        for flat in self.flats:  # any parameter may have moved since the last synchronisation
            flat.since_synchronised = [True] * len(flat.parameters)

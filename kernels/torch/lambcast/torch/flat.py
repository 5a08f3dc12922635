"""Parameters of one stretch of an optimizer's state: flat fp32 buffers, one tensor after another."""

import torch

from .library import FORMATS, Weights


class Flat:
    """Weights, gradient and state of `parameters`, all on one device.

    fp32 parameters become views of the flat fp32 weights. For fp16 or bf16 ones these are the
    masters: the parameters become views of a flat copy in their own format, which every step writes
    as it moves the masters.
    """

    def __init__(self, parameters, mask=None):
        self.parameters = parameters
        self.sizes = [p.numel() for p in parameters]
        self.device = parameters[0].device
        self.elements = sum(self.sizes)
        self.p, self.g = self.zeros(), self.zeros()
        self.copy = self._copy()
        self.weights = Weights(self.p, self.copy)
        # Where gradients arrive: in 16 bits where all are.
        mixed = any(p.dtype == torch.float32 for p in parameters)
        self.arrived = self.g if mixed else torch.zeros_like(self.copy)
        self.mask = mask
        self.state = {"exp_avg": self.zeros(), "exp_avg_sq": self.zeros()}
        for parameter, master in zip(parameters, self.views(self.p)):
            master.copy_(parameter.data)
            if parameter.dtype == torch.float32:
                parameter.data = master
        self._round_weights()
        if self.copy is not None:
            for parameter, own in zip(parameters, self.views(self.copy)):
                if parameter.dtype != torch.float32:
                    parameter.data = own

    def _copy(self):
        formats = {p.dtype for p in self.parameters}
        if not formats <= set(FORMATS) or len(formats - {torch.float32}) > 1:
            raise ValueError(f"lambcast: parameters of {', '.join(sorted(map(str, formats)))} "
                             "(allowed: torch.float32, and one of torch.float16, torch.bfloat16)")
        for dtype in formats - {torch.float32}:
            return torch.zeros(self.elements, dtype=dtype, device=self.device)
        return None

    def _round_weights(self):
        if self.copy is not None:
            self.copy.copy_(self.p)

    def zeros(self):
        return torch.zeros(self.elements, dtype=torch.float32, device=self.device)

    def views(self, flat):
        parts = flat.split(self.sizes)
        return [part.view(p.shape) for part, p in zip(parts, self.parameters)]

    def gather_gradients(self):
        """A parameter without a gradient counts as one of zeros."""
        for parameter, own in zip(self.parameters, self.views(self.arrived)):
            if parameter.grad is None:
                own.zero_()
            else:
                own.copy_(parameter.grad)

    def load_masters(self, saved):
        """Of every parameter its master, or None: as the parameter itself is."""
        for parameter, master, own in zip(self.parameters, self.views(self.p), saved):
            if own is not None:
                master.copy_(own)
            elif parameter.dtype != torch.float32:
                master.copy_(parameter.data)
        self._round_weights()

"""Parameters of one segment of an optimizer's state: flat fp32 buffers, one tensor after another."""

import torch

from .library import FORMATS, Gradient, Weights


class Flat:
    """Weights, gradient and state of `parameters`, all on one device. `factor`, a tensor of one
    float on it, is what each step multiplies the gradient with.

    fp32 parameters become views of the flat fp32 weights. For fp16 or bf16 ones these are the
    masters: the parameters become views of a flat copy in their own format, which every step writes
    as it moves the masters.
    """

    def __init__(self, parameters, factor, mask=None):
        self.parameters = parameters
        self.sizes = [p.numel() for p in parameters]
        self.device = parameters[0].device
        self.elements = sum(self.sizes)
        self.p = self.zeros()
        self.copy = self._copy()
        self.weights = Weights(self.p, self.copy)
        # Gradients arrive in 16 bits if all parameters have 16 bits.
        mixed = any(p.dtype == torch.float32 for p in parameters)
        self.arrived = self.zeros() if mixed else torch.zeros_like(self.copy)
        self.gradient = Gradient(self.arrived, factor)
        self.full = self.arrived if mixed else None  # fp32 memory for unscaled(), made if needed
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
        self.places = [self._place(p) for p in parameters]
        self.present = [True] * len(parameters)

    @staticmethod
    def _place(parameter):
        return (parameter.data_ptr(), parameter.dtype, parameter.device, parameter.shape,
                parameter.stride())

    def check_places(self):
        """Raises RuntimeError if the data of a parameter are no longer a part of the flat weights:
        a step would move the flat weights alone, and the model would never see it."""
        for number, (parameter, place) in enumerate(zip(self.parameters, self.places)):
            if self._place(parameter) != place:
                raise RuntimeError(
                    f"lambcast: step: the data of parameter {number} of its segment, of shape "
                    f"{tuple(place[3])}, were replaced since the optimizer was constructed, as by "
                    "model.half(), model.to() or p.data = ... (allowed: p.data.copy_(...); try: "
                    "construct the optimizer after the model has its format and its device)")

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
        """Copies the gradients to the flat buffer, with zeros for parameters that have none, and
        notes in `present` which have one."""
        self.present = [parameter.grad is not None for parameter in self.parameters]
        for parameter, own in zip(self.parameters, self.views(self.arrived)):
            if parameter.grad is None:
                own.zero_()
            else:
                own.copy_(parameter.grad)

    def unscaled(self, library):
        """Returns the gradient times its factor, in fp32; an fp32 gradient is overwritten."""
        if self.full is None:
            self.full = self.zeros()
        library.call("unscale", self.gradient, self.full, self.elements)
        return self.full

    def parts(self, number):
        """State of one parameter: its part of each buffer."""
        return {key: self.views(buffer)[number] if buffer.numel() == self.elements
                else buffer[number] for key, buffer in self.state.items()}

    def kept(self, moved):
        """Pairs of a part of the weights or the state and its copy, for each parameter for which
        `moved` is false."""
        weights = [buffer for buffer in (self.p, self.copy) if buffer is not None]
        return [(part, part.clone()) for number, moves in enumerate(moved) if not moves
                for part in (*(self.views(buffer)[number] for buffer in weights),
                             *self.parts(number).values())]

    def load_masters(self, saved):
        """Copies the master of every parameter, or the parameter itself for None."""
        for parameter, master, own in zip(self.parameters, self.views(self.p), saved):
            if own is not None:
                master.copy_(own)
            elif parameter.dtype != torch.float32:
                master.copy_(parameter.data)
        self._round_weights()

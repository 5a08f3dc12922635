"""Parameters of one stretch of an optimizer's state: flat fp32 buffers, one tensor after another."""

import torch


class Flat:
    """Weights, gradient and state of `parameters`, all on one device.

    fp32 parameters become views of the flat weights; others have their fp32 master here and receive
    a copy of it after every step.
    """

    def __init__(self, parameters, mask=None):
        self.parameters = parameters
        self.sizes = [p.numel() for p in parameters]
        self.device = parameters[0].device
        self.elements = sum(self.sizes)
        self.p, self.g = self.zeros(), self.zeros()
        self.mask = mask
        self.state = {"exp_avg": self.zeros(), "exp_avg_sq": self.zeros()}
        for parameter, own in zip(parameters, self.views(self.p)):
            own.copy_(parameter.data)
            if parameter.dtype == torch.float32:
                parameter.data = own

    def zeros(self):
        return torch.zeros(self.elements, dtype=torch.float32, device=self.device)

    def views(self, flat):
        parts = flat.split(self.sizes)
        return [part.view(p.shape) for part, p in zip(parts, self.parameters)]

    def gather_gradients(self):
        """A parameter without a gradient counts as one of zeros."""
        for parameter, own in zip(self.parameters, self.views(self.g)):
            if parameter.grad is None:
                own.zero_()
            else:
                own.copy_(parameter.grad)

    def hand_out_weights(self):
        for parameter, own in zip(self.parameters, self.views(self.p)):
            if parameter.dtype != torch.float32:
                parameter.data.copy_(own)

"""compressed_allreduce over torch.distributed: one bit per element, with error feedback."""

import torch
import torch.distributed as dist

from .library import WORKSPACE


class CompressedAllreduce:
    """What one rank owes and sends for a buffer of `elements`.

    Four collectives a call: an all-to-all of packed signs and an all-gather of their scales, then
    an all-gather of what every rank serves and of its scale.
    """

    def __init__(self, library, elements, process_group):
        self._library = library
        self._group = process_group
        self.ranks = dist.get_world_size(process_group)
        self.rank = dist.get_rank(process_group)
        self.elements = elements
        self.padded = library.padded(elements, self.ranks)
        self.chunk = self.padded // self.ranks
        # Elements of the chunk served here that are not padding.
        self.real = min(max(elements - self.rank * self.chunk, 0), self.chunk)

        def zeros(count, dtype):
            return torch.zeros(count, dtype=dtype, device=library.device)
        self.worker_error = zeros(self.padded, torch.float32)
        self.worker_scale = zeros(1, torch.float32)
        self.server_error = zeros(self.chunk, torch.float32)
        self.server_scale = zeros(1, torch.float32)
        self.scales = zeros(self.ranks, torch.float32)  # of the served chunks, after a call
        self.signs = zeros(self.padded // 8, torch.uint8)
        self._received = zeros(self.padded // 8, torch.uint8)
        self._served = zeros(self.chunk // 8, torch.uint8)
        self._worker_scales = zeros(self.ranks, torch.float32)
        self._workspace = zeros(WORKSPACE, torch.float64)

    def average(self, x, gradient=None, beta1=0.0, tensors=None, scaling=None):
        """Leaves the average in `signs` and `scales`, packed: of `x`, of the gradient if x is None,
        or of the momentum x updated with the gradient. None of them is written."""
        call = self._library.call
        call("worker_phase", x, gradient, self.elements, beta1, tensors, scaling, self.padded,
             self.worker_error, self.worker_scale, self.signs, self._workspace)
        dist.all_to_all_single(self._received, self.signs, group=self._group)
        self._gather(self._worker_scales, self.worker_scale)
        call("server_phase", self._received, self._worker_scales, self.ranks, self.chunk,
             self.real, self.server_error, self.server_scale, self._served, self._workspace)
        self._gather(self.signs, self._served)
        self._gather(self.scales, self.server_scale)

    def _gather(self, all_parts, part):
        dist.all_gather(list(all_parts.chunk(self.ranks)), part, group=self._group)

    def forget(self):
        for owed in (self.worker_error, self.worker_scale, self.server_error, self.server_scale):
            owed.zero_()

    def owed(self):
        worker, server = torch.zeros_like(self.worker_error), torch.zeros_like(self.server_error)
        self._library.call("owed", self.worker_error, self.worker_scale, self.elements, worker)
        self._library.call("owed", self.server_error, self.server_scale, self.real, server)
        return {"worker_error": worker, "server_error": server}

    def load_owed(self, owed):
        self.forget()
        self.worker_error.copy_(owed["worker_error"])
        self.server_error.copy_(owed["server_error"])

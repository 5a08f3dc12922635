"""1-bit LAMB, 1-bit Adam and 0/1 Adam for PyTorch, with the arguments of DeepSpeed's classes.

    model = DistributedDataParallel(model)
    optimizer = OneBitLamb(model.parameters(), lr=1e-3, freeze_step=1000)
    model.register_comm_hook(optimizer, averaging_hook)

In the warm-up the hook averages gradients as DistributedDataParallel does; from the freeze on it
leaves them alone and the optimizer sends one bit per element. Without DistributedDataParallel,
average the gradients yourself before step() wherever optimizer.averages_gradients says so.
"""

from .averaging import averaging_hook
from .onebit_adam import OneBitAdam
from .onebit_lamb import OneBitLamb
from .zero_one_adam import ZeroOneAdam

__all__ = ["OneBitAdam", "OneBitLamb", "ZeroOneAdam", "averaging_hook"]

"""Who averages the gradients: DistributedDataParallel, as long as the optimizer wants that."""

import torch
import torch.distributed as dist


def averaging_hook(optimizer, bucket):
    """For DistributedDataParallel.register_comm_hook(optimizer, averaging_hook)."""
    if not optimizer.averages_gradients:
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done
    ranks = dist.get_world_size(optimizer.process_group)
    buffer = bucket.buffer().div_(ranks)
    sent = dist.all_reduce(buffer, group=optimizer.process_group, async_op=True)
    return sent.get_future().then(lambda future: future.value()[0])

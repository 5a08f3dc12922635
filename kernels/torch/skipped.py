"""A part of training_test.py: parameters without a gradient, which a step skips."""

import torch
import torch.distributed as dist


def settings(lambcast):
    """Each class with a freeze after 3 steps. 0/1 Adam then synchronises in steps 5 to 9, 10 and
    12."""
    return {lambcast.OneBitAdam: dict(freeze_step=3), lambcast.OneBitLamb: dict(freeze_step=3),
            lambcast.ZeroOneAdam: dict(var_freeze_step=3, var_update_scaler=2,
                                       local_step_scaler=5, local_step_clipper=2)}


def built(kind, options, dtype=torch.float32, **more):
    torch.manual_seed(5)
    first, second = (torch.nn.Parameter(torch.rand(3, 4).add(0.5).to(dtype)) for _ in range(2))
    return first, second, kind([first, second], lr=0.01, weight_decay=0.1, **options, **more)


def gradient(parameter, k):
    return torch.linspace(-1, 2, 12).view(3, 4).add(k).to(parameter.dtype)


def stay():
    """Weights and moments without a gradient on any rank stay to the bit, from the first step or
    from a later one on, also across the freeze: no decay, no momentum."""
    import lambcast.torch as lambcast
    for kind, options in settings(lambcast).items():
        for dtype in (torch.float32, torch.bfloat16):
            for until in (0, 2, 5):  # steps with a gradient for `second`
                first, second, optimizer = built(kind, options, dtype)
                for k in range(10):
                    if k == until:
                        before = [part.clone() for part in state(optimizer, second)]
                        start = first.detach().clone()
                    first.grad = gradient(first, k)
                    second.grad = gradient(second, k) if k < until else None
                    optimizer.step()
                what = f"{kind.kind}, {dtype}, from step {until}"
                assert all(map(torch.equal, before, state(optimizer, second))), what
                assert not torch.equal(start, first), what


def state(optimizer, parameter):
    """The parameter, its master and its moments."""
    flat, = optimizer.flats
    number = [id(p) for p in flat.parameters].index(id(parameter))
    parts = flat.parts(number)
    return [parameter.detach(), flat.views(flat.p)[number], parts["exp_avg"], parts["exp_avg_sq"]]


def on_one_rank():
    """After the freeze, a gradient on one rank moves the parameter on all ranks alike. The last step
    has no gradient: for 0/1 Adam it is a synchronisation, which a skip would leave out. It takes the
    local steps back by subtraction, so its ranks agree but for rounding."""
    import lambcast.torch as lambcast
    for kind, options in settings(lambcast).items():
        first, second, optimizer = built(kind, options)
        before = second.detach().clone()
        for k in range(12):
            first.grad, second.grad = gradient(first, k), gradient(second, k)
            if not optimizer.averages_gradients and (k + dist.get_rank()) % dist.get_world_size():
                second.grad = None
            if k == 11:
                second.grad = None
            optimizer.step()
        weights = [torch.empty_like(before) for _ in range(dist.get_world_size())]
        dist.all_gather(weights, second.detach().clone())
        for other in weights:
            assert (other - weights[0]).abs().max() < 1e-6, kind.kind
        assert (second - before).abs().min() > 1e-3, kind.kind

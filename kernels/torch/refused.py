"""A part of training_test.py: what the optimizers refuse, each in one line, and what they then leave as
it was."""

import copy

import torch


def arguments():
    import lambcast.torch as lambcast
    p = torch.nn.Parameter(torch.ones(3))
    q = torch.nn.Parameter(torch.ones(3))

    def refused(say, make):
        try:
            make()
        except (ValueError, RuntimeError) as error:
            assert say in str(error), error
        else:
            raise AssertionError(f"accepted, but {say}")
    for name, value, allowed in (
            ("lr", -1.0, "0 and more"), ("lr", float("nan"), "0 and more"),
            ("eps", -1.0, "0 and more"), ("weight_decay", -1.0, "0 and more"),
            ("max_grad_norm", -1.0, "0 and more"), ("betas", (1.5, 0.9), "two of 0 to below 1"),
            ("comm_backend_name", "foo", "nccl, mpi, hccl, compressed")):
        for kind in (lambcast.OneBitAdam, lambcast.OneBitLamb, lambcast.ZeroOneAdam):
            refused(f"{name}: {value!r} (allowed: {allowed})", lambda: kind([p], **{name: value}))
    refused("max_coeff: 0.001 (allowed: min_coeff, 0.01, and more)",
            lambda: lambcast.OneBitLamb([p], max_coeff=0.001))
    refused("factor_max: 0.1 (allowed: factor_min", lambda: lambcast.OneBitLamb([p], factor_max=0.1))
    refused("coeff_beta: 1", lambda: lambcast.OneBitLamb([p], coeff_beta=1))
    refused("lr: -1", lambda: lambcast.OneBitAdam([dict(params=[p]), dict(params=[q], lr=-1)]))
    refused("local_step_scaler: 0", lambda: lambcast.ZeroOneAdam([p], local_step_scaler=0))
    for value in (0, "10", 10.5, True, None, float("inf"), float("nan")):
        refused(f"freeze_step: {value!r} (allowed: whole numbers, 1 and more)",
                lambda: lambcast.OneBitLamb([p], freeze_step=value))
    assert lambcast.OneBitAdam([p], freeze_step=1e3).freeze_step == 1000
    refused("lr: '1e-3' (allowed: 0 and more)", lambda: lambcast.OneBitAdam([p], lr="1e-3"))
    refused("betas: ('a', 0.9) (allowed", lambda: lambcast.OneBitAdam([p], betas=("a", 0.9)))
    refused("coeff_beta: 'a' (allowed", lambda: lambcast.OneBitLamb([p], coeff_beta="a"))
    refused("factor_max: 'a' (allowed", lambda: lambcast.OneBitLamb([p], factor_max="a"))
    refused("var_freeze_step: 0", lambda: lambcast.ZeroOneAdam([p], var_freeze_step=0))
    other = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    refused("parameters of torch.float64 (allowed: torch.float32, and one of",
            lambda: lambcast.OneBitAdam([other]))
    both = [torch.nn.Parameter(torch.ones(3, dtype=d)) for d in (torch.float16, torch.bfloat16)]
    refused("parameters of torch.bfloat16, torch.float16 (allowed", lambda: lambcast.OneBitLamb(both))
    for kind, name in names(lambcast):
        refused(f"{name} does not support the AMSGrad variant.", lambda: kind([p], amsgrad=True))
    refused("allowed per group", lambda: lambcast.OneBitAdam([dict(params=[p], eps=1e-3),
                                                              dict(params=[q])]))
    refused("never freeze", lambda: lambcast.ZeroOneAdam([dict(params=[p], non_freeze=True)]))
    refused("groups without a parameter", lambda: lambcast.OneBitLamb([dict(params=[])]))
    optimizer = lambcast.OneBitAdam([p])
    refused("add_param_group: OneBitAdam takes its groups when it is constructed",
            lambda: optimizer.add_param_group(dict(params=[q])))
    assert len(optimizer.param_groups) == 1
    for mask in (torch.ones(2), torch.ones(1, 2, 3)):
        refused(f"exp_avg_mask of shape {tuple(mask.shape)} in a group with a parameter of shape "
                "(3,)", lambda: lambcast.OneBitLamb([dict(params=[p], exp_avg_mask=mask)]))
    refused("exp_avg_mask: [1]", lambda: lambcast.OneBitLamb([dict(params=[p], exp_avg_mask=[1])]))


def names(lambcast):
    """The classes, with their names in DeepSpeed's messages."""
    return ((lambcast.OneBitLamb, "1-bit Lamb"), (lambcast.OneBitAdam, "1-bit Adam"),
            (lambcast.ZeroOneAdam, "0/1 Adam"))


def steps():
    """A step that would not reach the model is refused in one line, and moves nothing."""
    import lambcast.torch as lambcast

    def replaced(model, optimizer):
        model.weight.data = model.weight.data.clone()

    def swapped(model, optimizer):
        optimizer.param_groups[0]["params"][0] = torch.nn.Parameter(torch.ones(3, 4))

    def sparse(model, optimizer):
        model.weight.grad = torch.zeros(3, 4).to_sparse()

    def assigned(model, optimizer):
        model.weight, model.bias = (torch.nn.Parameter(p.detach().clone())
                                    for p in (model.weight, model.bias))
        optimizer.zero_grad(set_to_none=True)
        model(torch.ones(4)).sum().backward()
    lost = "were replaced since the optimizer was constructed"
    for kind, name in names(lambcast):
        for change, say in ((lambda model, _: model.half(), lost), (replaced, lost),
                            (lambda model, _: model.to(torch.bfloat16), lost),
                            (swapped, "of shape (3, 4) was put into param_groups after"),
                            (assigned, "no parameter has a gradient on any rank"),
                            (sparse, f"{name} does not support sparse gradients")):
            model = torch.nn.Linear(4, 3)
            optimizer = kind(model.parameters())
            model(torch.ones(4)).sum().backward()
            optimizer.step()
            before = [flat.p.clone() for flat in optimizer.flats]
            change(model, optimizer)
            try:
                optimizer.step()
            except RuntimeError as error:
                assert say in str(error) and "\n" not in str(error), error
            else:
                raise AssertionError(f"{kind.kind}: accepted, but {say}")
            assert same(before, [flat.p for flat in optimizer.flats]) and optimizer.steps == 1, say


def trained(kind, steps, **options):
    """An optimizer of two groups, one of which never freezes where it may, after some steps."""
    torch.manual_seed(steps)
    weight, bias = torch.nn.Parameter(torch.rand(3, 4)), torch.nn.Parameter(torch.rand(3))
    never = {} if kind.kind == "ZeroOneAdam" else dict(non_freeze=True)
    optimizer = kind([dict(params=[weight]), dict(params=[bias], weight_decay=0.1, **never)],
                     lr=0.1, **options)
    for _ in range(steps):
        for p in (weight, bias):
            p.grad = torch.rand_like(p)
        optimizer.step()
    return optimizer


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def saved_states():
    """A state that does not fit is refused in one line, and moves nothing; one that fits is loaded
    but for the mask, which is the script's."""
    import lambcast.torch as lambcast
    kinds = (lambcast.OneBitAdam, lambcast.OneBitLamb, lambcast.ZeroOneAdam)

    def refused(optimizer, saved, say):
        before = copy.deepcopy(optimizer.state_dict())
        weights = [flat.p.clone() for flat in optimizer.flats]
        try:
            optimizer.load_state_dict(saved)
        except ValueError as error:
            assert str(error).startswith("lambcast: ") and "\n" not in str(error), error
            assert say in str(error), error
        else:
            raise AssertionError(f"accepted, but {say}")
        assert same(before, optimizer.state_dict()), say
        assert same(weights, [flat.p for flat in optimizer.flats]), say

    for kind in kinds:
        optimizer, name = trained(kind, 2), kind.kind
        p = torch.nn.Parameter(torch.rand(3, 4))
        foreign = torch.optim.Adam([p])
        p.grad = torch.rand_like(p)
        foreign.step()
        refused(optimizer, foreign.state_dict(), f"a state of {name} lacks lambcast (expected: "
                "state, param_groups, lambcast; found: param_groups, state)")
        refused(optimizer, [1], f"a state of {name} lacks state, param_groups, lambcast")
        for other in kinds:
            if other is kind:
                continue
            saved = trained(other, 3).state_dict()
            refused(optimizer, saved, f"a state of {other.kind} (expected: of {name})")
            del saved["lambcast"]["optimizer"]  # as earlier releases wrote them
            refused(optimizer, saved, f"of {name}")

        def changed(change):
            saved = trained(kind, 3).state_dict()
            change(saved)
            return saved
        refused(optimizer, changed(lambda s: s["lambcast"].update(rank=s["lambcast"]["rank"] + 1)),
                "the state of rank")
        refused(optimizer, changed(lambda s: s["lambcast"].pop("owed")), "lacks owed")
        refused(optimizer, changed(lambda s: s["lambcast"]["owed"][0].pop("server_error")),
                "what stretch 0 owes lacks server_error")
        refused(optimizer, changed(lambda s: s["lambcast"]["owed"][0].update(
            worker_error=torch.ones(1))), "worker_error of stretch 0: (1,) was saved where it is")
        refused(optimizer, changed(lambda s: s["lambcast"]["stage"].clear()), "the stage of")
        refused(optimizer, changed(lambda s: s["state"].pop(1)), "without parameter 1")
        refused(optimizer, changed(lambda s: s["state"][1].pop("exp_avg_sq")),
                "the state of parameter 1 lacks exp_avg_sq")
        refused(optimizer, changed(lambda s: s["state"][1].update(max_exp_avg_sq=0)),
                "the state of parameter 1 has max_exp_avg_sq")
        refused(optimizer, changed(lambda s: s["state"][0].update(exp_avg=torch.ones(4))),
                "exp_avg of parameter 0: (4,) was saved where it is (3, 4)")
        refused(optimizer, changed(lambda s: s["state"][0].update(master=torch.ones(4))),
                "master of parameter 0: (4,)")
        refused(optimizer, changed(lambda s: s["param_groups"].pop()), "1 groups were saved")
        refused(optimizer, changed(lambda s: s["param_groups"][0]["params"].append(9)),
                "group 0 of 2 parameters was saved where one of 1 is")
        refused(optimizer, changed(lambda s: s["param_groups"][0].update(eps=1.0)),
                "allowed per group")
        refused(optimizer, changed(lambda s: s["param_groups"][0].update(non_freeze=True)),
                "group 0 was saved with non_freeze True where it is False")
        refused(optimizer, changed(lambda s: s["param_groups"][0].pop("betas")),
                f"group 0 of a state of {name} lacks betas")
        right = trained(kind, 3).state_dict()
        optimizer.load_state_dict(right)
        assert same(right, optimizer.state_dict()), name
        masked = copy.deepcopy(right)
        masked["param_groups"][0]["exp_avg_mask"] = torch.zeros(3, 4)
        optimizer.load_state_dict(masked)
        assert "exp_avg_mask" not in optimizer.param_groups[0]

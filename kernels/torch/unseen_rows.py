"""A part of training_test.py: what 1-bit optimizers do to weights that no gradient has reached."""

import torch
import torch.distributed as dist


def stay(average):
    """Rows of an embedding that no token asked for before the freeze: a sign divided by eps moved
    them by 1,000 and more. What is first asked for after the freeze has no variance to be divided by
    either."""
    import lambcast.torch as lambcast
    early, late, rows = 40, 45, 50
    settings = {lambcast.OneBitAdam: dict(freeze_step=8), lambcast.OneBitLamb: dict(freeze_step=8),
                lambcast.ZeroOneAdam: dict(var_freeze_step=8, var_update_scaler=2,
                                           local_step_scaler=4, local_step_clipper=4)}

    def trained(kind, moves_unseen, resume_at=None, weight_decay=0.0):
        torch.manual_seed(7)
        model = torch.nn.Sequential(torch.nn.Embedding(rows, 4), torch.nn.Linear(4, 3))

        def made():
            return kind(model.parameters(), lr=0.01, moves_unseen=moves_unseen,
                        weight_decay=weight_decay, **settings[kind])
        optimizer, before = made(), model[0].weight.detach().clone()
        tokens = torch.Generator(before.device).manual_seed(dist.get_rank())
        for k in range(20):
            if k == resume_at:
                state = optimizer.state_dict()
                optimizer = made()
                optimizer.load_state_dict(state)
            ids = torch.randint(early if k < 10 else late, (64,), generator=tokens, device=before.device)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(ids), ids % 3).backward()
            if optimizer.averages_gradients:
                average(optimizer, model)
            optimizer.step()
        return model[0].weight.detach(), before

    def moved(*arguments):
        after, before = trained(*arguments)
        return (after - before).abs()

    for kind in settings:
        for resume_at in (None, 15):
            own = moved(kind, False, resume_at)
            assert own[:early].max() > 1e-3, f"{kind.kind}: nothing moved"
            assert own[early:].max() == 0, f"{kind.kind}: {own[early:].max()}"
        if kind is not lambcast.OneBitLamb:  # whose steps have lengths of their own
            after, before = trained(kind, False, None, 0.1)
            for _ in range(20):
                before -= 0.01 * (0.1 * before)
            assert (after - before)[late:].abs().max() < 1e-6, f"{kind.kind}: no decay alone"
        theirs = moved(kind, True)
        assert theirs[early:].min() > 100, f"{kind.kind}: {theirs[early:].min()}"

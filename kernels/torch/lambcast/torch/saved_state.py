"""What a saved state must be for an optimizer to load it: all of it is looked at before anything is
written, so that a refused state leaves the optimizer as it was."""

import torch.distributed as dist

PARTS = ("state", "param_groups", "lambcast")
OWN = ("rank", "ranks", "steps", "stage", "owed")
# Keys of a group that the script sets in every run: a mask may change between stages of a training.
NOT_LOADED = {"params", "exp_avg_mask"}


def check(saved, optimizer):
    """Raises ValueError, in one line, for what is not a state of this optimizer on this rank."""
    kind = optimizer.kind
    _has(saved, PARTS, f"a state of {kind}")
    own = saved["lambcast"]
    if isinstance(own, dict) and own.get("optimizer", kind) != kind:
        raise ValueError(f"lambcast: a state of {own['optimizer']} (expected: of {kind})")
    _has(own, OWN, f"'lambcast' of a state of {kind}")
    _check_stage(own["stage"], optimizer._stage(), f"the stage of a state of {kind}")
    _check_groups(saved["param_groups"], optimizer)
    _check_parameters(saved["state"], optimizer)
    _check_owed(own, optimizer)


def merged(group, saved):
    """The group with what was saved of it."""
    return {**group, **{key: value for key, value in saved.items() if key not in NOT_LOADED}}


def _has(part, keys, what):
    found = sorted(map(str, part)) if isinstance(part, dict) else type(part).__name__
    missing = [key for key in keys if not isinstance(part, dict) or key not in part]
    if missing:
        raise ValueError(f"lambcast: {what} lacks {', '.join(missing)} (expected: "
                         f"{', '.join(keys)}; found: "
                         f"{found if isinstance(found, str) else ', '.join(found) or 'nothing'})")


def _check_stage(saved, here, what):
    _has(saved, tuple(here), what)
    for key, value in here.items():
        if isinstance(value, dict):
            _check_stage(saved[key], value, f"{key} in {what}")
        elif isinstance(value, list) and len(saved[key]) != len(value):
            raise ValueError(f"lambcast: {key} in {what}: {len(saved[key])} were saved where there "
                             f"are {len(value)}")


def _check_groups(saved, optimizer):
    here = optimizer.param_groups
    if len(saved) != len(here):
        raise ValueError(f"lambcast: {len(saved)} groups were saved, there are {len(here)}")
    for i, (group, other) in enumerate(zip(here, saved)):
        _has(other, ("params", *optimizer.defaults), f"group {i} of a state of {optimizer.kind}")
        if len(group["params"]) != len(other["params"]):
            raise ValueError(f"lambcast: group {i} of {len(other['params'])} parameters was saved "
                             f"where one of {len(group['params'])} is")
        never = [bool(g.get("non_freeze", False)) for g in (group, other)]
        if never[0] != never[1]:
            raise ValueError(f"lambcast: group {i} was saved with non_freeze {never[1]} where it "
                             f"is {never[0]}")
    optimizer._check_groups([merged(*pair) for pair in zip(here, saved)])


def _check_parameters(saved, optimizer):
    for number, parts in optimizer._parts():
        if number not in saved:
            raise ValueError(f"lambcast: a state without parameter {number} (expected: one of each, "
                             "by its number in the groups)")
        _has(saved[number], tuple(parts), f"the state of parameter {number}")
        unknown = sorted(set(saved[number]) - set(parts) - {"step", "master"})
        if unknown:
            raise ValueError(f"lambcast: the state of parameter {number} has "
                             f"{', '.join(unknown)} (expected of {optimizer.kind}: step, "
                             f"{', '.join(parts)})")
        for key, part in parts.items():
            _same_shape(saved[number][key], part, f"{key} of parameter {number}")
        if "master" in saved[number]:
            _same_shape(saved[number]["master"], parts["exp_avg"], f"master of parameter {number}")


def _same_shape(saved, here, what):
    if getattr(saved, "shape", None) != here.shape:
        raise ValueError(f"lambcast: {what}: {_shape(saved)} was saved where it is {_shape(here)}")


def _shape(value):
    return tuple(value.shape) if hasattr(value, "shape") else repr(value)


def _check_owed(own, optimizer):
    rank = dist.get_rank(optimizer.process_group)
    if own["ranks"] != optimizer.ranks:
        return  # what they owed is forgotten, with a warning
    if own["rank"] != rank:
        raise ValueError(f"lambcast: the state of rank {own['rank']} on rank {rank}; every rank "
                         "saves and loads what it owes itself")
    if len(own["owed"]) != len(optimizer.exchanges):
        raise ValueError(f"lambcast: what {len(own['owed'])} stretches owe was saved where there "
                         f"are {len(optimizer.exchanges)}")
    for i, (exchange, owed) in enumerate(zip(optimizer.exchanges, own["owed"])):
        if exchange is None:
            continue
        here = {"worker_error": exchange.worker_error, "server_error": exchange.server_error}
        _has(owed, tuple(here), f"what stretch {i} owes")
        for key, part in here.items():
            _same_shape(owed[key], part, f"{key} of stretch {i}")

"""Inverse dynamics with gradients for batches of torch on the CPU: against adam-robotics, on the same arm."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import rbd_ros as rbd

from .robots import pairs, robot_file
from .timing import interleaved, table

STATES = 4096
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda function, x: function(*(y.detach() for y in x)),
    "values and gradients": lambda function, x: torch.autograd.grad(function(*x).square().sum(), x)}


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns ratios of adam's time to ours, after a check that values and gradients are the same."""
    from adam import Representations
    from adam.pytorch import KinDynComputationsBatch

    torch.set_num_threads(1)
    p = pairs(STATES)[0]
    # its batches have no prismatic joints: the fingers are fixed, as in our model
    text = robot_file("panda_description/urdf/panda.urdf").read_text(encoding="utf-8").replace('"prismatic"', '"fixed"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = KinDynComputationsBatch(text, list(p.ours.joint_names), dtype=torch.float64, device=torch.device("cpu"),
                                       gravity=torch.tensor([*p.ours.gravity, 0.0, 0.0, 0.0]))
    peer.set_frame_velocity_representation(Representations.BODY_FIXED_REPRESENTATION)
    base = torch.eye(4, dtype=torch.float64).repeat(STATES, 1, 1)
    still = torch.zeros(STATES, 6, dtype=torch.float64)

    def theirs(q: Any, v: Any, a: Any) -> Any:
        """It has no inverse dynamics of a fixed base: M a + h."""
        M = peer.mass_matrix(base, q)[:, 6:, 6:]
        return (M @ a[..., None])[..., 0] + peer.bias_force(base, q, still, v)[:, 6:]

    functions = {"adam": theirs, "ours": rbd.torch_function(p.ours, "inverse_dynamics"),
                 "own code": rbd.torch_function(rbd.specialize(p.ours), "inverse_dynamics")}
    x = [torch.tensor(y, requires_grad=True) for y in (p.q, p.v, p.a)]
    results = {name: [each(*x).detach(), *KINDS["values and gradients"](each, x)] for name, each in functions.items()}
    for name in ("ours", "own code"):
        for left, right in zip(results[name], results["adam"], strict=True):
            torch.testing.assert_close(left, right, rtol=0.0, atol=1e-9 * float(right.abs().max()))
    found, rows = {}, []
    for kind, call in KINDS.items():
        times = interleaved({name: lambda each=each, call=call: call(each, x) for name, each in functions.items()},
                            5 if quick else 25)
        ratios = {name: times["adam"] / times[name] for name in ("ours", "own code")}
        found |= {f"{kind} {name}": ratio for name, ratio in ratios.items()}
        rows.append([kind, *(f"{1e3 * times[name]:.2f}" for name in functions),
                     *(f"{ratio:.0f}" for ratio in ratios.values())])
    table(f"Panda, inverse dynamics of {STATES} states in torch, float64, one thread: ms, and ratios to adam",
          ["", "adam", "ours", "own code", "adam / ours", "adam / own code"], rows)
    return found

"""Inverse dynamics with gradients for batches of torch on the CPU: against adam-robotics, BARD (where `bard` can be
imported; without gradients, which its buffers refuse) and Pinocchio called for one state after the other.
"""
from __future__ import annotations

import importlib.util
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import torch

import rbd_ros as rbd

from .robots import Pair, pairs, robot_file
from .timing import interleaved, table

STATES = 4096
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda function, x: function(*(y.detach() for y in x)),
    "values and gradients": lambda function, x: torch.autograd.grad(function(*x).square().sum(), x)}


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns ratios of the others' times to ours, after a check that all values and gradients are the
    same.
    """
    torch.set_num_threads(1)
    p = pairs(STATES)[0]
    # batches of adam have no prismatic joints: the fingers are fixed, as in our model
    text = robot_file("panda_description/urdf/panda.urdf").read_text(encoding="utf-8").replace('"prismatic"', '"fixed"')
    peers = {"adam": _adam(p, text), "bard": _bard(text), "pinocchio": _pinocchio(p)}
    ours = {"ours": rbd.torch_function(p.ours, "inverse_dynamics"),
            "own code": rbd.torch_function(rbd.specialize(p.ours), "inverse_dynamics")}
    x = [torch.tensor(y, requires_grad=True) for y in (p.q, p.v, p.a)]
    found, rows = {}, []
    for kind, call in KINDS.items():
        functions = {name: each for name, each in (peers | ours).items()
                     if each is not None and (kind == "values" or name not in ("bard", "pinocchio"))}
        results = {name: call(each, x) for name, each in functions.items()}
        for name, result in results.items():
            torch.testing.assert_close(result, results["ours"], rtol=0.0, msg=f"{kind} of {name}",
                                       atol=1e-9 * max(float(y.abs().max()) for y in results["ours"]))
        times = interleaved({name: lambda each=each, call=call: call(each, x) for name, each in functions.items()},
                            5 if quick else 25)
        for name in functions:
            ratios = {our: times[name] / times[our] for our in ours}
            rows.append([kind, name, f"{1e3 * times[name]:.2f}", *(f"{ratio:.1f}" for ratio in ratios.values())])
            found |= {f"{kind} {name} / {our}": ratio for our, ratio in ratios.items()}
    table(f"Panda, inverse dynamics of {STATES} states in torch, float64, one thread: ms, and ratios to ours",
          ["", "", "ms", "/ ours", "/ own code"], rows)
    return found


def _adam(p: Pair, text: str) -> Callable[..., Any]:
    """It has no inverse dynamics of a fixed base: M a + h."""
    from adam import Representations
    from adam.pytorch import KinDynComputationsBatch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = KinDynComputationsBatch(text, list(p.ours.joint_names), dtype=torch.float64, device=torch.device("cpu"),
                                       gravity=torch.tensor([*p.ours.gravity, 0.0, 0.0, 0.0]))
    peer.set_frame_velocity_representation(Representations.BODY_FIXED_REPRESENTATION)
    base = torch.eye(4, dtype=torch.float64).repeat(STATES, 1, 1)
    still = torch.zeros(STATES, 6, dtype=torch.float64)

    def function(q: Any, v: Any, a: Any) -> Any:
        M = peer.mass_matrix(base, q)[:, 6:, 6:]
        return (M @ a[..., None])[..., 0] + peer.bias_force(base, q, still, v)[:, 6:]

    return function


def _bard(text: str) -> Callable[..., Any] | None:
    if importlib.util.find_spec("bard") is None:
        return None
    import bard

    with tempfile.TemporaryDirectory() as folder:    # it reads files
        path = Path(folder, "arm.urdf")
        path.write_text(text, encoding="utf-8")
        model = bard.build_model_from_urdf(str(path))
    model.to(dtype=torch.float64)
    data = bard.create_data(model, STATES)

    def function(q: Any, v: Any, a: Any) -> Any:
        with torch.no_grad():
            bard.update_kinematics(model, data, q, v)
            return bard.rnea(model, data, a)

    return function


def _pinocchio(p: Pair) -> Callable[..., Any]:
    """A loop over the states, with arrays on torch's memory, as BARD's authors compare."""
    data = p.theirs.createData()

    def function(*x: Any) -> Any:
        efforts = np.empty(x[0].shape)
        for effort, *state in zip(efforts, *(y.numpy() for y in x), strict=True):
            effort[:] = pin.rnea(p.theirs, data, *state)
        return torch.from_numpy(efforts)

    return function

"""Hybrid and constrained dynamics: against plain forward dynamics, against Pinocchio, and as chains grow."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd

from .chains import chain
from .robots import pairs
from .timing import interleaved, table

LENGTHS = (30, 100, 300, 1000)
PEER = 100    # the longest chain for Pinocchio, whose data grow with the cube of the length


def pinocchio_chain(count: int) -> pin.Model:
    """The chain of `chains.chain`, in Pinocchio."""
    model, parent = pin.Model(), 0
    inertia = pin.Inertia(1.0, np.array([0.0, 0.0, 0.05]), np.diag([1e-3, 1e-3, 5e-4]))
    for i in range(count):
        joint = pin.JointModelRY() if i % 2 else pin.JointModelRX()
        parent = model.addJoint(parent, joint, pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1])), f"joint_{i}")
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model


def closed_chain(count: int) -> tuple[dict[str, Callable[[], Any]], float]:
    """A chain whose last link the world holds with six axes, in both libraries, at one consistent state."""
    model = chain(count)
    rng = np.random.default_rng(count)
    q, v, tau = rng.uniform(-0.3, 0.3, size=(3, count))
    constraints = rbd.anchored(model, rbd.ConstraintSet([rbd.FixedContact(f"link_{count}")]), q)
    q, v = rbd.project(model, constraints, q, v)
    calls = {"ours": lambda: rbd.constrained_forward_dynamics(model, constraints, q, v, tau),
             "free": lambda: rbd.forward_dynamics(model, q, v, tau)}
    if count > PEER:
        return calls, float("nan")
    theirs = pinocchio_chain(count)
    world = constraints.constraints[0].world    # type: ignore[union-attr]
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, theirs, count, pin.SE3.Identity(), 0,
                                           pin.SE3(np.asarray(world)), pin.LOCAL))
    data.append(models[0].createData())
    working = theirs.createData()
    pin.initConstraintDynamics(theirs, working, models, data)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)
    calls["pin"] = lambda: pin.constraintDynamics(theirs, working, q, v, tau, models, data, settings)
    expected = calls["pin"]().copy()
    return calls, float(np.abs(calls["ours"]().acceleration - expected).max() / np.abs(expected).max())


def hybrid(quick: bool) -> dict[str, float]:
    """Hybrid dynamics over forward dynamics, half of the coordinates prescribed."""
    rows, found = [], {}
    for p in pairs(2):
        m, q, v, a = p.ours, p.q[0].copy(), p.v[0].copy(), p.a[0].copy()
        tau = rbd.inverse_dynamics(m, q, v, a)
        mask = np.arange(m.nv) % 2 == 0
        times = interleaved({"hybrid": lambda: rbd.hybrid_dynamics(m, q, v, a, tau, mask),    # noqa: B023
                             "forward": lambda: rbd.forward_dynamics(m, q, v, tau)}, 9 if quick else 25)    # noqa: B023
        found[p.name] = times["hybrid"] / times["forward"]
        rows.append([p.name, *(f"{1e6 * times[key]:.2f}" for key in ("hybrid", "forward")), f"{found[p.name]:.2f}"])
    table("Hybrid dynamics (µs, medians, interleaved)", ["robot", "hybrid", "forward", "ratio"], rows)
    return found


def run(quick: bool = False) -> dict[str, Any]:
    """Print the tables; returns ratios, and the exponent of growth from 100 to 1,000 bodies."""
    found: dict[str, Any] = {"hybrid over forward": hybrid(quick), "constrained over Pinocchio": {}}
    rows, ours_by = [], {}
    for count in LENGTHS:
        calls, error = closed_chain(count)
        times = interleaved(calls, 9 if quick else 25)
        ours_by[count] = times["ours"]
        peer = ["–", "–", "–"]
        if "pin" in times:
            ratio = found["constrained over Pinocchio"][count] = times["ours"] / times["pin"]
            peer = [f"{1e6 * times['pin']:.1f}", f"{ratio:.2f}", f"{error:.0e}"]
        rows.append([f"{count} dof", f"{1e6 * times['ours']:.1f}", *peer, f"{1e6 * times['free']:.1f}",
                     f"{1e9 * times['ours'] / count:.0f}"])
    table("Constrained forward dynamics, one constraint of six axes (µs, medians, interleaved)",
          ["chain", "rbd_ros", "Pinocchio", "ratio", "difference", "unconstrained", "ns/body"], rows)
    growth = found["growth"] = float(np.log10(ours_by[1000] / ours_by[100]))
    print(f"  growth from 100 to 1,000 bodies: n^{growth:.2f}")
    return found

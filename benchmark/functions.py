"""Every public function against Pinocchio from Python, single calls and batches, on the same states."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd

from .robots import Pair, pairs
from .timing import interleaved, table

BATCH = 10_000


def single_calls(p: Pair) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Name → (ours, Pinocchio's), both from Python on one state, input checks included."""
    m, w, d = p.ours, p.theirs, p.theirs.createData()
    q, v, a = p.q[0].copy(), p.v[0].copy(), p.a[0].copy()
    x, y, z = p.q_pin[0].copy(), p.v_pin[0].copy(), p.a_pin[0].copy()
    tau = rbd.inverse_dynamics(m, q, v, a)
    t = pin.rnea(w, d, x, y, z).copy()
    body = m.body_names[-1]
    frame = w.getFrameId(body)
    return {
        "inverse_dynamics": (lambda: rbd.inverse_dynamics(m, q, v, a), lambda: pin.rnea(w, d, x, y, z)),
        "forward_dynamics": (lambda: rbd.forward_dynamics(m, q, v, tau), lambda: pin.aba(w, d, x, y, t)),
        "mass_matrix": (lambda: rbd.mass_matrix(m, q), lambda: pin.crba(w, d, x)),
        "bias_effort": (lambda: rbd.bias_effort(m, q, v), lambda: pin.nonLinearEffects(w, d, x, y)),
        "gravity_effort": (lambda: rbd.gravity_effort(m, q), lambda: pin.computeGeneralizedGravity(w, d, x)),
        "forward_kinematics": (lambda: rbd.forward_kinematics(m, q), lambda: pin.framesForwardKinematics(w, d, x)),
        "jacobian": (lambda: rbd.jacobian(m, q, body), lambda: pin.computeFrameJacobian(w, d, x, frame)),
        "body_velocities": (lambda: rbd.body_velocities(m, q, v), lambda: pin.forwardKinematics(w, d, x, y)),
        "kinetic_energy": (lambda: rbd.kinetic_energy(m, q, v), lambda: pin.computeKineticEnergy(w, d, x, y)),
        "potential_energy": (lambda: rbd.potential_energy(m, q), lambda: pin.computePotentialEnergy(w, d, x)),
        "centroidal_momentum": (lambda: rbd.centroidal_momentum(m, q, v),
                                lambda: pin.computeCentroidalMomentum(w, d, x, y)),
        "integrate": (lambda: m.integrate(q, v), lambda: pin.integrate(w, x, y)),
        "difference": (lambda: m.difference(q, p.q[1]), lambda: pin.difference(w, x, p.q_pin[1])),
    }


def batches(p: Pair) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Name → (ours, Pinocchio's parallel functions with one thread, or its single call once per state)."""
    m, w, d = p.ours, p.theirs, p.theirs.createData()
    pool = pin.ModelPool(w, 1)
    x, y, z = (np.asfortranarray(array.T) for array in (p.q_pin, p.v_pin, p.a_pin))
    tau = rbd.inverse_dynamics(m, p.q, p.v, p.a)
    t = np.zeros((m.nv, len(p.q)), order="F")
    t[p.order] = tau.T
    out = np.empty((m.nv, len(p.q)), order="F")
    body = m.body_names[-1]
    frame = w.getFrameId(body)
    return {
        "inverse_dynamics": (lambda: rbd.inverse_dynamics(m, p.q, p.v, p.a),
                             lambda: pin.rneaInParallel(1, pool, x, y, z, out)),
        "forward_dynamics": (lambda: rbd.forward_dynamics(m, p.q, p.v, tau),
                             lambda: pin.abaInParallel(1, pool, x, y, t, out)),
        "mass_matrix": (lambda: rbd.mass_matrix(m, p.q), lambda: [pin.crba(w, d, s) for s in p.q_pin]),
        "forward_kinematics": (lambda: rbd.forward_kinematics(m, p.q),
                               lambda: [pin.framesForwardKinematics(w, d, s) for s in p.q_pin]),
        "jacobian": (lambda: rbd.jacobian(m, p.q, body),
                     lambda: [pin.computeFrameJacobian(w, d, s, frame) for s in p.q_pin]),
        "kinetic_energy": (lambda: rbd.kinetic_energy(m, p.q, p.v),
                           lambda: [pin.computeKineticEnergy(w, d, *s) for s in zip(p.q_pin, p.v_pin, strict=True)]),
    }


def run(quick: bool = False) -> dict[str, Any]:
    """Print both tables; returns ratios by robot and function."""
    found: dict[str, Any] = {"single": {}, "batch": {}}
    robots = pairs(200 if quick else BATCH)
    for kind, make in (("single", single_calls), ("batch", batches)):
        rows = []
        for p in robots:
            calls = make(p)
            times = interleaved({f"{side} {name}": pair[i] for name, pair in calls.items()
                                 for i, side in enumerate(("ours", "pin"))},
                                rounds=7 if kind == "batch" else 25 if quick else 99)
            scale = 1e6 if kind == "single" else 1e6 / len(p.q)
            for name in calls:
                ours, theirs = times[f"ours {name}"] * scale, times[f"pin {name}"] * scale
                found[kind].setdefault(p.name, {})[name] = ours / theirs
                rows.append([f"{p.name} {name}", f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}"])
        what = ("Single calls from Python" if kind == "single"
                else f"Batches of {len(robots[0].q)}, one thread, per state")
        table(f"{what} (µs, medians, interleaved)", ["function", "rbd_ros", "Pinocchio", "ratio"], rows)
    return found

"""Derivatives of the dynamics against Pinocchio from Python, on the same states; what only we have in microseconds."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd

from .robots import pairs
from .timing import interleaved, table


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns ratios by robot and function."""
    rows, found = [], {}
    for p in pairs(2):
        m, w, d = p.ours, p.theirs, p.theirs.createData()
        q, v, a = p.q[0].copy(), p.v[0].copy(), p.a[0].copy()
        x, y, z = p.q_pin[0].copy(), p.v_pin[0].copy(), p.a_pin[0].copy()
        tau, t = rbd.inverse_dynamics(m, q, v, a), pin.rnea(w, d, x, y, z).copy()
        tangent = rbd.Tangent(v, a, a, tau)
        several = rbd.Tangents(m, [tangent, *(rbd.Tangent(inertias={name: np.ones(10)}) for name in m.body_names[-3:]),
                                   rbd.Tangent(gravity=[1.0, 0.0, 0.0]), rbd.Tangent(q=a), rbd.Tangent(tau=tau)])
        mask = np.arange(m.nv) % 2 == 0
        ours: dict[str, Callable[[], Any]] = {
            "inverse_dynamics_derivatives": lambda: rbd.inverse_dynamics_derivatives(m, q, v, a),    # noqa: B023
            "forward_dynamics_derivatives": lambda: rbd.forward_dynamics_derivatives(m, q, v, tau),    # noqa: B023
            "inertial_regressor": lambda: rbd.inertial_regressor(m, q, v, a),    # noqa: B023
            "hybrid_dynamics_derivatives":
                lambda: rbd.hybrid_dynamics_derivatives(m, q, v, a, tau, mask),    # noqa: B023
            "inverse_dynamics_directional": lambda: rbd.inverse_dynamics_directional(m, q, v, a, tangent),    # noqa: B023
            "forward_dynamics_directional": lambda: rbd.forward_dynamics_directional(m, q, v, tau, tangent),    # noqa: B023
            "seven inverse_dynamics_directional":
                lambda: rbd.inverse_dynamics_directional(m, q, v, a, several),    # noqa: B023
            "seven forward_dynamics_directional":
                lambda: rbd.forward_dynamics_directional(m, q, v, tau, several),    # noqa: B023
            "forward_dynamics": lambda: rbd.forward_dynamics(m, q, v, tau),    # noqa: B023
            "inverse_dynamics_second_derivatives":
                lambda: rbd.inverse_dynamics_second_derivatives(m, q, v, a),    # noqa: B023
        }
        theirs: dict[str, Callable[[], Any]] = {
            "inverse_dynamics_derivatives": lambda: pin.computeRNEADerivatives(w, d, x, y, z),    # noqa: B023
            "forward_dynamics_derivatives": lambda: pin.computeABADerivatives(w, d, x, y, t),    # noqa: B023
            "inertial_regressor": lambda: pin.computeJointTorqueRegressor(w, d, x, y, z),    # noqa: B023
        }
        times = interleaved({**ours, **{f"pin {name}": call for name, call in theirs.items()}}, 9 if quick else 49)
        found[p.name] = {name: times[name] / times[f"pin {name}"] for name in theirs}
        for name in ours:
            peer = times.get(f"pin {name}")
            rows.append([f"{p.name} {name}", f"{1e6 * times[name]:.2f}", f"{1e6 * peer:.2f}" if peer else "–",
                         f"{times[name] / peer:.2f}" if peer else "–"])
    table("Derivatives (µs, medians, interleaved)", ["function", "rbd_ros", "Pinocchio", "ratio"], rows)
    return found

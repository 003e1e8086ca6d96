"""What an arm carries and how its joints rub, by torch's optimizer through the forward dynamics of the arm.

    python3 examples/torch_identification.py

A simulated 7R arm carries an unknown load, under torques that follow a motion. Short pieces of its recorded motion are
predicted by Runge–Kutta steps of forward dynamics; LBFGS changes the load's ten inertial parameters and the joints'
viscous friction until predictions and measurements agree. Needs torch (`pip install torch`); takes half a minute.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import rbd_ros as rbd

Array = NDArray[np.float64]
STEP, WINDOW, SAMPLES = 2e-3, 5, 1000     # s; steps of a predicted piece; recorded steps
LOAD = rbd.Inertia(2.5, np.array([0.03, -0.02, 0.12]), np.diag([0.015, 0.02, 0.012]))
DAMPING = np.array([0.5, 0.8, 0.4, 0.6, 0.2, 0.1, 0.05])       # N m s/rad
NOISE = 1e-5, 2e-4                         # of positions and velocities, rad and rad/s


class Recording(NamedTuple):
    """States (N + 1, nv) and the torques (N, nv) held in each step."""

    q: Array
    v: Array
    tau: Array


class Result(NamedTuple):
    """Estimates; error: of the torques of another motion, relative to them."""

    mass: float
    com: Array
    damping: Array
    error: float


def record(model: rbd.RobotModel) -> Recording:
    """The arm with its load, under torques of a model without it that follow sines, with feedback."""
    rng = np.random.default_rng(1)
    amplitude, frequency, phase = rng.uniform(0.3, 0.6, 7), rng.uniform(2.0, 6.0, 7), rng.uniform(0.0, 6.0, 7)
    real = model.with_payload(model.body_names[-1], LOAD).with_(damping=DAMPING)
    middle = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
    positions, velocities, torques = [middle], [np.zeros(7)], []
    for k in range(SAMPLES):
        angle = frequency * k * STEP + phase
        wanted, speed = amplitude * np.sin(angle), amplitude * frequency * np.cos(angle)
        tau = rbd.inverse_dynamics(model, positions[-1], speed, -frequency**2 * wanted + 30.0 * (
            middle + wanted - positions[-1]) + 8.0 * (speed - velocities[-1]))
        motion = rbd.simulate(real, positions[-1], velocities[-1], tau, step=STEP / 2, n=2, integrator="rk4")
        positions.append(motion.q[-1])
        velocities.append(motion.v[-1])
        torques.append(tau)
    noise = [scale * rng.normal(size=(SAMPLES + 1, 7)) for scale in NOISE]
    return Recording(np.array(positions) + noise[0], np.array(velocities) + noise[1], np.array(torques))


def physical(x: Any) -> Any:
    """Ten parameters of a body that can exist, from any ten numbers: of the pseudo-inertia L Lᵀ."""
    L = torch.zeros(4, 4, dtype=x.dtype)
    rows, columns = torch.tril_indices(4, 4)
    L = L.index_put((rows, columns), x)
    P = L @ L.T
    J = torch.trace(P[:3, :3]) * torch.eye(3, dtype=x.dtype) - P[:3, :3]
    return torch.cat([P[3, 3:], P[3, :3], torch.stack([J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]])])


def identify(model: rbd.RobotModel, recording: Recording) -> tuple[Array, Array]:
    """The load's parameters (10,), and the damping (nv,)."""
    own = torch.tensor(model.inertial_parameters[-10:])
    dynamics = rbd.torch_function(model, "forward_dynamics", inertias=[model.body_names[-1]],
                                  friction=rbd.Friction(damping=np.ones(7)), friction_fields=["damping"])
    starts = np.arange(0, SAMPLES - WINDOW + 1, WINDOW)
    q, v = (torch.tensor(x[starts]) for x in (recording.q, recording.v))
    tau = [torch.tensor(recording.tau[starts + k]) for k in range(WINDOW)]
    end = [torch.tensor(x[starts + WINDOW]) for x in (recording.q, recording.v)]
    body = torch.tensor(np.linalg.cholesky(np.diag([0.1, 0.1, 0.1, 1.0]))[np.tril_indices(4)], requires_grad=True)
    rub = torch.full((7,), -1.0, dtype=torch.float64, requires_grad=True)    # logarithms
    optimizer = torch.optim.LBFGS([body, rub], max_iter=300, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def predicted(inertias: Any, damping: Any) -> tuple[Any, Any]:
        x, u = q, v
        for held in tau:
            slopes = []
            for share, last in ((0.0, None), (0.5, 0), (0.5, 1), (1.0, 2)):
                du, da = (0.0, 0.0) if last is None else slopes[last]
                speed = u + share * STEP * da
                slopes.append((speed, dynamics(x + share * STEP * du, speed, held, inertias, damping)))
            mean = [(a + 2.0 * b + 2.0 * c + d) / 6.0 for a, b, c, d in zip(*slopes, strict=True)]
            x, u = x + STEP * mean[0], u + STEP * mean[1]
        return x, u

    def closure() -> Any:
        optimizer.zero_grad()
        errors = [(found - wanted) / noise for found, wanted, noise in zip(
            predicted(own + physical(body), rub.exp()), end, NOISE, strict=True)]
        loss = sum(error.square().mean() for error in errors)
        loss.backward()
        return loss

    optimizer.step(closure)
    return physical(body).detach().numpy(), rub.exp().detach().numpy()


def main(quiet: bool = False) -> Result:
    model = rbd.sample("iiwa").with_(damping=0.0, friction=0.0)
    load, damping = identify(model, record(model))
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 100, 7))
    real = rbd.inverse_dynamics(model.with_payload(model.body_names[-1], LOAD), q, v, a,
                                friction=rbd.Friction(damping=DAMPING))
    Y = rbd.inertial_regressor(model, q, v, a)[..., -10:]
    found = rbd.inverse_dynamics(model, q, v, a, friction=rbd.Friction(damping=damping)) + Y @ load
    result = Result(float(load[0]), load[1:4] / load[0], damping,
                    float(np.linalg.norm(found - real) / np.linalg.norm(real)))
    if not quiet:
        print(f"mass {result.mass:.4f} of {LOAD.mass} kg, centre {result.com.round(4)} of {LOAD.com} m")
        print(f"damping {result.damping.round(3)} of {DAMPING} N m s/rad")
        print(f"torques of another motion: {result.error:.1e} of them wrong")
    return result


if __name__ == "__main__":
    main()

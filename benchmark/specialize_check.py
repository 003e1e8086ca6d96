"""All robots of example-robot-data, fixed and floating: own code against the ordinary kernels, in every lane."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import rbd_ros as rbd

SIZES = (0, 1, 7, 8, 9, 10_001)
TOLERANCE = 1e-12    # relative to each state's largest number; where M(q) is solved with, times 1e-2 of its condition
DIFFERENT = 1009     # configurations among them
LARGEST = 3e6        # numbers of a result: of larger ones, batches are shorter


def robots() -> Iterator[tuple[str, Path]]:
    """Name and file of each description."""
    for file in sorted(metadata.files("example-robot-data") or []):
        if file.suffix == ".urdf":
            yield "/".join(file.parts[-3:]), Path(str(file.locate()))


def calls(model: rbd.RobotModel) -> dict[str, tuple[Callable[..., Any], int, bool]]:
    """By name: the call of a model and q, v, a; numbers of its result; whether it solves with M(q)."""
    mask = np.arange(model.nv) % 2 == 0
    body = model.body_names[-1]
    n = model.nv
    return {
        "inverse_dynamics": (rbd.inverse_dynamics, n, False),
        "forward_dynamics": (rbd.forward_dynamics, n, True),
        "mass_matrix": (lambda m, q, v, a: rbd.mass_matrix(m, q), n * n, False),
        "jacobian": (lambda m, q, v, a: rbd.jacobian(m, q, body, "world"), 6 * n, False),
        "hybrid_dynamics": (lambda m, q, v, a: rbd.hybrid_dynamics(m, q, v, a, a, mask), 2 * n, True),
        "inverse_dynamics_derivatives": (rbd.inverse_dynamics_derivatives, 3 * n * n, False),
        "inverse_dynamics_time_derivatives": (
            lambda m, q, v, a: rbd.inverse_dynamics_time_derivatives(m, q, v, a, a), 2 * n, False)}


def run(names: str = "") -> dict[str, Any]:
    """Print the largest error per robot; names: only robots whose name has this in it."""
    worst, violations = 0.0, 0
    for name, file in robots():
        if names not in name:
            continue
        for root in ("fixed", "floating"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rbd.RbdWarning)
                try:
                    model = rbd.load_urdf(file, root=root, mimic="independent")
                    errors, without = check(model)
                except rbd.RbdError as error:
                    print(f"{name} {root}: {error}")
                    continue
            wrong = [each for each, (error, scale) in errors.items() if not error <= TOLERANCE * scale]
            worst = max([worst, *(error / scale for error, scale in errors.values())])
            violations += len(wrong)
            shown = [f"{each} {error:.0e}" + (f" of {TOLERANCE * scale:.0e}" if scale > 1.0 else "")
                     for each, (error, scale) in errors.items()]
            print(f"{name} {root}, nv {model.nv}: {', '.join(shown)}"
                  + "".join(f"; ordinary kernels: {reason}" for reason in without)
                  + (f"  WRONG: {', '.join(wrong)}" if wrong else ""), flush=True)
    print(f"largest error {worst:.1e} of what the condition allows; beyond {TOLERANCE}: {violations}")
    return {"largest error": worst, "violations": violations}


def check(model: rbd.RobotModel) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Largest relative error of each function that has code of its own, and how many times `TOLERANCE` it may have; why
    the others have none.
    """
    fast = rbd.specialize(model)
    rng = np.random.default_rng(0)
    count = max(SIZES)
    q = np.array([model.random_configuration(rng) for _ in range(DIFFERENT)]).reshape(DIFFERENT, model.nq)
    q = q[np.arange(count) % DIFFERENT]
    v, a = rng.normal(size=(2, count, model.nv))
    condition = np.linalg.cond(rbd.mass_matrix(model, q[:9])).max(initial=0.0) if model.nv else 0.0
    errors: dict[str, float] = {}
    for name, (call, size, _) in calls(model).items():
        for count in SIZES:
            if count * size > LARGEST:
                count = int(LARGEST / size)
            given = (q[:count], v[:count], a[:count])
            try:
                expected = call(model, *given)
            except rbd.RbdError as error:    # a robot without inertia somewhere: the same error
                try:
                    call(fast, *given)
                except rbd.RbdError as own:
                    errors[name] = 0.0 if str(own) == str(error) else np.inf
                continue
            found = call(fast, *given)
            same = all(x.shape == y.shape for x, y in zip(_parts(expected), _parts(found), strict=True))
            errors[name] = max(errors.get(name, 0.0), _error(_rows(expected), _rows(found))) if same else np.inf
    scale = {name: max(1.0, 1e-2 * condition) if solves else 1.0 for name, (_, _, solves) in calls(model).items()}
    return ({name: (error, scale[name]) for name, error in errors.items() if fast.has_code(name)},
            [reason for reason in fast.functions.values() if isinstance(reason, str)])


def _error(x: np.ndarray, y: np.ndarray) -> float:
    """The largest of all states, each relative to its own largest number."""
    if not x.size:
        return 0.0
    return float((np.abs(x - y).max(axis=1) / np.maximum(np.abs(x).max(axis=1), 1e-300)).max())


def _rows(result: Any) -> np.ndarray:
    """All numbers of each state."""
    return np.concatenate([np.reshape(x, (len(x), int(np.prod(x.shape[1:])))) for x in _parts(result)], axis=1)


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)

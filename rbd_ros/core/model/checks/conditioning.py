"""Joints that make a mass matrix singular or ill-conditioned. Mass matrices are arguments: dynamics is a later layer.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import block
from ..inertia import Array
from ..robot_model import RobotModel
from .diagnosis import Finding, extent

MOST_COORDINATES = 300    # time grows with their cube, memory with their square
NOTHING, SINGULAR, NEARLY, ILL = 1e-13, 1e-12, 1e-7, 1e8
REMEDY = "give the links behind it an <inertial>, the joint a rotor_inertia, or lock it"


def lengths(model: RobotModel) -> NDArray[np.bool_]:
    """Which velocity coordinates (nv,) are translations."""
    is_length = np.zeros(model.nv, dtype=bool)
    for row, kind in model._kinds:
        if row[block.OWNER]:
            is_length[[int(row[block.IV]) + i for i in kind.v_lengths]] = True
    return is_length


def condition_numbers(model: RobotModel, matrices: Array) -> Array:
    """Condition numbers (N,) of matrices (N, nv, nv), with translations in units of the robot's length."""
    scale = np.where(lengths(model), max(extent(model.description), 0.1), 1.0)
    values = np.linalg.eigvalsh(matrices * np.outer(scale, scale))
    with np.errstate(divide="ignore", invalid="ignore"):    # of links without mass: 0 / 0
        return np.asarray(np.where(values[:, 0] > 0.0, values[:, -1] / values[:, 0], np.inf))


def conditioning(model: RobotModel, matrices: Array) -> list[Finding]:
    """Findings on mass matrices (N, nv, nv), the first at the neutral configuration, the others at random ones."""
    names = model.velocity_names
    if not np.isfinite(matrices).all():
        return [Finding("error", "mass matrix not finite", model.name, "numbers overflow", "check masses and lengths")]
    diagonal = np.einsum("nii->ni", matrices)
    largest = diagonal.max()
    unmoved = (diagonal.min(axis=0) <= NOTHING * largest)
    findings = []
    for i in np.flatnonzero(unmoved):
        smallest = float(diagonal[:, i].min())
        findings.append(Finding("error", "singular mass matrix", names[i],
                                f"moves no inertia (M_ii = {smallest:.2g})" if smallest >= 0.0 else
                                f"moves a negative inertia (M_ii = {smallest:.2g})", REMEDY))
    moved = np.flatnonzero(~unmoved)
    if not moved.size:
        return findings
    part = matrices[:, moved][:, :, moved]
    root = np.sqrt(diagonal[:, moved])
    values, vectors = np.linalg.eigh(part / (root[:, :, None] * root[:, None, :]))
    least = values[:, 0]
    bad = least < SINGULAR
    worst = int(np.argmin(least[1:])) + 1 if len(least) > 1 and bad[1:].any() else int(np.argmin(least))
    subject = _dominant(vectors[worst, :, 0], [names[i] for i in moved])
    if (least < -1e-9).any():
        findings.append(Finding("error", "indefinite mass matrix", subject,
                                "a motion of these joints has negative energy",
                                "a link behind them has a negative mass or an inertia that is not positive definite"))
    elif bad[1:].any():
        findings.append(Finding("error", "singular mass matrix", subject,
                                "moved against each other, these joints move no inertia", REMEDY))
    elif bad[0]:
        findings.append(Finding("warning", "singular at neutral", subject, "at the zero position, and not elsewhere, "
                                "they move the same inertia", "start somewhere else, or give the joints a "
                                "rotor_inertia"))
    elif least.min() < NEARLY:
        findings.append(Finding("warning", "nearly singular mass matrix", subject, "moved against each other they move "
                                f"{least.min():.1g} of what they move together", REMEDY))
    elif not findings:
        findings += _ill(model, matrices, diagonal)
    return findings


def _ill(model: RobotModel, matrices: Array, diagonal: Array) -> list[Finding]:
    numbers = condition_numbers(model, matrices)
    worst = int(np.argmax(numbers))
    if numbers[worst] <= ILL:
        return []
    is_length = lengths(model)
    scale = np.where(is_length, max(extent(model.description), 0.1), 1.0)
    _, vectors = np.linalg.eigh(matrices[worst] * np.outer(scale, scale))
    small, big = (int(np.argmax(np.abs(vectors[:, k]))) for k in (0, -1))
    names = model.velocity_names
    small_unit, big_unit = ("kg" if is_length[i] else "kg m²" for i in (small, big))
    return [Finding("warning", "ill-conditioned mass matrix", names[small],
                    f"condition number {numbers[worst]:.1e}: it moves {diagonal[worst, small]:.2g} {small_unit}, "
                    f"'{names[big]}' {diagonal[worst, big]:.3g} {big_unit}",
                    "check the inertia of its links; a real actuator adds rotor_inertia")]


def _dominant(vector: Array, names: list[str]) -> str:
    """Names of the largest components of a direction (nv,), largest first."""
    weight = np.abs(vector)
    order = [int(i) for i in np.argsort(-weight) if weight[i] >= 0.3 * weight.max()][:3]
    return ", ".join(names[i] for i in order)

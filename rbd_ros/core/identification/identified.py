"""What identification found: the model, its friction, how well it explains the efforts, and how sure that is."""
from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.friction import Friction, friction_effort, friction_of
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError
from ..model.inertia import Inertia, combine
from ..model.robot_model import RobotModel
from .base_parameters import BaseParameters
from .regressor_columns import columns_of, follower_rotors, inertia_of
from .transmission import Transmission
from .unknowns import Unknowns
from .urdf_writer import rewritten

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A base parameter: value, of the consistent model; linear, of unconstrained least squares, about which the 95 %
    interval reaches ± half_width; prior, of the description; seen: whether the recording shows it at all.
    """

    name: str
    value: float
    linear: float
    half_width: float
    prior: float
    seen: bool


@dataclass(frozen=True, eq=False)
class Residuals:
    """‖τ − τ̂‖ / ‖τ‖ per joint (nv,) and over all: of the description, of the result, and of unconstrained least
    squares, where it was not fitted if held_out; training: of the result where it was fitted.
    """

    before: Array
    after: Array
    unconstrained: Array
    overall_before: float
    overall: float
    overall_unconstrained: float
    training: float
    held_out: bool


@dataclass(frozen=True, eq=False)
class Validation:
    """Efforts (N, nv) that were judged by: measured, of the description, of the result."""

    measured: Array
    before: Array
    after: Array


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """The result of `identify`.

    model: with the new inertias, rotors, damping and friction. offset (nv,): constant effort per joint, N m or N. load:
    of mode "payload", on top of what the body weighed, in the frame of its link. confidence: base parameters with
    intervals; unidentifiable: names of those that the recording does not show, whose values are the description's.
    findings: what was found, left out and is doubtful, in words. delay (s), gains (nv,): applied to the efforts.
    cutoff: of the filter, Hz. prior: the model that it began with. transmission: with the rotors and the friction of
    motors on more than one joint, where there are any; no URDF and no node knows of them.
    """

    model: RobotModel
    smoothing: float
    offset: Array
    load: Inertia | None
    residual: Residuals
    confidence: tuple[Estimate, ...]
    unidentifiable: tuple[str, ...]
    findings: tuple[str, ...]
    base: BaseParameters
    condition: float
    delay: float
    gains: Array
    cutoff: float
    duration: float
    prior: RobotModel
    mode: str
    validation: Validation
    transmission: Transmission | None = None

    @property
    def friction(self) -> Friction:
        """Damping and Coulomb friction of the joints."""
        return friction_of(self.model, self.smoothing)

    def effort(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """What the motors must do: inverse dynamics, friction and offset, (nv,) or (N, nv), N m or N."""
        found = inverse_dynamics(self.model, q, v, a) + friction_effort(self.model, v, self.smoothing) + self.offset
        return found if self.transmission is None else found + self.transmission.effort(self.model, v, a,
                                                                                       self.smoothing)

    def write_urdf(self, path: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
        """The description `source` (file or XML text, that of the model identified) with the new inertials, damping,
        friction and rotors; everything else, comments included, as it was.
        """
        text = rewritten(source, self.prior, self.model)
        try:
            Path(path).write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None

    def __repr__(self) -> str:
        r = self.residual
        return (f"Identification of '{self.model.name}' ({self.mode}): residual {100.0 * r.overall:.2f} % "
                f"(was {100.0 * r.overall_before:.2f} %), {len(self.confidence)} base parameters, "
                f"{len(self.unidentifiable)} not seen")


def identified_model(model: RobotModel, theta: Array, unknown: Unknowns,
                     part: Array) -> tuple[RobotModel, Inertia | None, Array]:
    """The model with these parameters θ, the load, if one was looked for, and the offsets (nv,)."""
    links = dict(model.description.links)
    load = None
    for k, (name, at, _) in enumerate(unknown.bodies):
        if unknown.load:
            load = inertia_of(part[10 * k:10 * k + 10])
            links[name] = combine([links[name], load])
        else:
            links[name] = inertia_of(theta[at:at + 10])
    changed = RobotModel.from_description(dataclasses.replace(model.description, links=links))
    values: dict[str, Array] = {}
    own = unknown.scalars
    for what, field in (("rotor", "armature"), ("viscous", "damping"), ("coulomb", "friction")):
        columns = columns_of(model, what)
        if np.any((own >= columns.start) & (own < columns.stop)):
            values[field] = np.maximum(theta[columns], 0.0)
    if "armature" in values:
        values["armature"] = np.maximum(values["armature"] - follower_rotors(model), 0.0)
    return (changed.with_(**values) if values else changed), load, np.array(theta[columns_of(model, "offset")])

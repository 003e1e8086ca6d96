"""Forces of unilateral and compliant contacts of a simulated robot: for messages, and as wrenches on links."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.kinematics import forward_kinematics
from ...core.model.assembly import WORLD
from ...core.model.robot_model import RobotModel
from ...core.model.surfaces.compliant import CompliantContact
from ...core.simulation.contact.records import ContactState

Array = NDArray[np.float64]


class ContactForces:
    """Contact forces of one simulator: contacts in declared order; impulses are summed between messages."""

    def __init__(self, model: RobotModel, simulator: Any, contacts: Sequence[Any]) -> None:
        self._model, self._simulator, self._contacts = model, simulator, contacts
        self._hits = any(not isinstance(contact, CompliantContact) for contact in contacts)
        self.forget()

    def forget(self) -> None:
        """Reset the sums after the state was set from outside."""
        self._impulses = np.zeros((len(self._contacts), 3))

    def stepped(self) -> None:
        """Account for a simulation step."""
        if self._hits:
            self._impulses += [state.impulse for state in self._simulator.contacts]

    def take(self) -> tuple[ContactState, ...]:
        """The contacts after the last step, with the impulses since the last call."""
        impulses, self._impulses = self._impulses, np.zeros_like(self._impulses)
        return tuple(state._replace(impulse=impulse)
                     for state, impulse in zip(self._simulator.contacts, impulses, strict=True))

    def wrenches(self, q: Array, step: float) -> Array:
        """Contact wrenches on the links (nb, 6) in the last step of length `step`, as `external_wrenches`; impacts as
        the mean force of the step.
        """
        model = self._model
        poses = forward_kinematics(model, q)
        out = np.zeros((len(model.body_names), 6))
        for contact, state in zip(self._contacts, self._simulator.contacts, strict=True):
            force = state.force + state.impulse / step
            for link, sign in ((contact.first.link, -1.0), (contact.second.link, 1.0)):
                if force.any() and not (link == WORLD and WORLD not in model.body_names):
                    i = model.body_index(link)
                    back = sign * poses[i][:3, :3].T
                    out[i] += [*back @ np.cross(state.point - poses[i][:3, 3], force), *back @ force]
        return out

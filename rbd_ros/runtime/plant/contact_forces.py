"""Forces of the unilateral and compliant contacts of a simulated robot: for messages, and as wrenches on links."""
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
    """Of one simulator: contacts as declared; impulses are summed from one message to the next."""

    def __init__(self, model: RobotModel, simulator: Any, contacts: Sequence[Any]) -> None:
        self._model, self._simulator, self._contacts = model, simulator, contacts
        self._hits = any(not isinstance(contact, CompliantContact) for contact in contacts)
        self.forget()

    def forget(self) -> None:
        """The state was set from outside."""
        self._impulses = np.zeros((len(self._contacts), 3))

    def stepped(self) -> None:
        """A step was made."""
        if self._hits:
            self._impulses += [state.impulse for state in self._simulator.contacts]

    def take(self) -> tuple[ContactState, ...]:
        """The contacts after the last step, with the impulses since they were taken last."""
        impulses, self._impulses = self._impulses, np.zeros_like(self._impulses)
        return tuple(state._replace(impulse=impulse)
                     for state, impulse in zip(self._simulator.contacts, impulses, strict=True))

    def wrenches(self, q: Array, step: float) -> Array:
        """What acted on the links in the last step of this length (nb, 6), as `external_wrenches`; impacts as the mean
        force of the step.
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

"""When a contact begins, where it is, and when it ends, from external joint efforts."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.estimation.external_wrench import external_wrench, touched_body
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
ENDING = 0.7    # of the thresholds, below which all efforts must remain for the end of a contact


class Contact(NamedTuple):
    """What changed at the joint state of this stamp: a contact began, is at a link further out, or ended.

    body: the touched link. wrench (6,): on it, in its frame, moment first; zero along directions that the pose does not
    show. point (3,): of the line of action, nearest to the link's origin, m.
    """

    time_ns: int
    touching: bool
    body: str
    wrench: Array
    point: Array


class ContactDetector:
    """Follows external efforts (nv,) from state to state. threshold (nv,): N m or N; 0: the joint feels nothing.

    release (s): for which all efforts must be small before a contact has ended.
    """

    def __init__(self, model: RobotModel, threshold: Array, release: float) -> None:
        self._model, self._release_ns = model, round(release * 1e9)
        self._begins = np.where(threshold > 0.0, threshold, np.inf)
        self._ends = ENDING * self._begins
        self.body: str | None = None    # the touched link
        self._felt_ns = 0

    def update(self, time_ns: int, q: Array, external: Array) -> Contact | None:
        """What changed at this state; None for nothing. Raises `RbdError` for efforts that overflow."""
        size = np.abs(external)
        felt = bool((size > self._begins).any())
        if not felt and self.body is None:
            return None
        if (size > self._ends).any():
            self._felt_ns = time_ns
        elif self.body is not None and not 0 <= time_ns - self._felt_ns < self._release_ns:
            left, self.body = self.body, None
            return Contact(time_ns, False, left, np.zeros(6), np.zeros(3))
        body = touched_body(self._model, external, np.minimum(self._begins, 1e300)) if felt else None
        if body is None or (self.body is not None
                            and self._model.body_index(body) <= self._model.body_index(self.body)):
            return None
        wrench = external_wrench(self._model, q, external, body).wrench
        self.body = body
        force = wrench[3:]
        square = float(force @ force)
        point = np.cross(force, wrench[:3]) / square if 1e-12 < square < 1e300 else np.zeros(3)
        return Contact(time_ns, True, body, wrench, point)

"""When a contact begins, where it is, and when it ends, from external joint efforts."""
from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.estimation.contact_probabilities import contact_probabilities
from ...core.estimation.external_wrench import external_wrench, touched_body
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
ENDING = 0.7    # of the thresholds, below which all efforts must remain for the end of a contact
NEVER = 1e300   # N m or N
MEAN = 20_000_000     # ns: of the means by which links are compared
AGAIN = 50_000_000    # ns: until they are compared again


class Contact(NamedTuple):
    """What changed at the joint state of this stamp: a contact began, is at another link, or ended.

    begins: the first of its contact. body: the touched link; q (nq,), external (nv,): position and external efforts.
    """

    time_ns: int
    touching: bool
    begins: bool
    body: str
    q: Array
    external: Array


@np.errstate(over="ignore")    # of squares
def wrench_and_point(model: RobotModel, contact: Contact) -> tuple[Array, Array]:
    """The wrench (6,) on the touched link, in its frame, moment first, zero along directions that the pose does not
    show; and the point (3,) of the line of action of its force nearest to the link's origin, m. Zeros at the end.
    """
    if contact.touching:
        try:
            wrench = external_wrench(model, contact.q, contact.external, contact.body).wrench
        except RbdError:    # overflow
            return np.zeros(6), np.zeros(3)
        square = float(wrench[3:] @ wrench[3:])
        if 1e-12 < square < 1e300:
            return wrench, np.cross(wrench[3:], wrench[:3]) / square
        return wrench, np.zeros(3)
    return np.zeros(6), np.zeros(3)


class Touch(NamedTuple):
    """A contact at link `body` since a time, s. wrench (6,), point (3,): as of `wrench_and_point`, at present."""

    body: str
    since: float
    wrench: Array
    point: Array

    @property
    def force(self) -> Array:
        """(3,), N, in the frame of the link."""
        return self.wrench[3:]


class LikeliestLink:
    """Compares all links while a contact lasts. covariance (nv, nv): of means over 20 ms without contact."""

    def __init__(self, model: RobotModel, covariance: Array) -> None:
        self._model, self._covariance = model, covariance
        self.restart()

    def restart(self) -> None:
        """The efforts before are unknown, or of no contact."""
        self._rows: deque[tuple[int, Array, Array]] = deque()
        self._next_ns = 0

    def update(self, time_ns: int, q: Array, external: Array, uncertainty: Array) -> str | None:
        """The likeliest link by the mean of the last 20 ms, at most every 50 ms; None in between."""
        rows = self._rows
        rows.append((time_ns, external, uncertainty.copy()))
        while rows and not 0 <= time_ns - rows[0][0] <= MEAN:
            rows.popleft()
        self._next_ns = self._next_ns or time_ns + MEAN
        if time_ns < self._next_ns:
            return None
        self._next_ns = time_ns + AGAIN
        mean = np.mean([effort for _, effort, _ in rows], axis=0)
        rubs = np.mean([uncertain for _, _, uncertain in rows], axis=0)
        try:
            found = contact_probabilities(self._model, q, mean, self._covariance + np.diag((0.5 * rubs) ** 2))
        except RbdError:    # overflow
            return None
        return str(found.likeliest)


class ContactDetector:
    """Follows external efforts (nv,) from state to state. threshold (nv,): N m or N; 0: the joint feels nothing.

    release (s): for which all efforts must be seen to be small before a contact has ended. covariance (nv, nv): as of
    `LikeliestLink`; without it, the touched link is that of `touched_body`.
    """

    def __init__(self, model: RobotModel, threshold: Array, release: float, covariance: Array | None = None) -> None:
        self._model, self._release_ns = model, round(release * 1e9)
        self._links = None if covariance is None else LikeliestLink(model, covariance)
        self.threshold = np.where(threshold > 0.0, threshold, NEVER)
        self.body: str | None = None    # the touched link
        self.since_ns = 0               # stamp of the state at which the contact began
        self._large_ns = 0              # stamp of the last effort that is not small

    def warm_up(self) -> None:
        """Load or compile the code that compares links."""
        if self._links is not None:
            scratch, zero = LikeliestLink(self._model, np.eye(self._model.nv)), np.zeros(self._model.nv)
            for time_ns in (1, 1 + MEAN):
                scratch.update(time_ns, self._model.neutral(), zero, zero)

    def limit(self, uncertainty: Array) -> Array:
        """Effort (nv,) above which a joint feels a contact. uncertainty (nv,): `MomentumObserver.friction_uncertainty`.
        """
        limit: Array = np.hypot(self.threshold, uncertainty)
        return limit

    def restart(self, time_ns: int) -> None:
        """The efforts before this state are unknown, or of another contact; a present one goes on."""
        self._large_ns = time_ns
        if self._links is not None:
            self._links.restart()

    def update(self, time_ns: int, q: Array, external: Array, uncertainty: Array) -> Contact | None:
        """What changed at this state; None for nothing. uncertainty (nv,): as of `limit`."""
        size, limit = np.abs(external), self.limit(uncertainty)
        above = bool((size > limit).any())
        if not above and self.body is None:
            return None
        large = bool((size > ENDING * limit).any())
        if large:
            self._large_ns = time_ns
        elif self.body is not None and not 0 <= time_ns - self._large_ns < self._release_ns:
            left, self.body = self.body, None
            self.restart(time_ns)
            return Contact(time_ns, False, False, left, q, external)
        body = self._touched(time_ns, q, external, uncertainty) if large else None
        if body is None:
            return None
        begins, self.body = self.body is None, body
        if begins:
            self.since_ns = time_ns
        return Contact(time_ns, True, begins, body, q, external)

    def _touched(self, time_ns: int, q: Array, external: Array, uncertainty: Array) -> str | None:
        """The touched link where it is another one than `body`."""
        if self.body is not None and self._links is not None:
            body = self._links.update(time_ns, q, external, uncertainty)
            return None if body == self.body else body
        body = touched_body(self._model, external, self.threshold, uncertainty)
        if body is not None and self.body is not None \
                and self._model.body_index(body) <= self._model.body_index(self.body):
            return None
        return body

    def contact(self, q: Array, external: Array) -> Touch | None:
        """The present contact at this position, with these external efforts (nv,); None without one."""
        if self.body is None:
            return None
        change = Contact(self.since_ns, True, True, self.body, q, external)
        return Touch(self.body, 1e-9 * self.since_ns, *wrench_and_point(self._model, change))

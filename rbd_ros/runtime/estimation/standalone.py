"""`EffortObserver`: the logic of node `observer` for programs without ROS."""
from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ..inputs.rejections import Rejected
from ..without_ros import changed, checked_time, described, joint_state, stamp, values_of
from .contact_observer import OBSERVER_TABLE, ContactObserver, Observed, ObserverSettings
from .contacts import Touch
from .payload_adoption import payload_values

Array = NDArray[np.float64]


class EffortObserver:
    """The logic of node `observer` without ROS: external efforts, wrench, contacts and load, one `update` per state.

    model, file, parameters: as of `TorqueController`, those of node `observer`; `effort_topic` has no effect.

    `update` raises nothing, whatever the states are: it counts like the node. Everything else raises `RbdError` for
    what it refuses, and changes nothing then. Not for several threads at a time.

        >>> model, q = rbd.sample("iiwa"), np.linspace(0.2, 1.0, 7)
        >>> observer = rbd.EffortObserver(model, threshold=0.5)
        >>> push = rbd.jacobian(model, q, "link_7").T @ [0.0, 0.0, 2.0, 20.0, 0.0, 0.0]
        >>> for k in range(300):
        ...     observed = observer.update(1e-3 * k, q, 0.0 * q, rbd.gravity_effort(model, q) - push)
        >>> observed.wrench.wrench.round(2) + 0.0
        array([ 0.,  0.,  2., 20.,  0.,  0.])
        >>> observer.contact.body
        'link_7'
    """

    def __init__(self, model: RobotModel | str | os.PathLike[str], file: str | os.PathLike[str] | None = None,
                 **parameters: Any) -> None:
        self._values = values_of("observer", OBSERVER_TABLE, file, parameters)
        self._described = described(self._values, model)
        settings = ObserverSettings.from_values(self._values, self._described)
        self._logic = ContactObserver(self._described, settings)
        self._logic.warm_up()
        self._names = list(self._described.joint_names)
        self._last: tuple[Array, Array] | None = None    # position and external effort of the last estimate
        self._since = 0.0                                # when the contact began, as given: a stamp is rounded to ns
        self._reason = ""

    def __repr__(self) -> str:
        return f"EffortObserver of '{self.model.name}': {self.report()['touched'] or 'no contact'}"

    def update(self, t: float, q: ArrayLike, v: ArrayLike | None = None, tau: ArrayLike | None = None
               ) -> Observed | None:
        """What is known at time t (s) for the state q, v (nv,). v: None or NaN where unknown. tau (nv,): the measured
        efforts at t; with `effort_source: effort` the command that acted until t, held if None.

        `.effort` (nv,): external effort, N m or N; `.sigma` (nv,): its standard deviation; `.wrench`: as of
        `external_wrench`, on parameter `body`; `.change`: of contacts, or None; `.load`: with `payload.estimate`, once
        a second, or None. None at the first state, after gaps and without efforts; and if the state is refused, which
        `reason` says.
        """
        logic = self._logic
        try:
            stamp_ns = stamp(checked_time(t))
            position, velocity, effort = joint_state(q, v, tau)
        except Rejected as error:
            self._reason = logic.rejections.add(error).text
            return None
        verdict = None
        if logic.settings.effort_source == "effort":
            verdict, effort = None if tau is None else logic.on_command(self._names, effort), ()
        observed = logic.on_state(stamp_ns, self._names, position, velocity, effort)
        self._reason = "" if verdict is None else verdict.text
        if not isinstance(observed, Observed):
            self._reason = observed.text or self._reason
            return None
        self._last = logic.position, observed.effort
        if observed.change is not None and observed.change.begins:
            self._since = float(t)
        return observed

    @property
    def reason(self) -> str:
        """Why the last state, or its command, was refused; "" if it was not."""
        return self._reason

    @property
    def contact(self) -> Touch | None:
        """The contact at the last estimate: link, wrench, point and the time when it began; None without one."""
        touch = None if self._last is None else self._logic.detector.contact(*self._last)
        return None if touch is None else touch._replace(since=self._since)

    def payload_parameters(self) -> dict[str, Any]:
        """Parameters `payload.*` of the present estimate of the load, for `set` of this observer and of a
        `TorqueController`. Refused in the cases in which service ~/adopt_payload refuses.
        """
        load = self._logic.estimated()
        if load is None:
            raise RbdError("no load is estimated: set parameter 'payload.estimate' to the link that carries it")
        carried = self._values["payload.body"] if self._values["payload.mass"] else ""
        return payload_values(load.body, load.load, load.half_width.tolist(), load.observed.tolist(), load.touching,
                              heaviest=self._described.total_mass, carried=carried)

    def set(self, **parameters: Any) -> None:
        """Change parameters while running: the estimates begin anew, except that of the load where its own settings
        are the same.
        """
        values = changed(OBSERVER_TABLE, self._values, parameters)
        self._logic.apply(ObserverSettings.from_values(values, self._described))
        self._values = values

    @property
    def model(self) -> RobotModel:
        """The model, with its payload."""
        return self._logic.model

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by full name."""
        return dict(self._values)

    def report(self) -> dict[str, Any]:
        """Counters and estimates by name, as the node has them in /diagnostics."""
        return self._logic.report()

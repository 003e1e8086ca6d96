"""External efforts of a running robot, from joint states and its own efforts; the wrench behind them; contacts; the
load that it carries.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import RbdError, shown, unknown_name
from ...core.estimation.external_wrench import ExternalWrench, external_wrench
from ...core.estimation.momentum_observer import MomentumObserver
from ...core.estimation.payload_estimator import PayloadEstimator
from ...core.model.inertia import Inertia
from ...core.model.robot_model import RobotModel
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..inputs.joint_map import JointMap
from ..inputs.joint_states import StateInput
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from ..parameters import Parameter, Table, parameter, table_of, taken, validate
from ..robot import PAYLOAD_TABLE, ROBOT_TABLE, joint_order, joints_row, loaded
from .contacts import Contact, ContactDetector

Array = NDArray[np.float64]
SOURCES = ("joint_states", "effort")
WEIGHED = 1.0    # s between two estimates of the load that are published
LATE, AVERAGED = 3.0, 0.02    # average intervals after which states were lost; weight of an interval in the average


@dataclass(frozen=True, kw_only=True)
class ObserverSettings:
    """Validated parameters; `output`: permutation to the order of `joints`; lists (nv,) in model order. `unloaded`: the
    model without the load that is estimated. mean_covariance: (nv, nv), or None.
    """

    model: RobotModel
    unloaded: RobotModel
    joints: tuple[str, ...]
    output: NDArray[np.intp]
    friction: FrictionTerms
    mean_covariance: Array | None
    effort_source: str = parameter("joint_states", "Source of the effort that acted. joint_states: field effort, the "
                                   "mean of both ends of an interval; effort: the last command on effort_topic, held.",
                                   choices=SOURCES, read_only=True)
    effort_topic: str = parameter("feedforward/effort", "Commands (rbd_interfaces/JointEffort).", read_only=True)
    gain: float = parameter(50.0, "K of the filter K/(s + K) through which external efforts are seen, 1/s. Larger is "
                            "faster and noisier.", lower=0.1, upper=1e4)
    max_interval: float = parameter(0.1, "Longest interval between two states, s; after a longer one the observer "
                                    "begins anew.", lower=1e-4, upper=1.0)
    threshold: Array = parameter((0.0,), "External effort above which a joint in motion feels a contact, N m or N; "
                                 "near rest, where friction may be anything within its level, more; 0: never.",
                                 lower=0.0)
    release: float = parameter(0.3, "Time for which all external efforts must be below 0.7 of their thresholds until a "
                               "contact has ended, s.", lower=0.0, upper=60.0)
    sigma: Array = parameter((0.0,), "Standard deviation of external efforts without contact, N m or N (rbd thresholds "
                             "finds it); 0: unknown, and for the wrench all joints are alike. Where it is known, a "
                             "contact is at the likeliest of all links, not at the last that must feel it.", lower=0.0)
    body: str = parameter("", "Link whose external wrench is published, in its frame; empty: the last one.",
                          read_only=True)
    estimate: str = parameter("", "Link whose load is estimated while the robot moves, on ~/payload; empty: none.",
                              name="payload.estimate")
    memory: float = parameter(20.0, "Time constant with which the estimate of the load forgets, s of motion.",
                              name="payload.memory", lower=2.0, upper=1e4)

    @property
    def knows_sigma(self) -> bool:
        """Whether `sigma` is given for all joints, so that the wrench has a covariance."""
        return bool((self.sigma > 0.0).all())

    @property
    def noise(self) -> Array | None:
        """Covariance (nv, nv) of means over 20 ms, by which links are compared; None: unknown."""
        if self.mean_covariance is None and self.knows_sigma:
            return np.diag(self.sigma**2)
        return self.mean_covariance

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> ObserverSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(OBSERVER_TABLE, values)
        joints, output, order = joint_order(values["joints"], model)
        for row in ("body", "payload.estimate"):
            if values[row] and values[row] not in model.body_names:
                raise unknown_name(f"link in parameter '{row}':", values[row], model.body_names)
        carrier = loaded(model, values)
        return ObserverSettings(model=carrier, joints=joints, output=output,
                                mean_covariance=_matrix(values["mean_covariance"], order),
                                unloaded=model if values["payload.body"] == values["payload.estimate"] else carrier,
                                friction=FrictionTerms.from_values(values, order),
                                **taken(ObserverSettings, values, order))


def _matrix(values: tuple[float, ...], order: Sequence[int] | NDArray[np.intp]) -> Array | None:
    """A covariance (nv, nv) in model order from its rows, or None from a zero; raises `RbdError`."""
    n = len(order)
    if values == (0.0,):
        return None
    matrix = np.reshape(values, (n, n)) if len(values) == n * n and np.isfinite(values).all() else None
    try:
        if matrix is not None and np.allclose(matrix, matrix.T, rtol=1e-4, atol=1e-9 * np.abs(matrix).max()):
            np.linalg.cholesky(0.5 * (matrix + matrix.T))
            return np.asarray(0.5 * (matrix + matrix.T)[order][:, order])
    except np.linalg.LinAlgError:
        pass
    raise RbdError(f"parameter 'mean_covariance': expected 0, or {n * n} numbers, the rows of a positive definite "
                   f"matrix, got {shown(values)}")


MEAN_COVARIANCE = Parameter("mean_covariance", "numbers", (0.0,), "Covariance of external efforts averaged over 20 ms, "
                            "without contact, by which the likeliest link is found: its rows, N² m² (rbd thresholds "
                            "finds it); 0: squares of sigma.", per="pair of joints")
OBSERVER_TABLE: Table = (
    *ROBOT_TABLE, joints_row("all lists with one entry per joint, and of the published effort"), *PAYLOAD_TABLE,
    *table_of(ObserverSettings), MEAN_COVARIANCE, *friction_rows("The model has"),
    *drive_friction_rows(),
)


class LoadEstimate(NamedTuple):
    """half_width (10,): of 95 % intervals, infinite where unknown; observed (10,): as of `PayloadEstimator`. touching:
    the robot touches something or carries another load, or did in the latest motion, and the estimate holds.
    """

    body: str
    load: Inertia
    half_width: Array
    observed: NDArray[np.bool_]
    touching: bool


class Observed(NamedTuple):
    """External efforts and their standard deviations (nv,), the wrench on the chosen body, in its frame, what changed
    about contacts, and the load, once per `WEIGHED`.
    """

    effort: Array
    sigma: Array
    wrench: ExternalWrench
    change: Contact | None
    load: LoadEstimate | None


class ContactObserver:
    """Observes external efforts at times `now` (s, steady); arrays in model order."""

    def __init__(self, model: RobotModel, settings: ObserverSettings) -> None:
        self.rejections = Rejections()
        self._state = StateInput(model, self.rejections, math.inf, 0.0)
        self._map = JointMap(model, extra=True)
        self._command: Array | None = None
        self._load: PayloadEstimator | None = None
        self.detector: Any = None
        self._period = 0.0    # average interval, s
        self._observed = self._weighed_at = 0.0    # s without gaps, and of these until the load was told
        self._last: tuple[int, Array | None] | None = None    # stamp (ns) and measured effort of the last state
        self.counts = Counter({"estimates": 0, "gaps": 0, "repeated": 0, "without_effort": 0, "contacts": 0})
        self.apply(settings)

    def apply(self, settings: ObserverSettings) -> None:
        """Use these settings from now on. The estimates begin anew, except that of the load where its own settings, and
        the model without it, are the same.
        """
        self.settings, self.model = settings, settings.model
        self.body = settings.body or self.model.body_names[-1]
        law = settings.friction.law(self.model)
        self._observer = MomentumObserver(self.model, settings.gain, law)
        earlier, self.detector = self.detector, ContactDetector(
            self.model, settings.threshold, settings.release, settings.noise)
        if earlier is not None:    # the end of its contact is still to be told
            self.detector.body, self.detector.since_ns = earlier.body, earlier.since_ns
        self.detector.restart(self._state.stamp_ns)
        before, self._load = self._load, None
        if settings.estimate:
            threshold = np.where(settings.threshold > 0.0, settings.threshold, np.inf)
            self._load = PayloadEstimator(settings.unloaded, settings.estimate, law, settings.memory,
                                          threshold=threshold)
            if before is not None and self._load.same_as(before):    # the load was taken over, for example
                self._load = before
                self._load.gap()
        self._last = None

    def warm_up(self) -> None:
        """Load or compile the code of an estimate, without changing this object."""
        scratch, zero = ContactObserver(self.model, self.settings), np.zeros(self.model.nv)
        scratch._command = zero
        for stamp in (1, 1_000_001, 2_000_001):
            scratch.on_state(stamp, self.model.joint_names, self.model.neutral(), zero, zero)
        scratch.detector.warm_up()
        scratch.estimated()

    def on_command(self, names: Sequence[str], effort: ArrayLike) -> Verdict:
        """Take a command of the torque node."""
        try:
            if self._map.update(names):
                self._command = self._map.rates("effort", effort)
        except Rejected as error:
            return self.rejections.add(error)
        return TAKEN

    @property
    def position(self) -> Array:
        """(nq,) of the last state."""
        return self._state.q

    def on_state(self, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike,
                 effort: ArrayLike) -> Observed | Verdict:
        """Take a joint state; returns what is known at it, if the interval before it is without a gap."""
        state = self._state
        if self._last is not None and stamp_ns == self._last[0]:    # a paused simulation
            self.counts["repeated"] += 1
            return TAKEN
        verdict = state.accept_stamped(stamp_ns, names, position, velocity, effort)
        if not verdict:
            return verdict
        last, self._last = self._last, (stamp_ns, state.measured_effort)
        interval = math.inf if last is None else (stamp_ns - last[0]) * 1e-9
        applied = self._applied(None if last is None else last[1])
        if applied is None or not 0.0 < interval <= self.settings.max_interval:
            self.counts["gaps" if applied is not None else "without_effort"] += last is not None
            self._observer.reset(state.q, state.v)
            if self._load is not None:
                self._load.gap()
            return TAKEN
        try:
            external = self._observer.update(interval, state.q, state.v, applied)
            uncertainty = self._observer.friction_uncertainty
            sigma = np.hypot(self.settings.sigma, uncertainty)
            wrench = external_wrench(self.model, state.q, external, self.body,
                                     covariance=sigma**2 if self.settings.knows_sigma else None)
            touched = self.detector.body
            change = self.detector.update(stamp_ns, state.q, external, uncertainty)
        except RbdError as error:    # efforts that overflow
            self._last = None
            return self.rejections.add(Rejected("non_finite", str(error)))
        try:
            load = self._weighed(interval, applied)
        except RbdError as error:    # squares of efforts that overflow; a contact is told nevertheless
            load = None
            self.rejections.add(Rejected("non_finite", str(error)))
            if self._load is not None:
                self._load.gap()
        self.counts["estimates"] += 1
        self.counts["contacts"] += change is not None and touched is None
        return Observed(external, sigma, wrench, change, load)

    def _weighed(self, interval: float, applied: Array) -> LoadEstimate | None:
        """Take in the present state; returns the load once per `WEIGHED`."""
        if self._load is None:
            return None
        usual, self._period = self._period, self._period + AVERAGED * (interval - self._period)
        self._observed += interval
        if interval > LATE * usual > 0.0:    # states were lost, and the mean effort is not that of both ends
            self._load.gap()
            return None
        self._load.update(self._observed, self._state.q, self._state.v, None, applied)
        if self._observed - self._weighed_at < WEIGHED:
            return None
        self._weighed_at = self._observed
        return self.estimated()

    def estimated(self) -> LoadEstimate | None:
        """The load as far as it is known; None without `payload.estimate`."""
        load = self._load
        return None if load is None else LoadEstimate(load.body, load.load, load.confidence, load.observed,
                                                      load.doubtful)

    def _applied(self, before: Array | None) -> Array | None:
        """The mean effort of the interval that ends at the present state, None if unknown."""
        if self.settings.effort_source == "effort":
            return self._command
        measured = self._state.measured_effort
        if measured is None or before is None or not (np.isfinite(measured).all() and np.isfinite(before).all()):
            return None
        return 0.5 * (before + measured)

    def report(self) -> dict[str, Any]:
        """Counters and estimates by name, as diagnostics publish them."""
        external = self._observer.external_effort
        values: dict[str, Any] = {"model": self.model.name, **self.counts, "touched": self.detector.body or ""}
        if self._load is not None:
            values["payload_kg"] = self._load.mass if self._load.observed[0] else "unknown"
        values |= {f"external_{name}": float(x) for name, x in zip(self.model.velocity_names, external, strict=True)}
        return values | {"rejected_total": self.rejections.total}

"""The feed-forward controller: joint efforts for references, trajectories and external wrenches."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.bodies.link_tree import link_tree
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from ..damping_gains import DampingGains, sampled_inertia
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..inputs.references import ReferenceInput
from ..inputs.rejections import Rejected, Verdict
from ..parameters import Table, setting, taken, validate
from ..robot import joint_order, loaded
from ..safety import NOTHING, Command, NoCommand
from ..safety.hold import HoldGains
from ..world.moving_base import MovingBase, floating
from ..world.odometry import ODOMETRY, ODOMETRY_TIMEOUT, Odometry, OdometryInput
from ..wrench_sensors import WRENCH_JOINTS, WrenchSensor, readings, wrench_sensors
from .contact_reaction import ContactReaction, ContactSettings
from .following import FollowingController, FollowingLaws, FollowingSettings, following_table
from .lqr_settings import LQRSettings
from .tracking_law import TrackingLaw, TrackingLawSettings
from .torque_settings import TorqueSettings

Array = NDArray[np.float64]
SLOWER = 1.25    # periods of law lqr: states that come more slowly get no command


@dataclass(frozen=True, kw_only=True)
class FeedforwardSettings(FollowingSettings):
    """Validated parameters of the feed-forward controller."""

    law: TrackingLawSettings
    sensors: tuple[WrenchSensor, ...] = ()
    floating: RobotModel | None = None    # with floating root and payload, if odometry measures the base
    odometry_timeout: float = setting(ODOMETRY_TIMEOUT)
    contact: ContactSettings

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(FEEDFORWARD_TABLE, values)
        order = joint_order(values["joints"], model)[2]
        law = TrackingLawSettings(friction=FrictionTerms.from_values(values, order),
                                  lqr=LQRSettings(**taken(LQRSettings, values, order)),
                                  **taken(TrackingLawSettings, values, order))
        sensors = wrench_sensors(values["wrench_joints"], model)
        if values["odometry"]:
            _check_moving(values)
        elif law.feedforward == "lqr":    # raises if the weights do not hold the robot
            TrackingLaw(loaded(model, values), law)
        contact = ContactSettings(**taken(ContactSettings, values, order))
        _check_contact(contact, law)
        fields = FeedforwardSettings.fields_from(values, model)
        settings = FeedforwardSettings(law=law, sensors=sensors, contact=contact, floating=floating(fields["model"])
                                       if values["odometry"] else None, **fields)
        if sensors:    # the first use of a new model takes some ms: not in the control thread
            link_tree(settings.model)
        return settings

    def damping_gains(self) -> DampingGains | None:
        model, law = self.model, self.law
        if not law.kd.any():
            return None
        if law.feedforward != "computed_torque" and np.any(self.motor_damping):
            law = replace(law, kd=np.maximum(law.kd - self.motor_damping, 0.0))
        # The gains of computed_torque are accelerations: the model's inertia, whatever it is, is in the torque.
        inertia = np.ones(model.nv) if law.feedforward == "computed_torque" else sampled_inertia(model)
        return DampingGains("gains.kd", model.joint_names, law.kd, inertia, model.armature > 0.0)


FEEDFORWARD_TABLE: Table = (
    *following_table(FeedforwardSettings, TrackingLawSettings, LQRSettings, ContactSettings),
    *friction_rows("Compensate", where=" at the reference's velocity; full and computed_torque"),
    *drive_friction_rows(),
    WRENCH_JOINTS, ODOMETRY,
)


def _check_moving(values: Mapping[str, Any]) -> None:
    """Raise `RbdError` for parameters that are incompatible with odometry."""
    if any(values["mounting.rpy"]):
        raise RbdError("parameters 'odometry' and 'mounting.rpy' are both set: odometry says how the root link is "
                       "turned")
    own = [name for name in ("gravity", "coriolis") if name in values["robot_compensates"]]
    if own:
        raise RbdError(f"parameter 'robot_compensates' has '{own[0]}', which the robot's own controller computes for a "
                       "base that stands still: with odometry it has to be sent the whole torque")
    if values["wrench_joints"]:
        raise RbdError("parameter 'wrench_joints' is not supported with odometry: sensors feel the base's "
                       "acceleration, which is not known")
    if values["feedforward"] == "lqr":
        raise RbdError("parameter 'feedforward' is 'lqr', which is not supported with odometry: its linearisation is "
                       "that of a robot on a base that stands still")
    if values["contact.reaction"] != "off":
        raise RbdError("parameter 'contact.reaction' is not supported with odometry: joint efforts feel the base's "
                       "acceleration, which is not known")


def _check_contact(contact: ContactSettings, law: TrackingLawSettings) -> None:
    """Raise `RbdError` if contacts cannot be detected with these settings."""
    if contact.reaction == "off":
        return
    if not contact.threshold.any():
        raise RbdError(f"parameter 'contact.reaction' is '{contact.reaction}', but every 'contact.threshold' is 0, so "
                       "no contact is ever felt: `rbd thresholds` finds them")
    if law.compensates and contact.effort == "command":
        raise RbdError(f"parameter 'robot_compensates' has {', '.join(law.compensates)}, which the command lacks: set "
                       "'contact.effort' to 'joint_states', if these have the whole torque")


class FeedforwardLaws(FollowingLaws):
    """The tracking law of the settings; with odometry, on a moving base."""

    settings: FeedforwardSettings

    def __init__(self, settings: FeedforwardSettings, reference: ReferenceInput,
                 odometry: OdometryInput | None = None) -> None:
        self.moving = None if settings.floating is None or odometry is None else MovingBase(
            settings.floating, odometry, settings.law)
        self.law = TrackingLaw(settings.model, settings.law) if self.moving is None else self.moving.law
        super().__init__(settings, reference)
        self._hold_gains = self.bounded(settings.law.kp, settings.law.kd, settings.safety.effort_limit)

    def effort(self, q: Array, v: Array, reference: Reference | None, wrenches: Any, share: float) -> Array:
        """As `TrackingLaw.effort`."""
        return (self.law if self.moving is None else self.moving).effort(q, v, reference, wrenches, share)

    def return_time(self) -> Array:
        law = self.law if self.law.lqr else self.settings.law
        kp, kd = law.kp, law.kd
        return np.divide(kd, kp, out=np.full(self.model.nv, np.inf), where=(kp > 0.0) & (kd > 0.0))

    def hold_gains(self, q: Array) -> HoldGains | None:
        law = self.settings.law
        if law.feedforward != "computed_torque":
            return self._hold_gains
        return self.bounded(law.kp, law.kd, self.settings.safety.effort_limit, mass_matrix(self.model, q))

    def gravity(self, q: Array) -> Array:
        return super().gravity(q) if self.moving is None else self.moving.gravity(q)

    def accelerating(self, q: Array, a: Array) -> Array:
        return super().accelerating(q, a) if self.moving is None else self.moving.accelerating(q, a)


class FeedforwardController(FollowingController[FeedforwardLaws]):
    """Computes efforts by the law of the settings, for the newest reference.

    With odometry configured: no effort before the first odometry message; the safe effort, computed from the last
    message, while odometry is stale.
    """

    settings: FeedforwardSettings

    def __init__(self, model: RobotModel, settings: FeedforwardSettings) -> None:
        self.odometry = OdometryInput(model.body_names[0], settings.odometry_timeout) if settings.floating else None
        super().__init__(model, settings)
        self.local_loop = False    # whether a faster loop applies the feedback of law lqr
        self.contacts = ContactReaction(self, settings.contact, settings.law.friction.law(settings.model))
        if self.odometry is not None:
            self.odometry.rejections = self.rejections

    def make_laws(self, settings: FeedforwardSettings) -> FeedforwardLaws:
        return FeedforwardLaws(settings, self.reference, self.odometry)

    def apply(self, settings: TorqueSettings) -> None:
        assert isinstance(settings, FeedforwardSettings)
        followed = self.safety.laws.newest.law.needs_reference
        super().apply(settings)
        if self.odometry is not None:
            self.odometry.timeout = self.settings.odometry_timeout
        if self.safety.laws.newest.law.needs_reference and not followed:    # hand guiding may have moved it far away
            self.reference.clear()
        self.contacts.apply(settings.contact, settings.model, settings.law.friction.law(settings.model))

    def clear(self) -> None:
        super().clear()
        self.contacts.begin()

    def reset(self, now: float) -> None:
        super().reset(now)
        self.contacts.begin()    # a lasting contact counts as a new one

    def activate(self, now: float) -> None:
        super().activate(now)
        if self.odometry is not None and self.odometry.problem(now):    # stale: the base may have turned since
            self.odometry.forget()

    def on_odometry(self, now: float, odometry: Odometry) -> Verdict:
        """Take an odometry message: pose and twist of the base."""
        assert self.odometry is not None
        return self.odometry.accept(now, odometry)

    def on_state(self, now: float, stamp_ns: int, names: Sequence[str], position: ArrayLike, velocity: ArrayLike = (),
                 effort: ArrayLike = (), age: float = 0.0) -> Command | Verdict:
        if self.odometry is not None and not self.odometry.known:
            self.state.refused = self.odometry.problem(now)
            return self.rejections.add(Rejected("no_odometry", self.state.refused))
        return super().on_state(now, stamp_ns, names, position, velocity, effort, age)

    def on_bytes(self, now: float, data: bytes, age: Callable[[], float]) -> Command | None:
        return super().on_bytes(now, data, age) if self.odometry is None else None

    def prepare(self, now: float) -> None:
        odometry = self.odometry
        if odometry is not None and odometry.age(now) - odometry.timeout > self.safety.patience:
            for reference in self._references():    # as when joint states cease
                reference.forget(now - self.safety.patience)
        super().prepare(now)
        self.contacts.prepare(now)

    def observe(self, now: float) -> None:
        super().observe(now)
        self.contacts.observe(now)

    def watchdog(self, now: float) -> Command | None:
        command = super().watchdog(now)
        if command is not None:
            self.contacts.lose()
        return command

    def halt(self, now: float) -> None:
        self.contacts.drop("a halt")
        super().halt(now)

    def deactivate(self) -> None:
        self.contacts.drop("deactivation")
        super().deactivate()

    @property
    def reacts(self) -> bool:
        return self.contacts.state != "watching"

    def _refuses_trajectory(self, stamp_ns: int, empty: bool) -> Rejected | None:
        if self.contacts.yields and not empty:
            return Rejected("bad_trajectory", "the robot yields to a contact: send it again when that has ended")
        if self.contacts.yields:
            self.contacts.drop("a stop was sent")
        return super()._refuses_trajectory(stamp_ns, empty)

    def hold_gains(self, laws: FeedforwardLaws) -> HoldGains | None:
        gains = super().hold_gains(laws)
        return self.contacts.soft(gains) if gains is not None and self.contacts.yields else gains

    def command(self, now: float, laws: FeedforwardLaws) -> Command | NoCommand:
        if self.odometry is not None and (problem := self.odometry.problem(now)):
            laws.use(self.state.received, None)
            return NoCommand(problem)
        if self.contacts.yields:
            laws.use(self.state.received, None)
            return NOTHING
        reference, law = self.desired(now, laws), laws.law
        if (reference is None and law.needs_reference) or (law.only_feedback and self.loop.share <= 0.0):
            laws.use(self.state.received, None)
            return NOTHING
        if reference is not None and (problem := self.astray(now, laws, reference)):
            return self.lost(laws, problem)
        if law.lqr and (problem := self._too_slow_for(laws)):
            laws.use(self.state.received, None)
            return NoCommand(problem)
        wrenches = self.fresh_wrenches(now)
        laws.use(self.state.received, (reference, wrenches))
        return Command(laws.effort(self.state.q, self.state.v, reference, wrenches, self.loop.share))

    def _too_slow_for(self, laws: FeedforwardLaws) -> str:
        """Why law lqr has no command; "" where its gains suit the loop that applies them."""
        lqr, period = self.settings.law.lqr, self.loop.period
        assert lqr is not None
        if self.local_loop or period <= SLOWER * lqr.period:
            return ""
        if not np.isfinite(period):
            return "law lqr waits until the period of the joint states is known: 'state_rate' says it"
        return (f"law lqr has gains for a loop of {1e3 * lqr.period:.3g} ms ('lqr.period'), joint states come every "
                f"{1e3 * period:.3g} ms: give their period, or use adapter linear_feedback")

    def again(self, laws: FeedforwardLaws) -> tuple[Array, ...] | None:
        used = laws.before(self.state.received)
        if used is None:
            return None
        reference, wrenches = used
        if reference is not None:
            reference = self.turned(reference)
        return (laws.effort(self.state.q, self.state.v, reference, wrenches, self.loop.share),)

    def report(self) -> dict[str, Any]:
        return super().report() | self.contacts.counts | {"touched": self.contacts.body or ""}

    def sensed(self, now: float) -> Array | None:
        """Expected readings (n, 6) of the configured force-torque sensors in the last state, under the external
        wrenches and the acceleration of the reference (zero without a reference). None if states are stale, or without
        sensors.
        """
        state, settings = self.state, self.settings
        if not settings.sensors or state.age(now) >= state.timeout:
            return None
        reference = self.desired(now, self.safety.laws.newest) if self.safety.mode in ("ramp_in", "running") else None
        return readings(self.model, settings.sensors, state.q, state.v,
                        np.zeros(self.model.nv) if reference is None else reference.a, self.fresh_wrenches(now))

    def warm_up(self) -> None:
        super().warm_up()
        zero = np.zeros(self.model.nv)
        readings(self.model, self.settings.sensors, self.model.neutral(), zero, zero, None)
        self.contacts.warm_up()
        q, zero, laws = self.model.neutral(), np.zeros(self.model.nv), self.safety.laws.newest
        laws.gravity(q)
        for wrenches in (None, np.zeros((len(self.model.body_names), 6))):
            laws.effort(q, zero, Reference.rest(q), wrenches, 1.0)

"""Tracking of a reference by feed-forward and feedback: the torque before limits.

With e = q_ref ⊖ q, ė = v_ref − v, ID the inverse dynamics and g the gravity torque:

| feedforward       | torque                                                                |
|-------------------|-----------------------------------------------------------------------|
| `none`            | Kp e + Kd ė                                                           |
| `gravity`         | g(q) + Kp e + Kd ė                                                    |
| `full`            | ID(q_ref, v_ref, a_ref) + friction(v_ref, ID) + Kp e + Kd ė           |
| `computed_torque` | ID(q, v, a_ref + Kp e + Kd ė) + friction(v_ref, ID), gains in 1/s², 1/s |
| `lqr`             | ID(q_ref, v_ref, a_ref) + friction(v_ref, ID) − K (e, ė), K by weights (`lqr_gains`) |

External wrenches enter g and ID. Terms that the robot's own controller adds (g(q), C(q, v) v, friction) are subtracted
from every law that contains them.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import BeyondNumbers, unknown_name
from ...core.model.robot_model import RobotModel
from ...core.model.state import node_wrenches
from ...core.motion.trajectory import Reference
from ...core.steady import tracking
from ...core.steady.tracking import tracking_entry
from ..friction_terms import ALL_FRICTION, FrictionTerms
from ..parameters import Parameter, parameter, setting
from .lqr_settings import LQRSettings

Array = NDArray[np.float64]

FEEDFORWARD = ("none", "gravity", "full", "computed_torque", "lqr")
COMPENSATES = ("gravity", "coriolis", "friction")
ROBOT_COMPENSATES = Parameter("robot_compensates", "strings", (), "What the robot's own controller adds to the torque "
                              "it is sent.", choices=COMPENSATES)


@dataclass(frozen=True, kw_only=True)
class TrackingLawSettings:
    """Choice of the law. `kp`, `kd` (nv,): N m/rad and N m s/rad, or 1/s² and 1/s with `computed_torque`.

    lqr: needed by law `lqr`. `friction`: compensated friction terms of the model. `compensates`: terms added by the
    robot itself, of `COMPENSATES`.
    """

    kp: Array = parameter((0.0,), "Proportional gain, N m/rad or N/m; 1/s² with computed_torque.", name="gains.kp",
                          lower=0.0, upper=1e9)
    kd: Array = parameter((0.0,), "Derivative gain, N m s/rad or N s/m; 1/s with computed_torque.", name="gains.kd",
                          lower=0.0, upper=1e9)
    feedforward: str = parameter("full", "Model torque that is added to the feedback: none; gravity of the measured "
                                 "position; inverse dynamics of the reference (full); inverse dynamics of the measured "
                                 "state with the feedback as acceleration (computed_torque); full with the gains of a "
                                 "linear-quadratic regulator in place of gains.* (lqr), which takes a millisecond per "
                                 "joint state or more.", choices=FEEDFORWARD)
    friction: FrictionTerms = ALL_FRICTION
    compensates: tuple[str, ...] = setting(ROBOT_COMPENSATES)
    lqr: LQRSettings | None = None


class TrackingLaw:
    """The law of `settings` for one robot. `packed`: the law for kernels (`core/steady/tracking.py`), without the
    feedback of `lqr`. kp, kd (nv,): gains, of lqr at rest in the neutral position, of each joint by itself.
    """

    def __init__(self, model: RobotModel, settings: TrackingLawSettings) -> None:
        if settings.feedforward not in FEEDFORWARD:
            raise unknown_name("feedforward", settings.feedforward, FEEDFORWARD)
        self.model, self.settings = model, settings
        self._zero = np.zeros(model.nv)
        self._none = np.zeros(0)
        self._feedback = bool(settings.kp.any() or settings.kd.any())
        kind = settings.feedforward
        self.lqr = kind == "lqr"
        self._feedback = self._feedback and not self.lqr
        self.only_feedback = self._feedback and kind == "none"
        self.needs_reference = self._feedback or kind in ("full", "computed_torque", "lqr")
        self.packed = self._packed()
        self.kp, self.kd = settings.kp, settings.kd
        if self.lqr:
            from .lqr_gains import LQRGains    # local import: SciPy's linear algebra is not needed by other laws
            assert settings.lqr is not None
            self._gains = LQRGains(model, self._friction(), settings.lqr)
            at_rest = self._gains.at(Reference(model.neutral(), self._zero, self._zero))
            self.kp, self.kd = (np.maximum(-np.diag(part), 0.0) for part in np.hsplit(at_rest, 2))

    def _friction(self) -> Friction | None:
        """The friction that the law compensates."""
        settings = self.settings
        dynamic = settings.feedforward in ("full", "computed_torque", "lqr")
        return settings.friction.law(self.model) if dynamic and "friction" not in settings.compensates else None

    def gain(self, q: Array, reference: Reference) -> Array:
        """∂effort/∂(q, v) (nv, 2 nv) by the feedback, at the measured q."""
        if self.lqr:
            return self._gains.at(reference)
        gain = -np.hstack([np.diag(self.settings.kp), np.diag(self.settings.kd)])
        return mass_matrix(self.model, q) @ gain if self.settings.feedforward == "computed_torque" else gain

    def _packed(self) -> Array:
        settings, nv = self.settings, self.model.nv
        kind, compensated = "full" if self.lqr else settings.feedforward, settings.compensates
        dynamic = kind in ("full", "computed_torque")
        friction = self._friction()
        packed = np.zeros(tracking.packed_size(nv))
        packed[tracking.KIND] = FEEDFORWARD.index(kind)
        packed[tracking.FEEDBACK], packed[tracking.ALONE] = self._feedback, self.only_feedback
        packed[tracking.FRICTION], packed[tracking.SMOOTHING] = friction is not None, settings.friction.smoothing
        packed[tracking.OWN_GRAVITY] = "gravity" in compensated and kind != "none"
        packed[tracking.OWN_CORIOLIS] = "coriolis" in compensated and dynamic
        rows = packed[tracking.SCALARS:].reshape(tracking.ROWS, nv)
        rows[tracking.KP], rows[tracking.KD] = settings.kp, settings.kd
        if friction is not None:
            rows[tracking.DAMPING], rows[tracking.COULOMB] = friction.damping, friction.coulomb
            rows[tracking.ASYMMETRY], rows[tracking.VISCOUS_ASYMMETRY], rows[tracking.LOAD] = (
                friction.asymmetry, friction.viscous_asymmetry, friction.load)
        return packed

    def effort(self, q: Array, v: Array, reference: Reference | None, wrenches: Any = None,
               share: float = 1.0) -> Array:
        """Torque (nv,) in the state q, v. `reference` may be None only if not `needs_reference`. share: factor of the
        feedback, ignored without feed-forward. Raises `RbdError` for a non-finite torque.
        """
        model, tau = self.model, np.empty(self.model.nv)
        arrays = (q, v, q, v, self._zero) if reference is None else (q, v, *reference[:3])
        wrench = self._none if wrenches is None else node_wrenches(model, wrenches, None)
        try:
            good = tracking_entry.call(model._block, self.packed, *arrays, wrench, share, model._work, tau)
        except TypeError:    # arrays with gaps, or read-only
            good = tracking_entry.call(model._block, self.packed, *map(np.array, arrays), wrench, share, model._work,
                                       tau)
        if self.lqr and reference is not None and share > 0.0:
            error = np.concatenate([model.difference(reference.q, q), v - reference.v])
            tau += share * (self.gain(q, reference) @ error)
            good = good and bool(np.isfinite(tau).all())
        if not good:
            raise BeyondNumbers("the torque would not be finite: the state or the reference is too large, beyond what "
                                "floating point numbers hold")
        return tau

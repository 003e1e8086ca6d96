"""`Simulator`: forward simulation of a robot with friction and stops, in fixed steps."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.friction import Friction, fitting
from ..dynamics.constrained.projection import ACCEPTED
from ..dynamics.energy import kinetic_energy, potential_energy
from ..dynamics.forward import forward_dynamics
from ..dynamics.mass_matrix import mass_matrix
from ..errors import BeyondNumbers, RbdError, shown, unknown_name
from ..model.constraints import ConstraintSet
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive, step_count
from ..model.state import finite_entry, node_wrenches, states
from ..model.surfaces.compliant import CompliantContact
from ..model.surfaces.unilateral import UnilateralContact
from .bounds import Bounds, Boxes
from .checks import Checks, soft_and_hard
from .constrained_motion import ConstrainedMotion
from .contact.compliant_motion import CompliantMotion, Touched
from .contact.records import ContactState
from .contact.simulated import SimulatedContacts
from .impulses import boxed_entry
from .integrators import INTEGRATORS, NAMES, NODES, SAMPLES, move, semi_implicit_euler
from .joint_data import BRAKES
from .modes import Modes
from .springs import ArmSprings
from .step_calls import ContactSteps, LoopSteps, ManySteps
from .variational import Unsolved, Variational

Effort = ArrayLike | Callable[[float], ArrayLike]


class Simulator(Checks):
    """State of a simulated robot: `q` (nq,), `v` (nv,), `time` (s); `step` advances it.

    model: its `damping` (viscous) and `friction` (Coulomb) act on the joints; `model.with_` changes them.
    step: s. integrator: `variational` (order 2: conserves momentum to rounding and bounds the energy error),
    `semi_implicit` (order 1), both with implicit damping, stable at any stiffness, or `rk4` (order 4).
    limits: whether joints stop, inelastically, at their position limits. velocity_limits: whether joints keep the
    velocity limits of the description (a limit of 0 counts as none), as in Gazebo: by impulses in each step.
    constraints: loops and bilateral contacts, enforced by multipliers and by projection of each state; `multipliers`
    are those of the last step.
    contacts: `UnilateralContact`s and `CompliantContact`s, with friction (docs/simulation.md); their states are in
    `contacts`.

    Friction is not smoothed: impulses in each step bring a coordinate to rest or oppose it (`impulses`), so a joint
    sticks without creep, and neither friction nor stops ever add kinetic energy, at any step. With rk4 they are modes
    between events (`modes`), except with closed loops. friction: a law with Stribeck's effect that replaces the
    model's, also with `asymmetry` and `load`; its level is that of the speed before the step (rk4: of the present
    speed), its load that of the drive's effort in the step, so that a joint under load breaks away at `b + k |τ|`.
    `brakes` (nv,): additional dry friction, settable at any time.

    springs: between coordinates of the model (`ElasticSimulator`); implicit like damping.

        >>> arm = rbd.Simulator(rbd.sample("two_link"), q=[0.3, 0.5])
        >>> arm.step(n=100)
        >>> arm.time
        0.1
    """

    def __init__(self, model: RobotModel, *, step: float = 1e-3, integrator: str = "variational",
                 limits: bool = True, velocity_limits: bool = False, q: ArrayLike | None = None,
                 v: ArrayLike | None = None, constraints: ConstraintSet | None = None,
                 contacts: Sequence[UnilateralContact | CompliantContact] = (), springs: ArmSprings | None = None,
                 friction: Friction | None = None) -> None:
        if integrator not in NAMES:
            raise unknown_name("integrator", integrator, NAMES)
        self.model = model
        self.step_size = positive(step, "step", "time in seconds")
        self.integrator = integrator
        self._constrained = ConstrainedMotion(model, constraints) if constraints is not None else None
        self._integrate = INTEGRATORS.get(integrator, semi_implicit_euler)    # unless `variational`
        self._implicit = integrator == "semi_implicit"
        self._damped = bool(model.damping.any())
        self._law = Friction(coulomb=model.friction) if friction is None else fitting(model, friction)
        if np.any(self._law.viscous_asymmetry):
            raise RbdError("friction.viscous_asymmetry: a Simulator does not support it, expected 0")
        if (np.any(self._law.asymmetry) or self._law.by_load) and (contacts or springs is not None):
            raise RbdError("friction.asymmetry, friction.load: a Simulator with contacts or springs supports neither "
                           "of them, expected 0")
        if np.any(self._law.damping) and not np.all(self._law.damping == model.damping):
            raise RbdError(f"friction.damping is {shown(self._law.damping)}, but a Simulator has the model's: expected "
                           "0, or model.with_(damping=…) with the same")
        self._springs = springs
        self._bounds = Bounds(model, limits, velocity_limits)
        self._joints = self._bounds.joints(model, self._law)
        self._many: ManySteps | ContactSteps | LoopSteps | None = None
        self.brakes = None
        soft, hard, self._is_soft = soft_and_hard(contacts)
        self._soft = CompliantMotion(model, soft, self.step_size) if soft else None
        if self._bounds.moving and (constraints is not None or hard):
            raise RbdError("velocity_limits: not supported with constraints, whose loops would not stay closed, and "
                           "with contacts")
        self._variational = Variational(
            model, self._joints, springs, self._constrained, self._soft is not None) if (
            integrator == "variational" or (hard and integrator != "rk4")) else None
        self._contacts = SimulatedContacts(
            model, hard, self._bounds, self._joints, self._level, self._constrained,
            self._variational) if hard else None
        if self._constrained is not None and self._constrained.compiled and springs is None and not contacts:
            self._many = LoopSteps(self._constrained, self._variational or integrator, self._joints, self.step_size)
        elif constraints is None and not contacts:
            self._many = ManySteps(model, self._variational or integrator, self._joints, self.step_size, springs)
        elif springs is None and self._soft is None and self._contacts is not None and self._contacts.compiled:
            self._many = ContactSteps(self._contacts, self.step_size)
        self._modes = Modes(model, self._level, self._bounds) if (
            integrator == "rk4" and constraints is None and not hard and self._many is None) else None
        self.reset(q, v)

    def __repr__(self) -> str:
        return (f"{type(self).__name__} of '{self.model.name}': at {self.time:.6g} s, step {self.step_size:g} s, "
                f"{self.integrator}")

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        """Put the robot into a state at time zero: q (nq,), by default neutral (within the limits); v (nv,), 0."""
        q = self._bounds.inside(self.model.neutral()) if q is None else q
        rates = {"v": np.zeros(self.model.nv) if v is None else v}
        q, v = states(self.model, positions={"q": q}, rates=rates).arrays
        q, v = np.array(q), np.array(v)    # neither shared nor changed in place
        if q.ndim != 1:
            raise RbdError(f"a simulator has one state: q has shape {q.shape}, expected ({self.model.nq},)")
        slack = 0.0
        if self._constrained is not None:
            q, v = self._constrained.back(q, v)
            slack = ACCEPTED    # tolerance for a start at a limit that is moved by loop closure
        for i, low, high in self._bounds.positions:
            if not low - slack <= q[i] <= high + slack:
                raise RbdError(f"joint '{self._owner(i, 'q')}' starts at {q[i]:g}, outside its limits "
                               f"{low:g} … {high:g}")
        if self._contacts is not None:
            q, v = self._contacts.start(q, v)
        if self.integrator == "rk4":
            self._check_damping(q)
        if self._variational is not None:
            self._variational.forget()
        for steps in (self._modes, self._many):
            if steps is not None:
                steps.forget()
        self._q, self._v = q, v
        self._steps = 0

    @property
    def q(self) -> Array:
        """Positions (nq,), read-only."""
        return _view(self._q)

    @property
    def v(self) -> Array:
        """Velocities (nv,), read-only."""
        return _view(self._v)

    @property
    def brakes(self) -> Array:
        """Friction of brakes (nv,), N m or N, which acts like Coulomb friction. 0, or set to None: released.
        """
        return _view(self._brakes)

    @brakes.setter
    def brakes(self, friction: ArrayLike | None) -> None:
        brakes = np.zeros(self.model.nv) if friction is None else np.array(friction, dtype=float)
        if brakes.shape != (self.model.nv,) or not np.isfinite(brakes).all() or (brakes < 0.0).any():
            raise RbdError(f"brakes: expected {self.model.nv} finite numbers, none negative, got {shown(friction)}")
        if np.delete(brakes, self._bounds.plain_v).any():
            raise RbdError("brakes: expected 0 for joints that are no plain numbers, such as floating ones")
        self._brakes, self._rubs = brakes, bool(np.any(self._law.breakaway) or brakes.any() or self._law.by_load)
        self._joints[BRAKES] = brakes

    @property
    def creeps(self) -> bool:
        """Whether joints held by dry friction creep: with rk4 and closed loops."""
        return self.integrator == "rk4" and self._constrained is not None

    def _level(self, v: Array) -> Array:
        """Dry friction (nv,) at velocities v, including brakes."""
        return self._brakes + self._law.level(v)

    @property
    def multipliers(self) -> Array:
        """Multipliers (m,) of the constraints at the last evaluation, in the units of their classes."""
        return np.zeros(0) if self._constrained is None else _view(self._constrained.multipliers)

    @property
    def contacts(self) -> tuple[ContactState, ...]:
        """Each contact after the last step, in the order given: state, point, normal, force, impulse, gap."""
        rest = {soft: iter(of.states(self._q, self._v)) for soft, of in ((False, self._contacts), (True, self._soft))
                 if of is not None}
        return tuple(next(rest[soft]) for soft in self._is_soft)

    @property
    def time(self) -> float:
        """Simulated time since the last reset (s)."""
        return self._steps * self.step_size

    @property
    def steps(self) -> int:
        """Steps since the last reset."""
        return self._steps

    @property
    def energy(self) -> float:
        """Kinetic and potential energy (J)."""
        springs = 0.0 if self._springs is None else self._springs.energy(self._q)
        return (float(kinetic_energy(self.model, self._q, self._v)) + float(potential_energy(self.model, self._q))
                + springs)

    def step(self, effort: Effort | None = None, n: int = 1, external_wrenches: Any = None) -> None:
        """Advance n steps with an effort (N m or N; default 0) and constant external wrenches.

        effort: (nv,), constant; (n, nv), one for each step; or a function of `time` (s), evaluated whenever the
        integrator needs it, at its full order. Steps take least time if all are asked for at once, with arrays.
        external_wrenches: `{body: (6,)}` or (nb, 6), moment first, on the body, in the frame of the URDF link.
        Raises `RbdError` for a non-finite state, and keeps the last finite one.
        """
        count, done = step_count(n), 0
        law: Any = effort if callable(effort) else None
        efforts = np.zeros((1, self.model.nv)) if callable(effort) else self._efforts(effort, count)
        many = self._many
        wrench = np.empty(0) if many is None else node_wrenches(self.model, external_wrenches, None)
        with np.errstate(all="ignore"):
            while done < count:
                rest, made = efforts[min(done, len(efforts) - 1):], 0
                if many is not None:
                    q, v = self._q.copy(), self._v.copy()
                    ahead = rest[:, np.newaxis] if law is None else self._sampled(law)
                    made = many.advance(q, v, ahead, wrench, count - done if law is None else 1)
                if made:
                    self._q, self._v = q, v
                    self._steps += made
                else:
                    self._step(law or rest[0], external_wrenches)
                done += max(made, 1)

    def _sampled(self, effort: Callable[[float], ArrayLike]) -> Array:
        """Efforts (1, k, nv) in the next step, of a function of time."""
        samples = SAMPLES["variational" if self._variational is not None else self.integrator]
        return np.array([[self._checked(effort(self.time + self.step_size * x)) for x in samples]])

    def _step(self, given: Array | Callable[[float], ArrayLike], wrenches: Any) -> None:
        """One step, with all that a simulator knows."""
        try:
            q, v = self._advance(given, wrenches) if self._contacts is None else self._touched(
                self._contacts, given, wrenches)
        except (BeyondNumbers, np.linalg.LinAlgError):
            raise self._diverged("v", int(np.argmax(np.abs(self._v)))) from None
        if not math.isfinite(q @ q + v @ v):
            self._check_finite(q, v)
        self._q, self._v = q, v
        self._steps += 1

    def _efforts(self, effort: ArrayLike | None, count: int) -> Array:
        """Efforts (1, nv), the same in all steps, or (count, nv)."""
        if effort is None:
            return np.zeros((1, self.model.nv))
        if type(effort) is np.ndarray and effort.dtype == float and effort.shape == (self.model.nv,):
            tau = np.array(effort[np.newaxis], order="C")
            if finite_entry.call(tau[0]):    # all that `states` would check, in a tenth of its time
                return tau
        tau = np.atleast_2d(states(self.model, rates={"effort": effort}).arrays[0])
        if len(tau) in (1, count):
            return np.array(tau)
        raise RbdError(f"effort: expected ({self.model.nv},), or ({count}, {self.model.nv}) for {count} steps, got "
                       f"shape {tau.shape}")

    def _checked(self, effort: ArrayLike) -> Array:
        """Effort (nv,) that a function of time returned."""
        tau = np.array(states(self.model, rates={"effort": effort}).arrays[0])
        if tau.ndim == 1:
            return tau
        raise RbdError(f"a simulator has one state: effort has shape {tau.shape}, expected ({self.model.nv},)")

    def _advance(self, given: Array | Callable[[float], ArrayLike], wrenches: Any) -> tuple[Array, Array]:
        model, h, springs = self.model, self.step_size, self._springs
        if self._variational is not None:
            return self._flown(self._variational, self._q, self._v, self.time, h, given, wrenches)
        damping = model.damping
        explicit = self._damped and not self._implicit
        nodes = iter(NODES[self.integrator])
        soft = None if self._soft is None else self._soft.begin(self._q, self._v, self._implicit)
        if self._modes is not None and (self._rubs or self._bounds.resting):
            end = self._modes.advance(self._q, self._v, self.time, h, self._smooth_effort(given), wrenches)
            if end is not None and not self._bounds.any_fast(end[1]):
                return end

        def acceleration(q: Array, v: Array) -> Array:
            if not math.isfinite(q @ q + v @ v):
                self._check_finite(q, v)
            tau = self._checked(given(self.time + h * next(nodes))) if callable(given) else given
            effort = tau - damping * v if explicit else tau
            if springs is not None:
                effort = effort + springs.effort(q, None if self._implicit else v)
            if soft is not None:
                effort = effort + soft.effort(q, v)
            if self._constrained is not None:
                return self._constrained.acceleration(q, v, effort, wrenches)
            return forward_dynamics(model, q, v, effort, wrenches)

        q, v = self._integrate(model, acceleration, self._q, self._v, h)
        implicit = self._implicit and (self._damped or springs is not None or soft is not None)
        constrained = self._constrained
        boxes = Boxes(self._joints, self._v, self._checked(given(self.time)) if callable(given) else given, h)
        if not (implicit or boxes.bounded or boxes.add(q, v)):
            return (q, v) if constrained is None else constrained.back(q, v)
        M = mass_matrix(model, self._q)
        if implicit:
            M_implicit = M + np.diag(h * damping)
            if springs is not None:
                M_implicit += h * (springs.damping + h * springs.stiffness(self._q))
            if isinstance(soft, Touched):
                M_implicit += h * soft.damping(self._v, v, M, M_implicit, h)
        W: Any = np.linalg.inv(M_implicit if implicit else M)
        free = W @ (M @ v) if implicit else v
        if constrained is not None:
            W, free = constrained.inverse_inertia(self._q, W, free, v)
        q, v = self._with_impulses(np.ascontiguousarray((W + W.T) / 2), boxes, q, v, free)
        return (q, v) if constrained is None else constrained.back(q, v)

    def _flown(self, variational: Variational, q: Array, v: Array, t: float, h: float,
               given: Array | Callable[[float], ArrayLike], wrenches: Any) -> tuple[Array, Array]:
        """The state h (s) after t by the variational integrator, without hard contacts."""
        middle = self._checked(given(t + 0.5 * h)) if callable(given) else given
        try:
            if self._soft is not None:
                return self._soft.step(variational, q, v, h, middle, wrenches)
            return variational.advance(q, v, h, middle, wrenches)
        except Unsolved:
            raise self._diverged("v", int(np.argmax(np.abs(v)))) from None

    def _touched(self, contacts: SimulatedContacts, given: Array | Callable[[float], ArrayLike],
                 wrenches: Any) -> tuple[Array, Array]:
        """A step with contacts."""
        if self._soft is not None:
            self._soft.check(self._q, self._v, explicit=True)
        flying = self._variational
        return contacts.advance(
            self._q, self._v, self.time, self.step_size, self._smooth_effort(given, False), wrenches, None if (
                flying is None) else lambda q, v, t, h: self._flown(flying, q, v, t, h, given, wrenches))

    def _smooth_effort(self, given: Array | Callable[[float], ArrayLike],
                       damped: bool = True) -> Callable[[Array, Array, float], Array]:
        """All efforts except dry friction, as a function of state and time."""
        def effort(q: Array, v: Array, t: float) -> Array:
            if not math.isfinite(q @ q + v @ v):
                self._check_finite(q, v)
            tau = self._checked(given(t)) if callable(given) else given
            tau = tau - self.model.damping * v if self._damped and damped else tau
            tau = tau if self._soft is None else tau + self._soft.effort(q, v)
            return tau if self._springs is None else tau + self._springs.effort(q, v)
        return effort

    def _with_impulses(self, W: Array, boxes: Boxes, q_free: Array, v_free: Array, v: Array) -> tuple[Array, Array]:
        """Positions and velocities after friction, stops and velocity limits; q_free, v_free: without damping and
        impulses, v: without impulses. Boxes are added and all are solved again until no further limit is exceeded.
        """
        free = v
        while True:
            v = np.array(free)
            if boxes.bounded:
                boxed_entry(W.reshape(-1), boxes.rows, v)
            q = self._position(q_free, v_free, v, boxes.stopped)
            if not boxes.add(q, v):
                return q, v

    def _position(self, q_free: Array, v_free: Array, v: Array, stopped: bool) -> Array:
        h = self.step_size
        if self._implicit or stopped:
            return move(self.model, self._q, h * v)
        # half of the change of velocity, for impulses acting evenly over the step; a resting joint does not move
        q = move(self.model, q_free, 0.5 * h * (v - v_free))
        at_q, at_v = self._bounds.plain_q, self._bounds.plain_v
        rest = (v[at_v] == 0.0) & (self._v[at_v] == 0.0)
        q[at_q[rest]] = self._q[at_q[rest]]
        return q


def _view(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view

"""`ManySteps`: many steps of a robot in one call of a kernel (`*_steps`)."""
from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..dynamics.forward import forward_dynamics
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..specialize.specialized import SpecializedModel, specialize
from .constrained_motion import ConstrainedMotion
from .contact.simulated import SimulatedContacts
from .discrete_mechanics import GUESSED, variational_steps
from .loop_steps import RK4, SEMI_IMPLICIT, VARIATIONAL, loop_steps
from .modes import PAUSE
from .rk4_steps import rk4_steps
from .semi_implicit_steps import semi_implicit_steps
from .springs import ArmSprings
from .variational import NONE, Variational


class ContactSteps:
    """Steps of h (s) of a robot with contacts."""

    def __init__(self, contacts: SimulatedContacts, h: float) -> None:
        self._contacts, self._h = contacts, h

    def forget(self) -> None:
        """Reset after the state was set from outside: nothing is remembered here."""

    def advance(self, q: Array, v: Array, efforts: Array, wrench: Array, steps: int) -> int:
        """As `ManySteps.advance`."""
        return self._contacts.many(q, v, self._h, efforts, wrench, steps)


class LoopSteps:
    """Steps of h (s) of a robot with constraints; method, joints: as of `ManySteps`."""

    def __init__(self, constrained: ConstrainedMotion, method: str | Variational, joints: Array, h: float) -> None:
        self._constrained, self._joints, self._h = constrained, joints, h
        self._method = {"semi_implicit": SEMI_IMPLICIT, "rk4": RK4}.get(str(method), VARIATIONAL)
        self._damping = method.damping if isinstance(method, Variational) else NONE
        self.forget()

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        self._seen = np.full(GUESSED * self._constrained.model.nv, np.nan)

    def advance(self, q: Array, v: Array, efforts: Array, wrench: Array, steps: int) -> int:
        """As `ManySteps.advance`."""
        constrained, bound = self._constrained, self._constrained.bound
        multipliers = constrained.multipliers.copy()
        done = int(loop_steps.call(self._method, bound.model._block, bound.block, bound.holonomic, q, v, efforts,
                                   wrench, self._damping, self._joints, self._h, steps, multipliers, self._seen))
        if done:
            constrained.multipliers = multipliers
        return done


class ManySteps:
    """Steps of h (s) of one robot. method: `semi_implicit`, `rk4`, or a `Variational`, whose momentum is updated;
    joints: friction and limits (`joint_data`). stepped: the model; of `semi_implicit` with more armature, by h·damping.
    springs: if any.
    """

    def __init__(self, model: RobotModel, method: str | Variational, joints: Array, h: float,
                 springs: ArmSprings | None = None) -> None:
        self._springs = np.empty((0, 0)) if springs is None else springs.table
        self._resistance = NONE if springs is None or not springs.damping.any() else springs.damping
        self.model, self.method, self.joints, self.h, self.stepped = model, method, joints, h, model
        self._regular = False    # whether the mass matrix was found regular, without the armature of damping
        if method == "semi_implicit" and model.damping.any():
            self.stepped = model.with_(armature=model.armature + h * model.damping)
            if isinstance(model, SpecializedModel):
                self.stepped = specialize(self.stepped)
        self.forget()

    @cached_property
    def code(self) -> NDArray[np.int64]:
        """Address of specialised code for forward dynamics, and space for its five words; or empty."""
        stepped = self.stepped
        address = 0 if not isinstance(stepped, SpecializedModel) else stepped._specialized.address("forward_dynamics")
        return np.array([address, *[0] * 5] if address else [], np.int64)

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        self._pause = 0

    def advance(self, q: Array, v: Array, efforts: Array, wrench: Array, steps: int) -> int:
        """Advance q, v in place by at most `steps` steps; returns the number made, and none in the `PAUSE` steps after
        endless events. efforts (1 or steps, k, nv), see `SAMPLES`; wrench: in node frames, or empty.
        """
        joints, method = self.joints, self.method
        if isinstance(method, Variational):
            known, p, frame = method.begin()
            done = int(variational_steps.call(
                method.block, q, v, p, frame, known, efforts, wrench, self._springs, method.damping, method.gravity,
                joints, self.h, steps))
            if done:
                method.momentum = p, frame
            return done
        if self._pause:
            self._pause -= 1
            return 0
        if not self._regular:
            forward_dynamics(self.model, q, v, np.zeros_like(v))    # raises if singular
            self._regular = True
        kernel = rk4_steps if method == "rk4" else semi_implicit_steps
        done = int(kernel.call(self.stepped._block, q, v, efforts, wrench, self._springs, self._resistance, self.code,
                               joints, self.h, steps))
        if done < 0:
            done = -1 - done
            self._pause = PAUSE + (done > 0)    # with the step that failed, unless it is made now
        return done

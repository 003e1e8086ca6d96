"""Input validation of simulators, with joint names in errors."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from ..dynamics.inverse_mass_matrix import inverse_mass_matrix
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.surfaces.compliant import CompliantContact
from ..model.surfaces.unilateral import UnilateralContact


def soft_and_hard(contacts: Sequence[UnilateralContact | CompliantContact]) -> tuple[
        list[CompliantContact], list[UnilateralContact], list[bool]]:
    """Compliant contacts, unilateral contacts, and per contact whether it is compliant; raises `RbdError` for others.
    """
    if not isinstance(contacts, Iterable):
        raise RbdError(f"contacts: expected a list of UnilateralContact and CompliantContact, got {shown(contacts)}")
    soft: list[CompliantContact] = []
    hard: list[UnilateralContact] = []
    is_soft: list[bool] = []
    names: set[str] = set()
    for i, contact in enumerate(contacts):
        is_soft.append(isinstance(contact, CompliantContact))
        if isinstance(contact, CompliantContact):
            soft.append(contact)
        elif isinstance(contact, UnilateralContact):
            hard.append(contact)
        else:
            raise RbdError(f"contact {i} is {type(contact).__name__}, expected UnilateralContact or CompliantContact")
        if contact.name and contact.name in names:
            raise RbdError(f"duplicate contact name '{contact.name}'")
        names.add(contact.name)
    return soft, hard, is_soft


class Checks(ABC):
    """Checks of a simulator's state before a step and of its step size."""

    model: RobotModel
    step_size: float
    _q: Array
    _v: Array

    @property
    @abstractmethod
    def time(self) -> float:
        """s."""

    def _check_finite(self, q: Array, v: Array) -> None:
        for kind, array in (("v", v), ("q", q)):
            if not (finite := np.isfinite(array)).all():
                raise self._diverged(kind, int(np.argmin(finite)), array)

    def _diverged(self, kind: str, i: int, array: Array | None = None) -> RbdError:
        value = (self._v if array is None else array)[i]
        return RbdError(f"simulation diverged at {self.time:g} s: {'velocity' if kind == 'v' else 'position'} of joint "
                        f"'{self._owner(i, kind)}' is {value}; smaller efforts or a smaller step than "
                        f"{self.step_size:g} s may help")

    def _check_damping(self, q: Array) -> None:
        rate = self._damping_rates(q)
        if rate.size and rate.max() > 1.0:
            i = int(np.argmax(rate))
            raise RbdError(f"damping {self.model.damping[i]:g} of joint '{self._owner(i, 'v')}' is too stiff for rk4 "
                           f"with step {self.step_size:g} s: use at most {self.step_size / rate[i]:.1e} s, or "
                           "the integrator variational")

    def _damping_rates(self, q: Array) -> Array:
        """Decay by damping in a step, (nv,) or (N, nv): more than 1 is too stiff for rk4."""
        diagonal = np.diagonal(inverse_mass_matrix(self.model, q), axis1=-2, axis2=-1)
        return np.asarray(self.step_size * self.model.damping * diagonal)

    def _owner(self, index: int, kind: str) -> str:
        starts = [(joint.idx_q if kind == "q" else joint.idx_v, joint.name) for joint in self.model.joints]
        return max((start, name) for start, name in starts if start <= index)[1]

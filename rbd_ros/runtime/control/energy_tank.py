"""Energy tank: what a law may add to the energy of its springs and of the arm, beyond the work of others.

    0 ≤ level ≤ size:  filled by what the damper takes, drained by what changes of the springs and applied wrenches give

(Franchi et al. 2012; Ferraguti, Secchi, Fantuzzi 2013). While the target rests, the arm's kinetic energy, the springs'
energy and the level together never grow but by the work of others. Only walls and springs at limits that become stiffer
under load may take more than there is, for which the level is then below 0.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from .cartesian_law import CartesianLaw

LOW = 0.2    # share of the size below which applied wrenches fade


class HasLaw(Protocol):
    law: CartesianLaw


L = TypeVar("L", bound=HasLaw)


class EnergyTank(Generic[L]):
    """size: J; full at first. weights: of the laws in the last effort."""

    def __init__(self, size: float) -> None:
        self.size = self.level = size
        self.weights: dict[L, float] = {}

    def refill(self) -> None:
        """Begin anew, with laws whose springs are relaxed."""
        self.level, self.weights = self.size, {}

    @property
    def share(self) -> float:
        """Of an applied wrench, from 1 to 0 for an empty tank."""
        return min(max(self.level / (LOW * self.size), 0.0), 1.0) if self.size > 0.0 else 0.0

    def add(self, energy: float) -> None:
        """Put energy (J) in, or take it out."""
        self.level = min(self.level + energy, self.size)

    def release(self, new: L, weights: dict[L, float], evaluate: Callable[[L], object], step: float) -> None:
        """Other weights, with a sum of at most 1: the springs of the `new` laws act as far as the tank affords what
        they add to the stored energy in the present state, by `evaluate(laws)`; their share grows by at most `step`.
        """
        before, self.weights = self.weights, weights
        if not before:
            new.law.share = 1.0
        if not before or (before == weights and new.law.share >= 1.0):
            return
        added, springs = 0.0, 0.0
        for laws in dict.fromkeys((*before, *weights)):
            evaluate(laws)
            seen, after = laws.law.seen, weights.get(laws, 0.0)
            if laws is new:
                springs = after * seen.springs
                added -= springs * laws.law.share
            added += (after - before.get(laws, 0.0)) * seen.energy
        afforded = max((self.level - added) / springs, 0.0) if springs > 0.0 else 1.0
        new.law.share = min(afforded, new.law.share + step, 1.0)
        self.add(-added - springs * new.law.share)

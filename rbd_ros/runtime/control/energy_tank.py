"""Energy tank: what a law may add to the energy of its springs and of the arm, beyond the work of others.

    0 ≤ level ≤ size:  filled by what the damper takes, drained by what changes of the springs and applied wrenches give

(Franchi et al. 2012; Ferraguti, Secchi, Fantuzzi 2013). While the target rests, the arm's kinetic energy, the springs'
energy and the level together never grow but by the work of others. Only walls and springs at limits that become stiffer
under load may take more than there is, for which the level is then below 0.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cartesian_law import CartesianLaw

Weights = Mapping[CartesianLaw, float]


class EnergyTank:
    """size: J; full at first. weights: of the laws that acted last."""

    def __init__(self, size: float) -> None:
        self.size = self.level = size
        self.weights: dict[CartesianLaw, float] = {}

    def refill(self) -> None:
        """Begin anew, with laws whose springs are relaxed."""
        self.level, self.weights = self.size, {}

    def add(self, energy: float) -> None:
        """Put energy (J) in, or take it out."""
        self.level = min(self.level + energy, self.size)

    def release(self, new: CartesianLaw, weights: dict[CartesianLaw, float], state: Any, step: float) -> None:
        """Other weights, which sum to 1: the springs of the `new` law act as far as the tank affords what they add to
        the energy stored in this state, the arguments of `CartesianLaw.effort`; their share grows by at most `step`.
        """
        before, self.weights = self.weights, weights
        if not before:
            new.share = 1.0
        if not before or (before == weights and new.share >= 1.0):
            return
        added, springs = 0.0, 0.0
        for law in dict.fromkeys((*before, *weights)):
            law.effort(*state)
            seen, after = law.seen, weights.get(law, 0.0)
            if law is new:
                springs = after * seen.springs
                added -= springs * law.share
            added += (after - before.get(law, 0.0)) * seen.energy
        new.share = min(max((self.level - added) / springs, 0.0) if springs > 0.0 else 1.0, new.share + step, 1.0)
        self.add(-added - springs * new.share)

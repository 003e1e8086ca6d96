"""Compliant contacts: normal force by depth and its rate, and friction by slip, between two surfaces."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..scalars import at_least, positive
from .contacts import Contact
from .unilateral import UnilateralContact


@dataclass(frozen=True, eq=False)
class CompliantContact(Contact):
    """Compliant contact of two surfaces that overlap by d (m): Hunt and Crossley (1975), Marhefka and Orin (1999), with
    friction. Not a constraint: forces that follow from q and v (`contact_wrenches`, `Simulator`).

    Normal force `k dⁿ (1 + 3/2 c ḋ)`, never pulling: stiffness k (N/mⁿ), exponent n (1 and more; 1.5: Hertz, of round
    bodies), dissipation c (s/m). A body that hits the other at v bounces off with e v,
    `a v − ln(1 + a v) = −a e v − ln(1 − a e v)`, a = 3/2 c, whatever mass, k and n are: e = 1 − c v where c v is small.
    Friction `µ F tanh(s/s₀)` against the slip s (m/s) of the second body on the first at the contact: friction µ (no
    unit), slip_speed s₀ (m/s). It never adds energy, and never quite sticks: under a load of r times µ F it creeps at
    s₀ atanh r. The forces act at the second surface's closest point, opposite on both bodies. Of a `Plane` with a size
    only points and spheres above it touch.

        >>> mat = rbd.CompliantContact(rbd.Plane("world"), rbd.Sphere("ball", 0.1), stiffness=2e5, dissipation=2.0)
        >>> mat.exponent
        1.5
    """

    stiffness: float = field(kw_only=True)
    dissipation: float = field(kw_only=True)
    exponent: float = field(default=1.5, kw_only=True)
    friction: float = field(default=0.0, kw_only=True)
    slip_speed: float = field(default=0.01, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        UnilateralContact(self.first, self.second, name=self.name)    # says what is wrong with these
        what = f"of the compliant contact '{self.name}'" if self.name else "of a compliant contact"
        for key, unit in (("stiffness", "number in N/mⁿ"), ("slip_speed", "speed in m/s")):
            object.__setattr__(self, key, positive(getattr(self, key), f"{key} {what}", unit))
        for key, least, unit in (("dissipation", 0.0, "s/m"), ("exponent", 1.0, ""), ("friction", 0.0, "")):
            object.__setattr__(self, key, at_least(least, getattr(self, key), f"{key} {what}", unit))

    def rows(self) -> tuple[str, ...]:
        """Relative velocities on which its forces depend."""
        return "normal", "tangent_x", "tangent_y"

    @property
    def law(self) -> tuple[float, ...]:
        """Stiffness, dissipation, exponent, friction and slip speed."""
        return self.stiffness, self.dissipation, self.exponent, self.friction, self.slip_speed

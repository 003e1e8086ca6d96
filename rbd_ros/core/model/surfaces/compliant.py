"""Compliant contacts: normal force as a function of depth and its rate, friction as a function of slip velocity."""
from __future__ import annotations

from dataclasses import dataclass, field

from ..scalars import at_least, positive
from .contacts import Contact
from .unilateral import UnilateralContact


@dataclass(frozen=True, eq=False)
class CompliantContact(Contact):
    """Compliant contact of two surfaces that overlap by d (m): Hunt and Crossley (1975), Marhefka and Orin (1999), with
    friction. Not a constraint: its forces are functions of q and v (`contact_wrenches`, `Simulator`).

    Normal force `k dⁿ (1 + 3/2 c ḋ)`, zero instead of pulling: stiffness k (N/mⁿ), exponent n (≥ 1; 1.5: Hertz, round
    bodies), dissipation c (s/m). An impact at speed v rebounds with e v, independent of mass, k and n:
    `a v − ln(1 + a v) = −a e v − ln(1 − a e v)`, a = 3/2 c; e = 1 − c v for small c v.
    Friction `µ F tanh(s/s₀)` against the slip velocity s (m/s) of the second body on the first at the contact: friction
    µ (no unit), slip_speed s₀ (m/s). Friction never adds energy, and does not stick: under a tangential load of r times
    µ F the contact creeps at s₀ atanh r. The forces act at the second surface's closest point, opposite on both bodies.
    On a `Plane` with a size, only points and spheres above it touch.

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
        UnilateralContact(self.first, self.second, name=self.name)    # validates these arguments
        label = f"of the compliant contact '{self.name}'" if self.name else "of a compliant contact"
        for key, unit in (("stiffness", "number in N/mⁿ"), ("slip_speed", "speed in m/s")):
            object.__setattr__(self, key, positive(getattr(self, key), f"{key} {label}", unit))
        for key, least, unit in (("dissipation", 0.0, "s/m"), ("exponent", 1.0, ""), ("friction", 0.0, "")):
            object.__setattr__(self, key, at_least(least, getattr(self, key), f"{key} {label}", unit))

    def rows(self) -> tuple[str, ...]:
        """Names of the relative velocities on which the forces depend."""
        return "normal", "tangent_x", "tangent_y"

    @property
    def law(self) -> tuple[float, ...]:
        """Stiffness, dissipation, exponent, friction and slip speed."""
        return self.stiffness, self.dissipation, self.exponent, self.friction, self.slip_speed

"""Physical consistency of link inertias, and the probable cause of a violation.

Each body is compared with the uniform ellipsoid of the same mass and inertia. Among all bodies of at most a given
density, the uniform ellipsoid's second moments have the least determinant: an ellipsoid denser than any metal proves
the data wrong.
"""
from __future__ import annotations

import numpy as np

from ..assembly import Description, depth_first
from ..inertia import Array, Inertia
from .diagnosis import Finding, extent, moving_links

HEAVIEST, LIGHTEST = 3e4, 1.2    # kg/m³: above osmium; air
EXCESS = 0.25    # excess of the largest moment over the sum of the others, relative: not by rounding or identification
FELT = 1e-5      # smallest relevant inertia, in units of the robot's mass times its size squared
POINT = 1e-6    # m: smaller radii of gyration count as zero
UNITS = ((1e9, "g mm²"), (1e7, "g cm²"), (1e6, "kg mm²"), (1e4, "kg cm²"))
CHECK = "take it from CAD (about the centre of mass, link axes, kg m²)"


def link_findings(description: Description) -> list[Finding]:
    """Findings on the moving links."""
    size = extent(description)
    reach = dict.fromkeys(description.links, 0.0)
    for joint in depth_first(description)[1]:
        reach[joint.parent] = max(reach[joint.parent], float(np.linalg.norm(joint.position)))
    links = {name: description.links[name] for name in moving_links(description)}
    total = sum(inertia.mass for inertia in links.values())
    findings = []
    for name, inertia in links.items():
        if not inertia.is_zero:
            findings += _link(name, inertia, reach[name], size, total)
    return findings + about_origin(links)


def _link(name: str, inertia: Inertia, reach: float, size: float, total: float) -> list[Finding]:
    mass = inertia.mass
    moments = np.asarray(np.linalg.eigvalsh(inertia.matrix), dtype=np.float64)
    if mass < 0.0:
        return [Finding("error", "negative mass", name, f"mass is {mass:g} kg", "set the mass of the real part")]
    if mass == 0.0:
        return [Finding("warning", "inertia without mass", name, "mass is 0 but the inertia matrix is not", CHECK)]
    findings = []
    shown = ", ".join(f"{moment:.3g}" for moment in moments)
    scale = float(np.abs(moments).max())
    sound = False
    if scale <= POINT**2 * mass:
        findings.append(Finding("warning" if mass > 0.01 * total else "note", "point mass", name,
                                f"{mass:.4g} kg without rotational inertia", CHECK))
    elif moments[0] < -1e-6 * scale:
        findings.append(Finding("error", "inertia not positive definite", name, f"principal moments {shown} kg m²",
                                "check the signs of the products of inertia; " + CHECK))
    elif moments[0] + moments[1] < moments[2] * (1 - 1e-6):
        excess = moments[2] - moments[0] - moments[1]
        wrong = excess > EXCESS * moments[2] and moments[2] > FELT * total * size**2
        findings.append(Finding("error" if wrong else "warning", "triangle inequality", name,
                                f"principal moments {shown} kg m²: the largest exceeds the sum of the others by "
                                f"{excess:.2g} kg m², which no real body's does",
                                CHECK if wrong else "usual for identified parameters if it is little; else " + CHECK))
    else:
        sound = True
    findings += _com(name, inertia, scale, reach, size)
    return findings + (_density(name, mass, moments, size, total) if sound else [])


def _com(name: str, inertia: Inertia, scale: float, reach: float, size: float) -> list[Finding]:
    distance = float(np.linalg.norm(inertia.com))
    gyration = float(np.sqrt(scale / inertia.mass))
    if distance > max(0.8 * size, 5 * max(reach, gyration)) and (size > 0.1 or distance > 20 * max(reach, gyration)):
        unit = " (millimetres?)" if distance > 10 * max(size, 0.1) else ""
        return [Finding("warning", "centre of mass far away", name, f"{distance:.3g} m from the link's origin, the "
                        f"whole robot is {size:.3g} m long", f"check the unit of <inertial><origin xyz>{unit}")]
    return []


def semi_axes(mass: float, moments: Array) -> Array:
    """Semi-axes (3,) of the uniform ellipsoid with this mass and these principal moments, longest first."""
    return np.sqrt(5 * np.maximum(moments.sum() / 2 - moments, 0.0) / mass)


def _density(name: str, mass: float, moments: Array, size: float, total: float) -> list[Finding]:
    axes = semi_axes(mass, moments)
    volume = 4 / 3 * np.pi * axes.prod()
    extents = " × ".join(f"{2000 * axis:.0f}" if axis > 0.05 else f"{2000 * axis:.3g}" for axis in axes)
    description = f"{mass:.4g} kg with the inertia of an ellipsoid of {extents} mm"
    if mass > HEAVIEST * 4 / 3 * np.pi * axes[0] ** 3:
        return [Finding("warning", "inertia too small for the mass", name, f"{description}: heavier than solid metal",
                        "usual for identified parameters; else " + CHECK)]
    if mass > HEAVIEST * volume:
        return [Finding("note", "thinner than a real body", name, description,
                        "harmless unless accuracy matters; else " + CHECK)]
    if mass < LIGHTEST * volume:
        matters = moments[2] > FELT * total * size**2
        unit = _unit(mass, float(axes.max()), float(volume), size)
        return [Finding("warning" if matters else "note", "inertia too large for the mass", name,
                        f"{description}: lighter than air{unit}", CHECK if matters else "a placeholder? " + CHECK)]
    return []


def _unit(mass: float, longest: float, volume: float, size: float) -> str:
    """Hint on the unit that would give a plausible density; empty if the size is plausible."""
    if longest < 3 * size:
        return ""
    factor, unit = min(UNITS, key=lambda unit: abs(np.log(mass / (volume / unit[0] ** 1.5) / 1500)))
    return f"; given in {unit} (a factor of {factor:g})?"


def about_origin(links: dict[str, Inertia]) -> list[Finding]:
    """Finding on inertias about the links' origins instead of the centres of mass: most remain positive definite after
    subtraction of the parallel-axis term. Counts links with different data and a distant centre of mass.
    """
    seen: set[tuple[float, float]] = set()
    agree: list[str] = []
    count = 0
    for name, inertia in links.items():
        c, mass = inertia.com, inertia.mass
        moments = np.linalg.eigvalsh(inertia.matrix)
        distance = float(np.linalg.norm(c))
        key = (round(mass, 3), round(distance, 3))
        if mass <= 0.0 or moments[0] <= 0.0 or mass * distance**2 < 0.3 * moments[2] or key in seen:
            continue
        seen.add(key)
        count += 1
        remainder = np.linalg.eigvalsh(inertia.matrix - mass * (c @ c * np.eye(3) - np.outer(c, c)))
        if remainder[0] > 0.0 and remainder[0] + remainder[1] > 0.8 * remainder[2]:
            agree.append(name)
    if count >= 4 and len(agree) >= 0.75 * count:
        return [Finding("warning", "inertia about the link's origin", ", ".join(agree),
                        f"{len(agree)} of {count} links off their centre of mass have an inertia matrix as if seen "
                        "from the link's origin", "URDF expects it about the centre of mass: subtract "
                        "m (c·c 1 − c cᵀ)")]
    return []

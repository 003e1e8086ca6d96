"""Friction compensation by the measured motion that never drives: a share of friction, in the direction of motion.

    τ = γ f(v, c),      c = tanh(v/s) + (1 − |tanh(v/s)|) r,      γ < 1

f is the friction of a joint at its speed in the direction c, from −1 to 1, s a speed above the noise of velocities. At
rest the direction r is that of the effort asked for, in proportion up to where effort and compensation together
overcome friction: r = τ_law / ((1 − γ) f), at most 1. Where no effort is asked for, as in hand guiding, r alternates
(dither): a push then has to overcome 1 − γ of the friction alone, and where a joint creeps in the half periods that
suit it, r turns that way (Stolt, Carlson, Ardakani, Lundberg, Robertsson and Johansson 2015). As |τ| ≤ γ f, friction
that is over-estimated by less than 1/γ still takes more power than this gives.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact
from ..dynamics.friction import friction_law, friction_load_share, friction_loaded

LEVEL = 3.0    # smoothings: least speed at which Coulomb friction is evaluated
DAMPING, SMOOTHING, VISCOUS_ASYMMETRY, LOAD = 0, 4, 6, 7    # of the parameters of friction


@exact
def friction_under_load(p, v, load):
    """Friction at v of a joint with this effort without friction."""
    rubbed = friction_law(p, v)
    return rubbed if p[LOAD] == 0.0 else rubbed + friction_loaded(friction_load_share(p, v), load) - load


@exact
def at_most_one(x):
    return min(max(x, -1.0), 1.0)


@exact
def friction_compensation(F, share, v, asked, carried, dither, out):
    """`out` (n,): the compensation. F (8, n): parameters of `Friction`; asked (n,): efforts of the law; carried (n,):
    efforts without friction, for friction that depends on the load; dither: of the direction at rest, (n,), or (0,).
    """
    for i in range(len(v)):
        p = (F[0, i], F[1, i], F[2, i], F[3, i], F[4, i], F[5, i], F[6, i], F[7, i])
        fast = max(abs(v[i]), LEVEL * p[SMOOTHING])
        slower = fast - abs(v[i])    # viscous friction is that at the joint's own speed
        forward = friction_under_load(p, fast, carried[i]) - (p[DAMPING] + p[VISCOUS_ASYMMETRY]) * slower
        backward = -friction_under_load(p, -fast, carried[i]) - (p[DAMPING] - p[VISCOUS_ASYMMETRY]) * slower
        level = min(forward, backward)
        moving = np.tanh(v[i] / p[SMOOTHING])
        rest = at_most_one(asked[i] / ((1.0 - share) * level)) if level > 0.0 else 0.0
        if len(dither) > 0:
            rest = at_most_one(rest + dither[i])
        direction = moving + (1.0 - abs(moving)) * rest
        out[i] = share * direction * (forward if direction > 0.0 else backward)


@quick_entry("void(float64[:, ::1], float64, float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def friction_compensation_entry(F, share, v, asked, carried, dither, out):
    """`friction_compensation` of one state."""
    friction_compensation(F, share, v, asked, carried, dither, out)

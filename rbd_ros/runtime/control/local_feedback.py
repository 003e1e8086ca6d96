"""What a faster local loop does between two commands: the law of the controller, linearised at the answered state.

The local loop holds `u = u_0 + K (x ⊖ x_0)` until the next command, while the reference moves on. So x_0 and u_0 are
those of the middle of that time: u_0 is the command, changed as the feed-forward changes until then, and x_0 the
measured state, moved as the reference moves. Then the reference is exact at the middle, and on average not late.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.feedback.tracking_gains import StateFeedback
from ...core.motion.trajectory import Reference
from .feedforward import FeedforwardController, FeedforwardLaws

Array = NDArray[np.float64]


def local_feedback(controller: FeedforwardController, q: Array, v: Array, effort: Array, hold: float) -> StateFeedback:
    """For the answer `effort` to the last state (q, v), to be held for `hold` seconds.

    Without feedback, to be held as it is, unless the answer is a command for a reference: the gain is 0 with the safe
    effort, and in proportion while that ramps to the command, or where states are old.
    """
    model, laws = controller.model, controller.safety.laws.newest
    used = laws.using(controller.state.received)
    share = controller.safety.modes.share * controller.loop.share
    if used is None or used[0] is None or share <= 0.0:
        return StateFeedback(q, v, effort, np.zeros((model.nv, 2 * model.nv)))
    reference, wrenches = used
    later = _later(controller, laws, 0.5 * hold)

    def feed_forward(at: Reference) -> Array:
        return laws.effort(at.q, at.v, at, wrenches, 0.0)

    gain = share * laws.law.gain(q, reference)
    limit = controller.settings.safety.effort_limit
    moved = effort + share * (feed_forward(later) - feed_forward(reference))
    return StateFeedback(model.integrate(q, model.difference(reference.q, later.q)), v + later.v - reference.v,
                         np.clip(moved, -limit, limit), gain)


def _later(controller: FeedforwardController, laws: FeedforwardLaws, ahead: float) -> Reference:
    """The reference so many seconds after the last state."""
    later = laws.reference.without_later()    # a copy: looking ahead changes nothing
    reference = later.sample(controller.state.received, controller.state.time_ns + round(1e9 * ahead))
    assert reference is not None
    if isinstance(later.followed, Reference):    # of a stream: as it moves on
        step = ahead * reference.v + 0.5 * ahead**2 * reference.a
        reference = reference._replace(q=controller.model.integrate(reference.q, step),
                                       v=reference.v + ahead * reference.a)
    return controller.turned(reference)

"""`PDLaw`: a PD law with feed-forward, which compiled steps evaluate; efforts of many simulations as kernels take them.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import kernel
from ..errors import RbdError, shown
from ..model.block import OWNER, first_position, first_velocity, node, node_count
from ..model.configuration import between_node
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import whole_number
from ..model.state import real, states

KP, KD, MOST, GAIN_ROWS = range(4)    # rows of gains (GAIN_ROWS, nv)


@dataclass(frozen=True, eq=False)
class PDLaw:
    """Efforts `effort + kp (q ⊖ q₀) + kd (v − v₀)` at the state (q₀, v₀), in place of the `efforts` of `simulate`.

    kp, kd: N m/rad and N m s/rad, or N/m and N s/m, a number or (nv,). q: reference, rad or m, (nq,) for all, (N, nq)
    for each state, (n, nq) for each step, or (N, n, nq), where 1 may stand for N or n. v: its velocity (default 0),
    effort: feed-forward (default 0), N m or N, of the same shapes with nv. limited: whether the sum is clipped to the
    model's effort limits (a limit of 0 counts as none).

    The law is evaluated at every `period`-th step, with the reference of that step, and held until the next. What was
    evaluated acts `delay` steps later; until then `initial` does, (nv,) or (N, nv) (default: the first feed-forward).

        >>> arm = rbd.sample("two_link")
        >>> law = rbd.PDLaw(kp=100.0, kd=20.0, q=[0.3, 0.5], effort=rbd.gravity_effort(arm, [0.3, 0.5]))
        >>> rbd.simulate(arm, [0.0, 0.0], efforts=law, n=3000).q[-1].round(3)
        array([0.3, 0.5])
    """

    kp: ArrayLike
    kd: ArrayLike
    q: ArrayLike
    v: ArrayLike | None = None
    effort: ArrayLike | None = None
    limited: bool = False
    period: int = 1
    delay: int = 0
    initial: ArrayLike | None = None


@kernel
def command(B, q, v, efforts, law, s, out):
    """out (nv,): efforts (1 or n, k, nv) of step s, the first of the step, or by a law on top of them.

    law: gains (GAIN_ROWS, nv), or (0, nv) for none; reference (1 or n, nq + nv); period; the last efforts of the law
    (delay + 1, nv), that of step s at s modulo their number.
    """
    gains, reference, period, last = law
    given = efforts[min(s, efforts.shape[0] - 1), 0]
    if gains.shape[0] == 0:
        assign(out, given)
        return
    count = last.shape[0]
    now, before, after = (0, 0, 0) if count == 1 else (s % count, (s - 1) % count, (s + 1) % count)
    new = last[now]
    if period == 1 or s % period == 0:
        aim = reference[min(s, reference.shape[0] - 1)]
        if q.shape[0] == v.shape[0]:    # plain coordinates
            for i in range(v.shape[0]):
                new[i] = aim[i] - q[i]
        else:
            for i in range(node_count(B)):
                o = node(i)
                if B[o + OWNER] != 0.0:
                    between_node(B, o, q, aim, first_position(B, o), new, first_velocity(B, o))
        for i in range(v.shape[0]):
            new[i] = given[i] + gains[KP, i] * new[i] + gains[KD, i] * (aim[q.shape[0] + i] - v[i])
    else:
        assign(new, last[before])
    for i in range(v.shape[0]):
        out[i] = min(max(last[after, i], -gains[MOST, i]), gains[MOST, i])


@entry("void(float64[::1], float64[::1], float64[::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], int64, "
       "float64[:, ::1], int64, float64[::1])")
def command_entry(B, q, v, efforts, gains, reference, period, last, s, out):
    """`command`."""
    command(B, q, v, efforts, (gains, reference, period, last), s, out)


class Commands(NamedTuple):
    """Efforts of N simulations of n steps: efforts (1 or N, 1 or n, 1, nv); gains, period: of a law, as in `command`;
    reference (1 or N, 1 or n, nq + nv); initial (1 or N, 1, nv): before the first of the law; delay: steps.
    """

    efforts: Array
    gains: Array
    reference: Array
    period: int
    initial: Array
    delay: int

    @property
    def last(self) -> Array:
        """Efforts of the law before step 0 (1 or N, delay + 1, nv)."""
        return np.repeat(self.initial, self.delay + 1, axis=1)


def commands(model: RobotModel, efforts: ArrayLike | PDLaw | None, rows: int, count: int) -> Commands:
    """Checked efforts, or law, of `rows` simulations of `count` steps; raises `RbdError`."""
    def each(value: ArrayLike | None, name: str, position: bool = False, count: int = count) -> Array:
        size = model.nq if position else model.nv
        array = _each_step(np.zeros(size) if value is None else value, name, size, rows, count)
        flat = {name: array.reshape(-1, size)}
        states(model, positions=flat if position else {}, rates={} if position else flat)
        return array

    if not isinstance(efforts, PDLaw):
        return Commands(each(efforts, "efforts")[:, :, np.newaxis], np.empty((0, model.nv)), np.empty((1, 1, 0)), 1,
                        np.zeros((1, 1, model.nv)), 0)
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    gains = np.stack([*(_gains(model, getattr(efforts, name), name) for name in ("kp", "kd")),
                      limit if efforts.limited else np.full(model.nv, np.inf)])
    q, v = each(efforts.q, "q of the law", position=True), each(efforts.v, "v of the law")
    shape = np.broadcast_shapes(q.shape[:2], v.shape[:2])
    reference = np.ascontiguousarray(np.concatenate([np.broadcast_to(x, (*shape, x.shape[2])) for x in (q, v)], axis=2))
    delay = efforts.delay if efforts.delay == 0 else whole_number(efforts.delay, "delay of the law")
    effort = each(efforts.effort, "effort of the law")
    initial = effort[:, :1] if efforts.initial is None else each(efforts.initial, "initial of the law", count=1)
    return Commands(effort[:, :, np.newaxis], gains, reference, whole_number(efforts.period, "period of the law"),
                    initial, delay)


def _each_step(value: Any, name: str, size: int, rows: int, count: int) -> Array:
    """(N or 1, n or 1, size) of one of the shapes that `PDLaw` names."""
    expected = f"({size},), ({rows}, {size}), ({count}, {size}) or ({rows}, {count}, {size})"
    array = real(value, name, expected)
    if array.ndim == 2 and len(array) == rows == count > 1:
        raise RbdError(f"{name}: shape {array.shape} may be of {rows} states or of {count} steps; give it as "
                       f"({rows}, 1, {size}) or (1, {count}, {size})")
    if array.ndim == 2:
        array = array[:, np.newaxis] if len(array) == rows else array[np.newaxis]
    array = array.reshape((1, 1, -1)) if array.ndim == 1 else array
    if array.ndim != 3 or len(array) not in (1, rows) or array.shape[1] not in (1, count) or array.shape[2] != size:
        raise RbdError(f"{name}: expected shape {expected}, got {np.shape(value)}")
    return array


def _gains(model: RobotModel, value: Any, name: str) -> Array:
    array = real(value, f"{name} of the law", f"({model.nv},)")
    if array.shape not in ((), (1,), (model.nv,)) or not np.isfinite(array).all() or (array < 0.0).any():
        raise RbdError(f"{name} of the law: expected a finite number, or {model.nv}, none negative, got {shown(value)}")
    return np.array(np.broadcast_to(array, model.nv))

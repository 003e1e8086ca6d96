"""The compiled entry of all directional derivatives, and its callers for checked states and tangents."""
from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiled.assign import assign
from ...compiled.entry import entry
from ...compiled.kernel import routine
from ...dynamics.articulated import SIZE as FACTORS
from ...dynamics.articulated import articulated_recursion
from ...dynamics.friction import Friction, left_over
from ...dynamics.singular import wrenches_of
from ...errors import RbdError
from ...model.block import (
    HEADER, LINK_START, NODE, SHARED, all_finite, integer, node_count, rates_valid, size_q, size_v,
)
from ...model.configuration import positions_valid
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import States, finite_entry, node_wrenches, shaped
from ...compiled.door import where_suited
from .friction_records import friction_by, friction_change, friction_terms, not_asked
from .parameters import HEAD, RECORD
from .sweeps import (
    CHANGE, FACTOR, MOTION, bodies, changes_outward, efforts_inward, gather_factors, left_inward, solution_outward,
)
from .tangent import Tangent, Tangents, state_changes


NO_MASK = np.empty(0, dtype=np.bool_)
NOTHING = np.empty(0)
NO_RUBBING = np.empty((0, 5, 0))


@routine
def directional_states(B, q, v, a, tau, mask, wrench, X, D, dwrench, states, out):
    """This many states, checked: 0, or −1 where the input is not what the model takes or the result is not finite, or
    the singular node + 1.

    tau: empty for inverse dynamics; else with a mask hybrid dynamics (empty: forward dynamics; a is not looked at).
    wrench, dwrench: per node, empty where there are none. X (directions, 4, states, nv): ∂q, ∂q̇, ∂q̈, ∂τ.
    D (directions, …), empty where the model does not change. out: (directions, states, nv).
    """
    nv = size_v(B)
    nodes = node_count(B)
    n = states * nv
    inverse = tau.shape[0] == 0
    directions = out.shape[0] // max(n, 1)
    if X.shape[0] != 4 * n * directions or not all_finite(X):
        return -1
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)
            and (inverse or rates_valid(B, tau, states))):
        return -1
    model = HEAD + RECORD * nodes + integer(B, LINK_START) - HEADER - NODE * nodes
    if D.shape[0] > 0 and D.shape[0] != directions * model:
        return -1
    hybrid = mask.shape[0] > 0
    factors = np.empty(FACTOR * nv)
    work = np.empty((FACTORS + MOTION + CHANGE) * nodes + 3 * nv)
    W, S, C = (work[:FACTORS * nodes], work[FACTORS * nodes:(FACTORS + MOTION) * nodes],
               work[(FACTORS + MOTION) * nodes:-3 * nv])
    Y, acc, effort = work[-3 * nv:-2 * nv], work[-2 * nv:-nv], work[-nv:]
    for s in range(states):
        k = s * size_q(B)
        j = s * nv
        rates = v[j:j + nv]
        wrenches = (wrench, 6 * nodes * s)
        if inverse:
            assign(acc, a[j:j + nv])
        else:
            found = articulated_recursion(B, q[k:], 0, rates, tau[j:], 0, (mask, a[j:]), wrenches, W, acc, effort)
            if found != 0:
                return found
            gather_factors(B, W, factors)
        bodies(B, q, k, rates, acc, 0, wrenches, S)
        for r in range(directions):
            x = 4 * n * r + j
            y = (x, x + n, x + 3 * n)
            for c in range(nv):
                Y[c] = X[x + 2 * n + c] if inverse or (hybrid and mask[c]) else 0.0
            to = n * r + j
            along = (X, y, Y, D, model * r)
            changes_outward(B, q, k, rates, acc, 0, along, dwrench, 6 * nodes * (states * r + s), S, C)
            if inverse:
                out[to:to + nv] = 0.0
                efforts_inward(B, q, k, acc, 0, along, S, C, out, to)
            else:
                left_inward(B, q, k, acc, 0, mask, along, factors, S, C)
                solution_outward(B, q, k, mask, factors, S, C, out, to)
    return 0 if all_finite(out) else -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def directional_entry(B, q, v, a, tau, mask, wrench, X, D, dwrench, states, out):
    """As `directional_states`."""
    return directional_states(B, q, v, a, tau, mask, wrench, X, D, dwrench, states, out)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[:, ::1], float64[:, :, ::1], float64[::1])", nogil=True)
def rubbing_entry(B, q, v, a, tau, mask, X, D, law, rubs, out):
    """The same of one state with friction: law (5, 1) or (5, nv), ∂ of it rubs (directions, 5, nv; or empty)."""
    nv = size_v(B)
    directions = out.shape[0] // max(nv, 1)
    inverse = tau.shape[0] == 0
    none = np.empty(0)
    if (B[SHARED] > 0.0 or v.shape[0] != nv or X.shape[0] != 4 * nv * directions or (tau.shape[0] != nv and not inverse)
            or (law.shape[1] != 1 and law.shape[1] != nv) or (rubs.shape[0] != directions and rubs.shape[0] != 0)):
        return -1
    left = np.empty(tau.shape[0])
    Y = X.copy()
    change = np.empty(out.shape[0])
    for c in range(nv):
        effort, slope, by = friction_terms(law, c if law.shape[1] > 1 else 0, v[c])
        if not inverse:
            left[c] = tau[c] - effort
        for r in range(directions):
            x = slope * X[4 * nv * r + nv + c]
            if rubs.shape[0] > 0:
                x += friction_by(law, c if law.shape[1] > 1 else 0, by, rubs, r, c)
            change[nv * r + c] = x
            if not inverse:
                Y[4 * nv * r + 3 * nv + c] -= x
    found = directional_states(B, q, v, a, left, mask, none, Y, D, none, 1, out)
    for r in range(directions):
        for c in range(nv):
            if inverse or (mask.shape[0] > 0 and mask[c]):
                out[nv * r + c] += change[nv * r + c]
    return found


def rubbing_state(model: RobotModel, q: Any, v: Any, a: Any, tau: Any, mask: NDArray[np.bool_], tangent: Any,
                  friction: Friction) -> Array | None:
    """∂ of one state by the compiled path; None if the input needs full validation."""
    found: Array | None = where_suited(_rubbing, model, q, v, a, tau, mask, tangent, friction)
    return found


def _rubbing(model: RobotModel, q: Any, v: Any, a: Any, tau: Any, mask: NDArray[np.bool_], tangent: Any,
             friction: Friction) -> Array | None:
    if tangent.block is not model._block or not tangent.alone:
        return None
    out = np.empty((tangent.count, model.nv))
    found = rubbing_entry.call(model._block, q, v, a, tau, mask, tangent.changes, tangent.records, friction.packed,
                               NO_RUBBING if tangent.friction is None else tangent.friction, out.reshape(-1))
    return out if found == 0 and finite_entry.call(out.reshape(-1)) else None


class Case(NamedTuple):
    """States with the tangents at them: inputs and changes of one batch size, ∂ direction by direction."""

    given: States
    inputs: tuple[Array, ...]
    changes: Array    # (count, 4, states, nv), flat
    tangents: Tangents
    alone: bool    # one `Tangent` was given

    def empty(self) -> Array:
        """A result, directions first."""
        given = self.given
        return np.empty((self.tangents.count, *(() if given.batch is None else (given.batch,)), given.model.nv))

    def rubbing(self, friction: Friction | None) -> Array | float:
        """∂ of the effort of friction, directions first."""
        if friction is None:
            if self.tangents.friction is not None:
                raise not_asked()
            return 0.0
        self.given.check_values()
        v = self.inputs[1]
        changes = self.changes.reshape(self.tangents.count, 4, *v.shape)
        return friction_change(self.given.model, friction, self.tangents.friction, v, changes[:, 1])    # type: ignore

    def less(self, friction: Friction | None) -> tuple[Case, Array | float]:
        """Efforts (the last inputs) and their change minus friction; and ∂ of friction."""
        change = self.rubbing(friction)
        if friction is None:
            return self, change
        changes = np.array(self.changes).reshape(self.tangents.count, 4, *self.inputs[1].shape)
        changes[:, 3] -= change
        left = left_over(self.given.model, friction, self.inputs[1], self.inputs[-1])    # type: ignore[arg-type]
        return self._replace(inputs=(*self.inputs[:-1], left), changes=changes.reshape(-1)), change

    def state(self, row: int) -> Case:
        """One state of a batch, with the tangents at it."""
        given, tangents = self.given, copy(self.tangents)
        changes = self.changes.reshape(tangents.count, 4, given.count, given.model.nv)[:, :, row].reshape(-1)
        tangents.tangents = tuple(replace(tangent, external_wrenches=wrenches_of(tangent.external_wrenches, row))
                                  for tangent in tangents.tangents)
        alone = States(given.model, given.names, tuple(x[row] for x in given.arrays), given.positions, None)
        return self._replace(given=alone, inputs=tuple(x[row] for x in self.inputs), changes=changes, tangents=tangents)

    def result(self, out: Array) -> Array:
        """Without the axis of directions for one `Tangent`."""
        return out[0] if self.alone else out


def case(model: RobotModel, tangent: Tangent | Iterable[Tangent] | Tangents, q: Any, **rates: Any) -> Case:
    """Inputs and tangents, of one batch size."""
    alone = isinstance(tangent, Tangent)
    if isinstance(tangent, Tangents):
        tangents = tangent
    elif isinstance(tangent, Tangent | Iterable):
        tangents = Tangents(model, tangent)
    else:
        raise RbdError(f"tangent: expected a Tangent or several, got {type(tangent).__name__}")
    if tangents.block is not model._block:
        raise RbdError(f"tangent: these Tangents are of another model, '{tangents.model.name}'")
    count = 1 + len(rates)
    if tangents.changes is not None:
        given = shaped(model, positions={"q": q}, rates=rates)
        if given.batch is None:
            return Case(given, given.arrays, tangents.changes, tangents, alone)
    given = shaped(model, positions={"q": q}, rates=rates | state_changes(model, tangents.tangents))
    changes = np.concatenate([array.reshape(-1) for array in given.arrays[count:]] or [np.empty(0)])
    return Case(given, given.arrays[:count], changes, tangents, alone)


def at_once(model: Any, q: Any, v: Any, a: Any, tau: Any, tangent: Any) -> Array | None:
    """Result of the entry for one state and `Tangents` of this model; tau empty: inverse dynamics."""
    if tangent.block is not model._block or (tau.shape[0] > 0 and model._block[SHARED] > 0.0):
        return None
    out = np.empty((tangent.count, model.nv))
    found = directional_entry.call(model._block, q, v, a, tau, NO_MASK, NOTHING, tangent.quick, tangent.records,
                                   NOTHING, 1, out.reshape(-1))
    return out if found == 0 else None


def run(found: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_], external_wrenches: Any,
        out: Array) -> int:
    """The entry's answer; inputs: q, v, a, tau (empty: inverse dynamics)."""
    given, tangents = found.given, found.tangents
    model: Any = given.model
    return int(directional_entry.call(
        model._block, *(x.reshape(-1) for x in inputs), mask, node_wrenches(model, external_wrenches, given.batch),
        found.changes, tangents.records, tangents.wrenches(external_wrenches, given.batch), given.count,
        out.reshape(-1)))

"""Inverse, forward and hybrid dynamics along directions: an imaginary step through RNEA, and K's factors of M.

∂ID is the imaginary part of K Table 2 on complex numbers, of states, models, wrenches all moved along the direction.
Where accelerations are sought, `M_vv ∂q̈_v = ∂τ_v − ∂ID_v` at those that Table 3 or 4 gives, with the Î, U, Ψ that it
leaves, as in the simplified runs of K §3.2: the same numbers as Tables 5 to 7. O(n) per direction.
"""
from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiled.door import where_suited
from ...compiled.entry import entry
from ...compiled.kernel import sweep
from ...dynamics.articulated import _ETA_A, _U, SIZE as FACTORS
from ...dynamics.articulated import articulated_accelerations, articulated_recursion
from ...dynamics.constrained.recursion import simplified_runs
from ...dynamics.friction import Friction, fitting
from ...dynamics.inverse import SIZE, inverse_dynamics_recursion
from ...dynamics.singular import wrenches_of
from ...errors import RbdError
from ...imaginary_step import STEP, step_numbers, step_state
from ...model.block import (
    GRAVITY, SHARED, ZERO, all_finite, first_velocity, kind, node, node_count, put, rates_valid, size_q,
)
from ...model.configuration import positions_valid
from ...model.inertia import Array
from ...model.joint_kinds import dof
from ...model.robot_model import RobotModel
from ...model.state import States, node_wrenches, shaped
from .friction_change import friction_changes, friction_changes_entry, without_friction
from .tangent import STATE, Tangent, Tangents, state_changes


NO_MASK = np.empty(0, dtype=np.bool_)
NOTHING = np.empty(0)
NO_LAW = np.empty((8, 0))
NO_CHANGE = np.empty((0, 0))


@sweep
def residual_solution(B, still, q, k, mask, rest, work, out, effort):
    """From residual changes of efforts, rest (nv), the accelerations, and efforts where the mask prescribes zero
    accelerations, with the factors of `articulated_recursion` in W. still: B without gravity.
    """
    W, G, left, zeros = work
    simplified_runs(B, q, k, mask, rest, 0, 1, W, G, left)
    for i in range(node_count(B)):
        w = FACTORS * i
        put(W, w + _ETA_A, ZERO)    # and what velocities add: here is only what efforts do
        put(W, w + _ETA_A + 3, ZERO)
        for c in range(dof(kind(B, node(i)))):
            W[w + _U + 8 * c + 7] = left[first_velocity(B, node(i)) + c]
    articulated_accelerations(still, q, k, zeros, 0, (mask, zeros), W, out, effort)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1], "
       "float64[:, :, ::1])", nogil=True)
def directional_entry(B, q, v, a, tau, mask, wrench, X, D, dwrench, law, rubs, out):
    """Checked: 0, or −1 where the input is not what the model takes or the result is not finite, or the singular node
    + 1.

    tau: empty for inverse dynamics; else with a mask hybrid dynamics (empty: forward dynamics; a is not looked at).
    wrench (states, nodes, 6), flat; X (directions, 4, states, nv): ∂q, ∂q̇, ∂q̈, ∂τ; D and dwrench (directions, …): ∂ of
    B and of wrench; law (8, 1 or nv) and rubs: friction and ∂ of it. All of these empty where there are none.
    out: (directions, states, nv).
    """
    directions, _, states, nv = X.shape
    nodes = node_count(B)
    inverse = tau.shape[0] == 0
    hybrid = mask.shape[0] > 0
    if not (all_finite(X.reshape(-1)) and positions_valid(B, q, states) and rates_valid(B, v, states)
            and rates_valid(B, a, states) and (inverse or (rates_valid(B, tau, states) and B[SHARED] == 0.0))):
        return -1
    left, acc, effort = tau.copy(), a.copy(), np.empty(a.shape[0])
    rubbed = law.shape[1] > 0
    friction = np.empty((directions if rubbed else 0, nv))
    if rubbed:
        for i in range(left.shape[0]):
            left[i] = without_friction(law, i % nv if law.shape[1] > 1 else 0, v[i], left[i])
    rest, solution, effort_change, columns, zeros, gain, carried = np.zeros((7, nv))
    still, W, G = (B, B[:0], B[:0]) if inverse else (B.copy(), np.empty(FACTORS * nodes), np.empty(6 * nodes))
    if not inverse:
        put(still, GRAVITY, ZERO)
    model = B.astype(np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates, accelerations, change = np.empty((3, nv), dtype=np.complex128)
    load = np.empty(6 * nodes if wrench.shape[0] > 0 else 0, dtype=np.complex128)
    U = np.empty(SIZE * nodes, dtype=np.complex128)
    for s in range(states):
        e = 6 * nodes * s
        if not inverse:
            singular = articulated_recursion(B, q, s * size_q(B), v, left, s * nv, (mask, a), (wrench, e), W, acc,
                                             effort)
            if singular != 0:
                return singular
        for r in range(directions):
            if D.shape[0] > 0:
                step_numbers(B, 0, D[r], model)
            if dwrench.shape[0] > 0:
                step_numbers(wrench, e, dwrench[r, e:], load)
            else:
                for i in range(load.shape[0]):
                    load[i] = wrench[e + i]
            step_state(B, (q, v, acc), s, X[r], (x, rates, accelerations))
            if not inverse:
                for c in range(nv):
                    if not (hybrid and mask[c]):
                        accelerations[c] = acc[s * nv + c]
            inverse_dynamics_recursion(model, x, 0, rates, accelerations, 0, load, 0, U, change)
            for c in range(nv):
                rest[c] = change[c].imag / STEP + 0.0 * change[c].real    # not finite where efforts are not
                carried[c] = change[c].real
            if rubbed and r == 0:
                friction_changes(law, rubs, v, carried, 0, X, s, gain, friction)
            if inverse:
                for c in range(nv):
                    out[r, s, c] = gain[c] * rest[c] + friction[r, c] if rubbed else rest[c]
                continue
            for c in range(nv):
                rest[c] = -rest[c]
                if not (hybrid and mask[c]):
                    rest[c] += (X[r, 3, s, c] - friction[r, c]) / gain[c] if rubbed else X[r, 3, s, c]
            residual_solution(B, still, q, s * size_q(B), mask, rest, (W, G, columns, zeros), solution, effort_change)
            for c in range(nv):
                if not (hybrid and mask[c]):
                    out[r, s, c] = solution[c]
                else:
                    out[r, s, c] = gain[c] * effort_change[c] + friction[r, c] if rubbed else effort_change[c]
    return 0 if all_finite(out.reshape(-1)) else -1


class Case(NamedTuple):
    """States with the tangents at them: inputs and changes of one batch size, ∂ direction by direction."""

    states: States
    inputs: tuple[Array, ...]
    changes: Array    # (count, 4, states, nv)
    tangents: Tangents
    alone: bool    # one `Tangent` was given

    def empty(self) -> Array:
        """A result, directions first."""
        batch = () if self.states.batch is None else (self.states.batch,)
        return np.empty((self.tangents.count, *batch, self.states.model.nv))

    def less(self, friction: Friction | None) -> Case:
        """The same with efforts (the last inputs) and their change less friction."""
        if friction is None:
            return self
        self.states.check_values()
        v, tau = self.inputs[1], self.inputs[-1]
        left = fitting(self.tangents.model, friction).remove(v, tau)
        self.states.finite(tau=left)
        gain, change = self.rubbed(friction, left)
        changes = np.array(self.changes)
        changes[:, 3] = (changes[:, 3] - change) / gain
        self.states.finite(tangent=changes)
        return self._replace(inputs=(*self.inputs[:-1], left), changes=changes)

    def rubbed(self, friction: Friction, tau: Array) -> tuple[Array, Array]:
        """`friction_changes` of joints that carry tau: gain (states, nv), and change, directions first."""
        count, _, states, nv = self.changes.shape
        gain, change = np.empty((states, nv)), np.empty((states, count, nv))
        friction_changes_entry.call(fitting(self.tangents.model, friction).packed, self.tangents.friction,
                                    self.inputs[1].reshape(-1), tau.reshape(-1), self.changes, gain, change)
        return gain, np.moveaxis(change, 1, 0)

    def state(self, row: int) -> Case:
        """One state of a batch, with the tangents at it."""
        states, tangents = self.states, copy(self.tangents)
        tangents.tangents = tuple(replace(tangent, external_wrenches=wrenches_of(tangent.external_wrenches, row))
                                  for tangent in tangents.tangents)
        alone = States(states.model, states.names, tuple(x[row] for x in states.arrays), states.positions, None)
        return self._replace(states=alone, inputs=tuple(x[row] for x in self.inputs), tangents=tangents,
                             changes=np.ascontiguousarray(self.changes[:, :, row:row + 1]))

    def result(self, out: Array) -> Array:
        """Without the axis of directions for one `Tangent`."""
        return out[0] if self.alone else out


def case(model: RobotModel, tangent: Tangent | Iterable[Tangent] | Tangents, friction: Friction | None, q: Any,
         **rates: Any) -> Case:
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
    if friction is None and len(tangents.friction):
        raise RbdError("tangent.friction: this call has no friction that could change: give "
                       "friction=joint_friction(model)")
    count = 1 + len(rates)
    if tangents.changes is not None:
        states = shaped(model, positions={"q": q}, rates=rates)
        if states.batch is None:
            return Case(states, states.arrays, tangents.changes, tangents, alone)
    states = shaped(model, positions={"q": q}, rates=rates | state_changes(model, tangents.tangents))
    changes = np.array(states.arrays[count:]).reshape(tangents.count, len(STATE), states.count, model.nv)
    return Case(states, states.arrays[:count], changes, tangents, alone)


def at_once(model: RobotModel, q: Any, v: Any, a: Any, tau: Any, mask: NDArray[np.bool_], tangent: Any,
            friction: Friction | None) -> Array | None:
    """Derivative at one state along `Tangents` of this model; None where the input needs full validation."""
    derivative: Array | None = where_suited(_at_once, model, q, v, a, tau, mask, tangent, friction)
    return derivative


def _at_once(model: RobotModel, q: Any, v: Any, a: Any, tau: Any, mask: NDArray[np.bool_], tangent: Any,
             friction: Friction | None) -> Array | None:
    if tangent.block is not model._block or (friction is None and len(tangent.friction)):
        return None
    out = np.empty((tangent.count, 1, model.nv))
    refused = directional_entry.call(
        tangent.start, q, v, a, tau, mask, NOTHING, tangent.quick, tangent.models, NO_CHANGE,
        NO_LAW if friction is None else fitting(model, friction).packed, tangent.friction, out)
    return out[:, 0] if refused == 0 else None


def run(asked: Case, inputs: tuple[Array, ...], mask: NDArray[np.bool_], external_wrenches: Any,
        friction: Friction | None, out: Array) -> int:
    """The entry's answer; inputs: q, v, a, tau (empty: inverse dynamics)."""
    states, tangents = asked.states, asked.tangents
    model: Any = states.model
    wrench = node_wrenches(model, external_wrenches, states.batch)
    changes = tangents.wrenches(external_wrenches, states.batch)
    if len(changes) and not len(wrench):
        wrench = np.zeros(changes.shape[1])
    return int(directional_entry.call(
        tangents.start, *(x.reshape(-1) for x in inputs), mask, wrench, asked.changes, tangents.models, changes,
        NO_LAW if friction is None else fitting(model, friction).packed, tangents.friction,
        out.reshape(tangents.count, states.count, model.nv)))

"""Inverse, forward and hybrid dynamics along directions: an imaginary step through RNEA, and K's factors of M.

∂ID is the imaginary part of K Table 2 on complex numbers, with state, model and wrenches displaced along the direction.
Unknown accelerations follow from `M_vv ∂q̈_v = ∂τ_v − ∂ID_v` at the accelerations of Table 3 or 4, with its Î, U and Ψ,
as in the simplified runs of K §3.2: the same numbers as Tables 5 to 7. O(n) per direction.
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
def residual_solution(B, weightless, q, k, mask, residual, work, out, effort):
    """Accelerations out (nv) under the efforts residual (nv), and efforts where the mask prescribes zero accelerations,
    with the factors of `articulated_recursion` in W. weightless: B without gravity.
    """
    W, G, net, zeros = work
    simplified_runs(B, q, k, mask, residual, 0, 1, W, G, net)
    for i in range(node_count(B)):
        w = FACTORS * i
        put(W, w + _ETA_A, ZERO)    # no velocity-dependent terms: the response to efforts alone
        put(W, w + _ETA_A + 3, ZERO)
        for c in range(dof(kind(B, node(i)))):
            W[w + _U + 8 * c + 7] = net[first_velocity(B, node(i)) + c]
    articulated_accelerations(weightless, q, k, zeros, 0, (mask, zeros), W, out, effort)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1], "
       "float64[:, :, ::1])", nogil=True)
def directional_entry(B, q, v, a, tau, mask, wrench, X, D, dwrench, law, dlaw, out):
    """out := ∂ of the unknowns (directions, states, nv). Returns 0, −1 for invalid input or a non-finite result, or the
    singular node + 1.

    tau: empty for inverse dynamics; else with a mask hybrid dynamics (empty: forward dynamics; a is ignored).
    wrench (states, nodes, 6), flat; X (directions, 4, states, nv): ∂q, ∂q̇, ∂q̈, ∂τ; D and dwrench (directions, …): ∂ of
    B and of wrench; law (8, 1 or nv) and dlaw (directions, 8, nv): friction and ∂ of its parameters. Empty: none.
    """
    directions, _, states, nv = X.shape
    nodes = node_count(B)
    inverse = tau.shape[0] == 0
    hybrid = mask.shape[0] > 0
    if not (all_finite(X.reshape(-1)) and positions_valid(B, q, states) and rates_valid(B, v, states)
            and rates_valid(B, a, states) and (inverse or (rates_valid(B, tau, states) and B[SHARED] == 0.0))):
        return -1
    net, acc, effort = tau.copy(), a.copy(), np.empty(a.shape[0])
    has_friction = law.shape[1] > 0
    friction = np.empty((directions if has_friction else 0, nv))
    if has_friction:
        for i in range(net.shape[0]):
            net[i] = without_friction(law, i % nv if law.shape[1] > 1 else 0, v[i], net[i])
    residual, solution, effort_change, columns, zeros, gain, carried = np.zeros((7, nv))
    weightless, W, G = (B, B[:0], B[:0]) if inverse else (B.copy(), np.empty(FACTORS * nodes), np.empty(6 * nodes))
    if not inverse:
        put(weightless, GRAVITY, ZERO)
    model = B.astype(np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates, accelerations, change = np.empty((3, nv), dtype=np.complex128)
    load = np.empty(6 * nodes if wrench.shape[0] > 0 else 0, dtype=np.complex128)
    U = np.empty(SIZE * nodes, dtype=np.complex128)
    for s in range(states):
        e = 6 * nodes * s
        if not inverse:
            singular = articulated_recursion(B, q, s * size_q(B), v, net, s * nv, (mask, a), (wrench, e), W, acc,
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
                residual[c] = change[c].imag / STEP + 0.0 * change[c].real    # not finite if the effort is not
                carried[c] = change[c].real
            if has_friction and r == 0:
                friction_changes(law, dlaw, v, carried, 0, X, s, gain, friction)
            if inverse:
                for c in range(nv):
                    out[r, s, c] = gain[c] * residual[c] + friction[r, c] if has_friction else residual[c]
                continue
            for c in range(nv):
                residual[c] = -residual[c]
                if not (hybrid and mask[c]):
                    residual[c] += (X[r, 3, s, c] - friction[r, c]) / gain[c] if has_friction else X[r, 3, s, c]
            residual_solution(B, weightless, q, s * size_q(B), mask, residual, (W, G, columns, zeros), solution,
                              effort_change)
            for c in range(nv):
                if not (hybrid and mask[c]):
                    out[r, s, c] = solution[c]
                else:
                    out[r, s, c] = gain[c] * effort_change[c] + friction[r, c] if has_friction else effort_change[c]
    return 0 if all_finite(out.reshape(-1)) else -1


class Perturbation(NamedTuple):
    """States with their tangents: inputs and their changes per direction, of one batch size."""

    states: States
    inputs: tuple[Array, ...]
    changes: Array    # (count, 4, states, nv)
    tangents: Tangents
    single: bool    # one `Tangent` was given

    def empty(self) -> Array:
        """An uninitialised result (directions, …, nv)."""
        batch = () if self.states.batch is None else (self.states.batch,)
        return np.empty((self.tangents.count, *batch, self.states.model.nv))

    def without_friction(self, friction: Friction | None) -> Perturbation:
        """The same with friction subtracted from the efforts (the last inputs) and from their changes."""
        if friction is None:
            return self
        self.states.check_values()
        v, tau = self.inputs[1], self.inputs[-1]
        net_effort = fitting(self.tangents.model, friction).remove(v, tau)
        self.states.finite(tau=net_effort)
        gain, change = self.friction_changes(friction, net_effort)
        changes = np.array(self.changes)
        changes[:, 3] = (changes[:, 3] - change) / gain
        self.states.finite(tangent=changes)
        return self._replace(inputs=(*self.inputs[:-1], net_effort), changes=changes)

    def friction_changes(self, friction: Friction, tau: Array) -> tuple[Array, Array]:
        """`friction_changes` at efforts tau without friction: gain (states, nv), and change, directions first."""
        count, _, states, nv = self.changes.shape
        gain, change = np.empty((states, nv)), np.empty((states, count, nv))
        friction_changes_entry.call(fitting(self.tangents.model, friction).packed, self.tangents.friction,
                                    self.inputs[1].reshape(-1), tau.reshape(-1), self.changes, gain, change)
        return gain, np.moveaxis(change, 1, 0)

    def state(self, row: int) -> Perturbation:
        """One state of a batch, with its tangents."""
        states, tangents = self.states, copy(self.tangents)
        tangents.tangents = tuple(replace(tangent, external_wrenches=wrenches_of(tangent.external_wrenches, row))
                                  for tangent in tangents.tangents)
        state = States(states.model, states.names, tuple(x[row] for x in states.arrays), states.positions, None)
        return self._replace(states=state, inputs=tuple(x[row] for x in self.inputs), tangents=tangents,
                             changes=np.ascontiguousarray(self.changes[:, :, row:row + 1]))

    def result(self, out: Array) -> Array:
        """The result, without the axis of directions for a single `Tangent`."""
        return out[0] if self.single else out


def perturbation(model: RobotModel, tangent: Tangent | Iterable[Tangent] | Tangents, friction: Friction | None, q: Any,
                 **rates: Any) -> Perturbation:
    """The validated inputs and tangents, broadcast to one batch size."""
    single = isinstance(tangent, Tangent)
    if isinstance(tangent, Tangents):
        tangents = tangent
    elif isinstance(tangent, Tangent | Iterable):
        tangents = Tangents(model, tangent)
    else:
        raise RbdError(f"tangent: expected a Tangent or several, got {type(tangent).__name__}")
    if tangents.block is not model._block:
        raise RbdError(f"tangent: these Tangents are of another model, '{tangents.model.name}'")
    if friction is None and len(tangents.friction):
        raise RbdError("tangent.friction: expected a friction law for its derivatives, such as "
                       "friction=joint_friction(model)")
    count = 1 + len(rates)
    if tangents.changes is not None:
        states = shaped(model, positions={"q": q}, rates=rates)
        if states.batch is None:
            return Perturbation(states, states.arrays, tangents.changes, tangents, single)
    states = shaped(model, positions={"q": q}, rates=rates | state_changes(model, tangents.tangents))
    changes = np.array(states.arrays[count:]).reshape(tangents.count, len(STATE), states.count, model.nv)
    return Perturbation(states, states.arrays[:count], changes, tangents, single)


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
    status = directional_entry.call(
        tangent.start, q, v, a, tau, mask, NOTHING, tangent.quick, tangent.models, NO_CHANGE,
        NO_LAW if friction is None else fitting(model, friction).packed, tangent.friction, out)
    return out[:, 0] if status == 0 else None


def run(perturbed: Perturbation, inputs: tuple[Array, ...], mask: NDArray[np.bool_], external_wrenches: Any,
        friction: Friction | None, out: Array) -> int:
    """Call `directional_entry` and return its status; inputs: q, v, a, tau (empty: inverse dynamics)."""
    states, tangents = perturbed.states, perturbed.tangents
    model: Any = states.model
    wrench = node_wrenches(model, external_wrenches, states.batch)
    changes = tangents.wrenches(external_wrenches, states.batch)
    if len(changes) and not len(wrench):
        wrench = np.zeros(changes.shape[1])
    return int(directional_entry.call(
        tangents.start, *(x.reshape(-1) for x in inputs), mask, wrench, perturbed.changes, tangents.models, changes,
        NO_LAW if friction is None else fitting(model, friction).packed, tangents.friction,
        out.reshape(tangents.count, states.count, model.nv)))

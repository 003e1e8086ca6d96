"""Functions of batches with their analytic derivatives by the numbers of their inputs, for torch and JAX.

A function has inputs of sizes K₁, K₂, …, together K, and outputs of M numbers together: `value` (…, M), `jacobian`
(…, M, K), `hessian` (…, M, K, K).
"""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..derivatives.bodies import body_derivatives
from ..derivatives.constrained import (
    balanced, constrained_forward_dynamics_derivatives, constrained_inverse_dynamics_derivatives,
)
from ..derivatives.directional.friction_change import NAMES
from ..derivatives.forward import forward_dynamics_derivatives
from ..derivatives.hybrid import hybrid_dynamics_derivatives
from ..derivatives.inverse import inverse_dynamics_derivatives
from ..derivatives.regressor import PARAMETERS, inertial_regressor
from ..derivatives.second_derivatives import inverse_dynamics_second_derivatives
from ..derivatives.variable_inertias import inertia_map
from ..dynamics.constrained.forward import constrained_forward_dynamics
from ..dynamics.constrained.inverse import constrained_inverse_dynamics
from ..dynamics.constrained.values import constraint_jacobian
from ..dynamics.energy import kinetic_energy, potential_energy
from ..dynamics.forward import forward_dynamics
from ..dynamics.friction import Friction, fitting
from ..dynamics.hybrid import hybrid_dynamics, prescribed_mask
from ..dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics
from ..dynamics.kinematics import forward_kinematics
from ..dynamics.mass_matrix import mass_matrix
from ..errors import RbdError, shown, unknown_name
from ..lie import so3
from ..model.constraints import ConstraintSet
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from ..specialize.c_source import OUTPUTS, wanted_of
from ..specialize.model_inputs import model_inputs
from .stored_positions import StoredPositions

PART = 2**17    # numbers of derivatives per part of a batch, which fit the processor's caches


class Case(NamedTuple):
    """The arguments of a function of the library that are no arrays."""

    model: RobotModel
    friction: Friction | None
    mask: NDArray[np.bool_]    # prescribed or actuated coordinates
    constraints: ConstraintSet | None

    def efforts(self, q: Array, v: Array, a: Array) -> Array:
        return inverse_dynamics(self.model, q, v, a, friction=self.friction)


Slopes = list[Array]    # ∂ outputs by each argument along its tangent, (N, M, nv) each
# ∂ inverse dynamics by parameters (N, nv, P), at q, v, a and efforts without friction: None for those of q, v, a
EffortSlopes = Callable[..., Array]


class _Function(NamedTuple):
    """A function of (N, …) arrays: its `value`, an array per output, and derivatives of all outputs' numbers.

    by_parameters: (N, M, P) from the slopes and those of inverse dynamics; curvature: (N, M, K, K) along tangents.
    friction: whether it has an argument `friction`; names: whether names of joints may stand behind a colon.
    """

    value: Callable[..., Sequence[Array]]
    slopes: Callable[..., Slopes]
    by_parameters: Callable[[Case, Slopes, EffortSlopes, tuple[Array, ...]], Array] | None = None
    curvature: Callable[..., Array] | None = None
    friction: bool = False
    names: bool = False


# inverse dynamics and its parts

def _second(case: Case, q: Array, v: Array, a: Array) -> Array:
    """Second derivatives (N, nv, 3 nv, 3 nv) along tangents of q, v and a."""
    by = inverse_dynamics_second_derivatives(case.model, q, v, a)
    n = case.model.nv
    H = np.zeros((len(q), n, 3 * n, 3 * n))
    position, velocity, acceleration = (slice(k * n, (k + 1) * n) for k in range(3))
    H[..., position, position], H[..., velocity, velocity] = by.qq, by.vv
    H[..., position, velocity], H[..., acceleration, position] = by.qv, by.aq
    H[..., velocity, position], H[..., position, acceleration] = by.qv.swapaxes(2, 3), by.aq.swapaxes(2, 3)
    if case.friction is not None:
        tau = inverse_dynamics(case.model, q, v, a)
        J = np.concatenate(inverse_dynamics_derivatives(case.model, q, v, a), axis=2)
        speed = np.zeros((n, 3 * n))    # ∂v/∂(q, v, a)
        speed[:, velocity] = np.eye(n)
        by_v, mixed, by_tau = (x[..., None, None] for x in case.friction.curvatures(v, tau))
        cross = speed[:, :, None] * J[:, :, None, :]
        H = (case.friction.gain(v, tau)[..., None, None] * H + by_v * speed[:, :, None] * speed[:, None, :]
             + mixed * (cross + cross.swapaxes(2, 3)) + by_tau * J[..., None] * J[..., None, :])
    return H


def _still(case: Case, q: Array, *v: Array) -> tuple[Array, Array, Array]:
    """q, v and a; v and a are 0 unless given."""
    zero = np.zeros((len(q), case.model.nv))
    return q, *(v or (zero,)), zero    # type: ignore[return-value]


def _static_slopes(case: Case, *x: Array) -> Slopes:
    return list(inverse_dynamics_derivatives(case.model, *_still(case, *x))[:len(x)])


def _static_second(case: Case, *x: Array) -> Array:
    size = len(x) * case.model.nv
    return _second(case, *_still(case, *x))[..., :size, :size]


# forward and hybrid dynamics

def _forward_by_parameters(case: Case, slopes: Slopes, effort_slopes: EffortSlopes, x: tuple[Array, ...]) -> Array:
    """`∂a = −M⁻¹ ∂ID`; multipliers too change as by efforts `−∂ID`."""
    q, v, tau = x
    if case.constraints is None:
        a = forward_dynamics(case.model, q, v, tau, friction=case.friction)
    else:
        a = constrained_forward_dynamics(case.model, case.constraints, q, v, tau, friction=case.friction).acceleration
    return -slopes[2] @ effort_slopes(q, v, a, None if case.friction is None else case.friction.remove(v, tau))


def _hybrid_rows(case: Case, unknown: Array, acceleration: Any, effort: Any) -> Array:
    """∂ of all accelerations, then of all efforts: `unknown` of those that are computed, the others of those given."""
    held = case.mask[:, None]
    return np.concatenate([np.where(held, acceleration, unknown), np.where(held, unknown, effort)], axis=1)


def _hybrid_slopes(case: Case, q: Array, v: Array, a: Array, tau: Array) -> Slopes:
    by = hybrid_dynamics_derivatives(case.model, q, v, a, tau, case.mask, friction=case.friction)
    one = np.eye(case.model.nv)
    return [_hybrid_rows(case, by.q, 0.0, 0.0), _hybrid_rows(case, by.v, 0.0, 0.0),
            _hybrid_rows(case, by.given * case.mask, one, 0.0), _hybrid_rows(case, by.given * ~case.mask, 0.0, one)]


def _hybrid_by_parameters(case: Case, slopes: Slopes, effort_slopes: EffortSlopes, x: tuple[Array, ...]) -> Array:
    """`∂ID` is minus a change of the efforts given, and a change of the efforts sought."""
    q, v, a, tau = x
    acceleration = hybrid_dynamics(case.model, q, v, a, tau, case.mask, friction=case.friction).acceleration
    change, n = effort_slopes(q, v, acceleration), case.model.nv
    by_effort = np.where(case.mask[:, None], slopes[3][:, n:], slopes[3][:, :n])
    return _hybrid_rows(case, np.where(case.mask[:, None], change, 0.0) - by_effort @ change, 0.0, 0.0)


# kinematics and energies

def _pose_slopes(case: Case, q: Array) -> Slopes:
    """`∂T = T ξ̂` with the columns ξ of the body's Jacobian."""
    T = forward_kinematics(case.model, q)
    J = np.moveaxis(body_derivatives(case.model, *_still(case, q)).velocity.v, 3, 2)    # N, nb, nv, 6
    change = np.zeros((*J.shape[:3], 4, 4))
    R = T[:, :, None, :3, :3]
    change[..., :3, :3] = R @ so3.hat(J[..., :3])
    change[..., :3, 3] = (R @ J[..., 3:, None])[..., 0]
    return [np.moveaxis(change, 2, -1).reshape(len(q), change.shape[1] * 16, case.model.nv)]


def _mass_slopes(case: Case, q: Array) -> Slopes:
    """∂²ID/∂a∂q."""
    change = inverse_dynamics_second_derivatives(case.model, *_still(case, q)).aq
    return [change.reshape(len(q), case.model.nv**2, case.model.nv)]


def _kinetic_slopes(case: Case, q: Array, v: Array) -> Slopes:
    """`½ vᵀ ∂(M v)/∂q` and `M v`, with M v + g = ID(q, 0, v)."""
    _, zero, _ = _still(case, q)
    moving, resting = (inverse_dynamics_derivatives(case.model, q, zero, a) for a in (v, zero))
    return [0.5 * np.einsum("si,sij->sj", v, moving.q - resting.q)[:, None],
            np.einsum("sij,sj->si", moving.a, v)[:, None]]


# constrained dynamics

def _joined(by: tuple[Array, ...]) -> Slopes:
    return [np.concatenate([first, multipliers], axis=1) for first, multipliers in zip(by[:3], by[3:], strict=True)]


def _constrained_inverse_by_parameters(case: Case, slopes: Slopes, effort_slopes: EffortSlopes,
                                       x: tuple[Array, ...]) -> Array:
    """The constraints balance `∂ID` of passive coordinates."""
    assert case.constraints is not None
    q, v, a = x
    result = constrained_inverse_dynamics(case.model, case.constraints, q, v, a, case.mask, friction=case.friction)
    At = constraint_jacobian(case.model, case.constraints, q).swapaxes(1, 2)
    tau = inverse_dynamics(case.model, q, v, a) - (At @ result.multipliers[..., None])[..., 0]
    gain = np.ones_like(tau) if case.friction is None else case.friction.gain(v, tau)
    return np.concatenate(balanced(At, case.mask, gain, effort_slopes(q, v, a, tau) / gain[..., None]), axis=1)


FUNCTIONS: dict[str, _Function] = {
    "inverse_dynamics": _Function(
        lambda c, *x: [c.efforts(*x)],
        lambda c, *x: list(inverse_dynamics_derivatives(c.model, *x, friction=c.friction)),
        lambda c, slopes, change, x: change(*x), _second, friction=True),
    "gravity_effort": _Function(
        lambda c, q: [gravity_effort(c.model, q)], _static_slopes,
        lambda c, slopes, change, x: change(*_still(c, *x)), _static_second),
    "bias_effort": _Function(
        lambda c, *x: [bias_effort(c.model, *x)], _static_slopes,
        lambda c, slopes, change, x: change(*_still(c, *x)), _static_second),
    "forward_dynamics": _Function(
        lambda c, *x: [forward_dynamics(c.model, *x, friction=c.friction)],
        lambda c, *x: list(forward_dynamics_derivatives(c.model, *x, friction=c.friction)), _forward_by_parameters,
        friction=True),
    "hybrid_dynamics": _Function(
        lambda c, q, v, a, tau: hybrid_dynamics(c.model, q, v, a, tau, c.mask, friction=c.friction), _hybrid_slopes,
        _hybrid_by_parameters, friction=True, names=True),
    "mass_matrix": _Function(lambda c, q: [mass_matrix(c.model, q)], _mass_slopes),
    "forward_kinematics": _Function(lambda c, q: [forward_kinematics(c.model, q)], _pose_slopes),
    "kinetic_energy": _Function(lambda c, *x: [kinetic_energy(c.model, *x)], _kinetic_slopes),
    "potential_energy": _Function(
        lambda c, q: [potential_energy(c.model, q)], lambda c, q: [gravity_effort(c.model, q)[:, None]],
        curvature=lambda c, q: _static_slopes(c, q)[0][:, None]),
    "constrained_forward_dynamics": _Function(
        lambda c, *x: constrained_forward_dynamics(c.model, c.constraints, *x, friction=c.friction)[:2],
        lambda c, *x: _joined(constrained_forward_dynamics_derivatives(
            c.model, c.constraints, *x, friction=c.friction)), _forward_by_parameters, friction=True),
    "constrained_inverse_dynamics": _Function(
        lambda c, q, v, a: constrained_inverse_dynamics(
            c.model, c.constraints, q, v, a, c.mask, friction=c.friction)[:2],
        lambda c, q, v, a: _joined(constrained_inverse_dynamics_derivatives(
            c.model, c.constraints, q, v, a, c.mask, friction=c.friction)), _constrained_inverse_by_parameters,
        friction=True, names=True),
}


class BatchFunction:
    """A function of a model for batches: a name of `FUNCTIONS`, with prescribed joints ("hybrid_dynamics:joint1") or
    actuated ones ("constrained_inverse_dynamics:joint1,joint2").

    arguments: name → size K_i; outputs: name → shape; as of `casadi_function`. Arrays (…, K_i) have any leading axes
    that broadcast. Derivatives by q are those by its stored numbers (`StoredPositions`). Inputs `inertias` and
    `friction`, if requested, replace numbers of the model and the law, in one call for all states with the same ones.
    """

    def __init__(self, caller: str, model: RobotModel, text: str, friction: Friction | None, inertias: Sequence[str],
                 friction_fields: Sequence[str], constraints: ConstraintSet | None) -> None:
        if not isinstance(model, RobotModel):
            raise not_a_model(model)
        name, _, names = text.partition(":") if isinstance(text, str) else ("", "", "")
        if name not in FUNCTIONS or (names and not FUNCTIONS[name].names):
            raise unknown_name("function", text, FUNCTIONS)
        if not model.nv:
            raise RbdError(f"{caller}: model '{model.name}' has no joint that moves")
        self.name, self._of = text, FUNCTIONS[name]
        if friction is not None:
            if not self._of.friction:
                raise RbdError(f"{caller}: {name} has no friction, which "
                               f"{', '.join(each for each in FUNCTIONS if FUNCTIONS[each].friction)} have")
            fitting(model, friction)
        if name.startswith("constrained") != (constraints is not None):
            raise RbdError(f"{caller}: {name} {'needs' if constraints is None else 'has no'} constraints")
        if constraints is not None and not isinstance(constraints, ConstraintSet):
            raise RbdError(f"constraints: expected a ConstraintSet, got {type(constraints).__name__}")
        more = model_inputs(model, inertias)
        self._bodies = more.bodies
        self._fields = _checked_fields(friction, friction_fields)
        if (self._bodies or self._fields) and self._of.by_parameters is None:
            raise RbdError(f"{caller}: {name} has no derivatives by parameters, which "
                           f"{', '.join(each for each in FUNCTIONS if FUNCTIONS[each].by_parameters)} have")
        self._maps = [inertia_map(model, body) for body in self._bodies]
        self._columns = [PARAMETERS * model.body_index(body) + i for body in self._bodies for i in range(PARAMETERS)]
        self._own = model.inertial_parameters[self._columns]
        mask = prescribed_mask(model, [each for each in names.split(",") if each])
        self._case = Case(model, friction, mask, constraints)
        # joints whose breakaway is the Coulomb level, and changes with it
        self._follows: Any = friction is not None and np.equal(friction.breakaway, friction.coulomb)
        self._stored = StoredPositions(model)
        tree = wanted_of(model, text if constraints is None else name.removeprefix("constrained_"))
        self._state = len(tree.arguments)
        self.arguments = tree.inputs(model, more)
        self.arguments |= {"friction": model.nv * len(self._fields)} if self._fields else {}
        self.outputs = dict(zip(OUTPUTS[tree.of], tree.function.shapes(model), strict=True))
        self.outputs |= {} if constraints is None else {"multipliers": (constraints.size,)}
        self.sizes = [int(np.prod(shape)) for shape in self.outputs.values()]
        self.size = sum(self.sizes)
        self.inputs = sum(self.arguments.values())

    def ordered(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs of a call in order, from those by place and those by name."""
        inputs = dict(zip(self.arguments, given, strict=False)) | dict(named)
        if len(given) + len(named) != len(inputs) or set(inputs) != set(self.arguments):
            raise RbdError(f"{self.name}: expected the inputs {', '.join(self.arguments)}, got {len(given)} by place"
                           + (f" and {', '.join(named)}" if named else ""))
        return [inputs[name] for name in self.arguments]

    def named(self, call: Callable[..., Any], library: str) -> Callable[..., Any]:
        """`call`, with a name and a docstring."""
        call.__name__ = call.__qualname__ = f"{library}_{self.name.partition(':')[0]}"
        call.__doc__ = (f"{self.name}({', '.join(self.arguments)}) → {', '.join(self.outputs)}, of "
                        f"'{self._case.model.name}'.")
        return call

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise `RbdError` naming the input whose shape is wrong."""
        for (name, size), shape in zip(self.arguments.items(), shapes, strict=True):
            if len(shape) == 0 or shape[-1] != size:
                raise RbdError(f"{self.name}: {name} has shape {tuple(shape)}, expected (…, {size})")
        for axis in zip(*([1] * (max(map(len, shapes)) - len(shape)) + list(shape[:-1]) for shape in shapes),
                        strict=True):
            if len({size for size in axis if size != 1}) > 1:
                each = ", ".join(f"{name} {tuple(shape)}" for name, shape in zip(self.arguments, shapes, strict=True))
                raise RbdError(f"{self.name}: expected leading axes that broadcast, got {each}")

    def value(self, *inputs: Array) -> Array:
        """All outputs' numbers (…, M)."""
        lead, state, parameters = self._flat(inputs)
        out = np.empty((len(state[0]), self.size))
        for rows, case in self._cases(parameters):
            parts = [np.reshape(part, (len(part), size)) for part, size in zip(
                self._of.value(case, *(x[rows] for x in state)), self.sizes, strict=True)]
            if len(parts) == 1 and len(parts[0]) == len(out):
                out = parts[0]
            else:
                out[rows] = np.concatenate(parts, axis=1)
        return out.reshape(*lead, self.size)

    def jacobian(self, *inputs: Array) -> Array:
        """∂ of all outputs' numbers by all inputs' (…, M, K)."""
        lead, state, parameters = self._flat(inputs)
        J = np.empty((len(state[0]), self.size, self.inputs))
        for rows, slopes, P in self._slopes(state, parameters):
            J[rows] = np.concatenate([slopes[0] if P is None else slopes[0] @ P, *slopes[1:]], axis=2)
        return J.reshape(*lead, *J.shape[1:])

    def pull(self, weights: Array, *inputs: Array) -> Array:
        """Gradients (…, K) of the sum of all outputs' numbers with weights (…, M)."""
        lead, state, parameters = self._flat(inputs)
        if weights.shape[:-1] != lead:
            return np.asarray(np.einsum("...mk,...m->...k", self.jacobian(*inputs), weights))
        flat = weights.reshape(-1, self.size)
        out = np.empty((len(flat), self.inputs))
        step = max(1, PART // (self.size * self.inputs))
        for begin in range(0, len(flat), step):
            part = slice(begin, begin + step)
            for rows, slopes, P in self._slopes([x[part] for x in state], parameters[part]):
                parts = [np.einsum("sm,smk->sk", flat[part][rows], each) for each in slopes]
                if P is not None:
                    parts[0] = np.einsum("si,sik->sk", parts[0], P)
                out[part][rows] = np.concatenate(parts, axis=1)
        return out.reshape(*lead, self.inputs)

    def bend(self, weights: Array, direction: Array, *inputs: Array) -> Array:
        """Derivatives (…, M + K) of `pull · direction` by the weights and the inputs; directions (…, K)."""
        by_weights = np.einsum("...mk,...k->...m", self.jacobian(*inputs), direction)
        weighted = np.einsum("...m,...mij->...ij", weights, self.hessian(*inputs))
        by_inputs = np.einsum("...ij,...j->...i", weighted, direction)
        return np.concatenate([by_weights, by_inputs], axis=-1)

    def _slopes(self, state: Sequence[Array], parameters: Array) -> Iterator[tuple[Any, Slopes, Array | None]]:
        """Rows of states, their derivatives by each input along its tangent, and P(q); None if it is the identity."""
        for rows, case in self._cases(parameters):
            x = tuple(each[rows] for each in state)
            slopes = self._of.slopes(case, *x)
            if self._of.by_parameters is not None and parameters.shape[1]:
                change = functools.partial(self._effort_slopes, case)
                slopes = [*slopes, self._of.by_parameters(case, slopes, change, x)]
            yield rows, slopes, None if self._stored.plain else self._stored.map(x[0])

    def check_twice(self) -> None:
        """Raise `RbdError` for a function without second derivatives."""
        if self._of.curvature is None or self._bodies or self._fields:
            known = ", ".join(each for each in FUNCTIONS if FUNCTIONS[each].curvature)
            raise RbdError(f"{self.name} has no second derivatives{' by parameters' * bool(self._of.curvature)}, which "
                           f"{known} have by the state")

    def hessian(self, *inputs: Array) -> Array:
        """Second derivatives (…, M, K, K)."""
        self.check_twice()
        assert self._of.curvature is not None
        lead, state, _ = self._flat(inputs)
        H = self._of.curvature(self._case, *state)
        if not self._stored.plain:    # by stored q: Pᵀ H P + J ∂P
            nv, nq = self._case.model.nv, self._case.model.nq
            rest = H.shape[-1] - nv
            P = np.zeros((len(H), H.shape[-1], nq + rest))
            P[:, :nv, :nq] = self._stored.map(state[0])
            P[:, nv:, nq:] = np.eye(rest)
            H = P.swapaxes(1, 2)[:, None] @ H @ P[:, None]
            H[..., :nq, :nq] += np.einsum("smi,siab->smab", self._of.slopes(self._case, *state)[0],
                                          self._stored.slope(state[0]))
        return H.reshape(*lead, *H.shape[1:])

    def _flat(self, inputs: Sequence[Array]) -> tuple[tuple[int, ...], list[Array], Array]:
        """Leading axes, the state's arrays (N, …), and parameters (N, P)."""
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in inputs))
        flat = [np.broadcast_to(np.asarray(x, dtype=np.float64), (*lead, x.shape[-1])).reshape(-1, x.shape[-1])
                for x in inputs]
        parameters = np.concatenate([np.empty((len(flat[0]), 0)), *flat[self._state:]], axis=1)
        return lead, flat[:self._state], parameters

    def _cases(self, parameters: Array) -> Iterator[tuple[Any, Case]]:
        """Rows of states with the same parameters, and the case with these."""
        if not parameters.size:
            yield slice(None), self._case
        elif np.array_equal(parameters, np.broadcast_to(parameters[0], parameters.shape)):
            yield slice(None), self._with(parameters[0])
        else:
            different, of_row = np.unique(parameters, axis=0, return_inverse=True)
            for i, numbers in enumerate(different):
                yield of_row == i, self._with(numbers)

    def _with(self, numbers: Array) -> Case:
        """The case with these parameters."""
        case = self._case
        if self._bodies:
            inertias, numbers = numbers[:len(self._own)], numbers[len(self._own):]
            block = np.array(case.model._block)
            changes = (inertias - self._own).reshape(-1, PARAMETERS)
            for (record, to_node), change in zip(self._maps, changes, strict=True):
                block[record] += to_node @ change
            # a plain model: the code of a specialized one has the old numbers
            values = {field.name: getattr(case.model, field.name) for field in dataclasses.fields(RobotModel)
                      if field.init}
            case = case._replace(model=RobotModel(**(values | {"_block": block})))
        if self._fields and case.friction is not None:
            law = dict(zip(self._fields, numbers.reshape(len(self._fields), -1), strict=True))
            if "coulomb" in law and "breakaway" not in law:
                law["breakaway"] = np.where(self._follows, law["coulomb"], case.friction.breakaway)
            case = case._replace(friction=fitting(case.model, dataclasses.replace(case.friction, **law)))
        return case

    def _effort_slopes(self, case: Case, q: Array, v: Array, a: Array, tau: Array | None = None) -> Array:
        """∂ of inverse dynamics by the parameters (N, nv, P), with friction at tau, by default the efforts of a."""
        parts = []
        if tau is None and case.friction is not None:
            tau = inverse_dynamics(case.model, q, v, a)
        if self._bodies:
            Y = inertial_regressor(case.model, q, v, a)[:, :, self._columns]
            parts.append(Y if case.friction is None or tau is None else case.friction.gain(v, tau)[..., None] * Y)
        if self._fields and case.friction is not None:
            by = dict(zip(NAMES, case.friction.by_parameters(v, tau), strict=True))
            if "breakaway" not in self._fields:
                by["coulomb"] = by["coulomb"] + self._follows * by["breakaway"]
            parts += [np.eye(case.model.nv) * by[field][..., None] for field in self._fields]
        return np.concatenate(parts, axis=2)


def _checked_fields(friction: Friction | None, names: Sequence[str]) -> list[str]:
    try:
        fields = list(dict.fromkeys([names] if isinstance(names, str) else names))
    except TypeError:
        raise RbdError(f"friction_fields: expected names of fields of Friction, got {shown(names)}") from None
    for field in fields:
        if field not in NAMES:
            raise unknown_name("field", field, NAMES, "friction_fields")
    if fields and friction is None:
        raise RbdError("friction_fields: expected friction too, such as joint_friction(model): the law that has them")
    return fields

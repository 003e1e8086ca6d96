"""Public functions with specialized code, and the tracing of their kernels."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..derivatives.forward import ForwardDerivatives, forward_dynamics_derivatives, hybrid_derivatives_entry
from ..derivatives.inverse import InverseDerivatives, inverse_derivatives_entry, inverse_dynamics_derivatives
from ..derivatives.regressor import inertial_regressor, regressor_entry
from ..dynamics.coriolis import coriolis_entry, coriolis_matrix
from ..dynamics.energy import (
    _ANGULAR, _KINETIC, _MASS, _MOMENT, _POTENTIAL, RESULTS, center_of_mass, centroidal_momentum, kinetic_energy,
    potential_energy, totals_entry,
)
from ..dynamics.forward import forward_dynamics, forward_dynamics_entry
from ..dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics, inverse_dynamics_entry
from ..dynamics.kinematics import (
    body_accelerations, body_velocities, forward_kinematics, motions_entry, poses_entry,
)
from ..dynamics.mass_matrix import mass_matrix, mass_matrix_entry
from ..dynamics.shared_coordinates import shared_recursion
from ..model.block import (
    HEADER, LINK, LINK_ROTATION, LINK_START, LINKS, NODE, NODES, ROTATION, SHARED, size_v,
)
from ..model.robot_model import RobotModel
from .plain import Plain
from .program import NoProgram, Program, Symbols, sincos, symbols

Array = NDArray[np.float64]
Shape = tuple[int, ...]
ROUNDING = 1e-15    # of entries of rotation matrices


class Function(NamedTuple):
    """inputs: a letter per input, q (nq,) or v (nv,). shapes: of the result's arrays; result: builds it from them.
    run(plain, B, inputs, W, out): calls the kernel with a flat array of symbols out; true if it accepts the state.
    """

    inputs: str
    shapes: Callable[[RobotModel], tuple[Shape, ...]]
    run: Callable[[Plain, Symbols, Sequence[Symbols], Symbols, Symbols], Any]
    result: Callable[..., Any] = lambda array: array


def _vector(model: RobotModel) -> tuple[Shape, ...]:
    return ((model.nv,),)


def _matrix(model: RobotModel) -> tuple[Shape, ...]:
    return ((model.nv, model.nv),)


def _matrices(model: RobotModel) -> tuple[Shape, ...]:
    return ((model.nv, model.nv),) * 3


def thirds(out: Symbols, nv: int) -> list[Any]:
    """Three consecutive matrices (nv, nv)."""
    return [part.reshape(nv, nv) for part in np.split(out, 3)]


def _of_inverse_derivatives(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
    return plain(inverse_derivatives_entry)(B, *x, W, *thirds(out, len(x[1])))


def _of_forward_derivatives(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
    q, v, tau = x
    no_mask = np.zeros(0, dtype=np.bool_)
    return plain(hybrid_derivatives_entry)(B, q, v, v, tau, no_mask, W, *thirds(out, len(v))) == 0


def _forward(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
    if not B[SHARED] > 0.0:
        return plain(forward_dynamics_entry)(B, *x, W, out) == 0
    q, v, tau = x    # mimic joints
    H, none = symbols([0.0] * len(v) * (len(v) + 1)), (np.zeros(0, dtype=np.bool_), v)
    return plain(shared_recursion)(B, q, 0, v, tau, 0, none, (W[:0], 0), W, H, out, out) == 0


def _at_rest(plain: Plain, B: Symbols) -> Symbols:
    return symbols([0.0] * plain(size_v)(B))


def _of_effort(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
    """Inverse dynamics; missing velocities and accelerations are 0."""
    return plain(inverse_dynamics_entry)(B, *x, *[_at_rest(plain, B)] * (3 - len(x)), W, out)


def _motions(order: int) -> Callable[..., Any]:
    return lambda plain, B, x, W, out: plain(motions_entry)(B, x[0], x[1], x[-1], order, W, out.reshape(-1, 6))


def _totals(start: int, end: int) -> Callable[..., Any]:
    """Results start … end − 1 of energies, mass and momenta."""
    def run(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
        results = symbols([0.0] * RESULTS)
        accepted = plain(totals_entry)(B, x[0], x[1] if len(x) > 1 else _at_rest(plain, B), len(x) - 1, W,
                                       results.reshape(1, -1))
        out[:] = results[start:end]
        return accepted
    return run


def _of_center(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
    moment = symbols([0.0] * 4)
    accepted = _totals(_MASS, _MOMENT + 3)(plain, B, x, W, moment)
    if moment[0] == 0.0:
        return False
    out[:] = moment[1:] / moment[0]
    return accepted


def _number(model: RobotModel) -> tuple[Shape, ...]:
    return ((),)


def _twists(model: RobotModel) -> tuple[Shape, ...]:
    return ((len(model.body_names), 6),)


FUNCTIONS: dict[str, Function] = {
    "inverse_dynamics": Function("qvv", _vector, _of_effort),
    "forward_dynamics": Function("qvv", _vector, _forward),
    "mass_matrix": Function("q", _matrix, lambda plain, B, x, W, out: plain(mass_matrix_entry)(
        B, *x, W, out.reshape(-1, plain(size_v)(B)))),
    "coriolis_matrix": Function("qv", _matrix, lambda plain, B, x, W, out: plain(coriolis_entry)(
        B, *x, W, out.reshape(-1, plain(size_v)(B)))),
    "forward_kinematics": Function("q", lambda model: ((len(model.body_names), 4, 4),),
                                   lambda plain, B, x, W, out: plain(poses_entry)(B, *x, W, out.reshape(-1, 4, 4))),
    "inertial_regressor": Function("qvv", lambda model: ((model.nv, 10 * len(model.body_names)),),
                                   lambda plain, B, x, W, out: plain(regressor_entry)(B, *x, 1, W, out)),
    "inverse_dynamics_derivatives": Function("qvv", _matrices, _of_inverse_derivatives, InverseDerivatives),
    "forward_dynamics_derivatives": Function("qvv", _matrices, _of_forward_derivatives, ForwardDerivatives),
    "gravity_effort": Function("q", _vector, _of_effort),
    "bias_effort": Function("qv", _vector, _of_effort),
    "body_velocities": Function("qv", _twists, _motions(1)),
    "body_accelerations": Function("qvv", _twists, _motions(2)),
    "kinetic_energy": Function("qv", _number, _totals(_KINETIC, _KINETIC + 1)),
    "potential_energy": Function("q", _number, _totals(_POTENTIAL, _POTENTIAL + 1)),
    "center_of_mass": Function("q", lambda model: ((3,),), _of_center),
    "centroidal_momentum": Function("qv", lambda model: ((6,),), _totals(_ANGULAR, RESULTS)),
}
PUBLIC: dict[str, Callable[..., Any]] = {function.__name__: function for function in (
    inverse_dynamics, forward_dynamics, mass_matrix, coriolis_matrix, forward_kinematics, inertial_regressor,
    inverse_dynamics_derivatives, forward_dynamics_derivatives, gravity_effort, bias_effort, body_velocities,
    body_accelerations, kinetic_energy, potential_energy, center_of_mass, centroidal_momentum)}
PLAIN = Plain({"sincos": sincos})


def _exact(model: RobotModel) -> Array:
    """The packed model with entries of rotations rounded to 0 and ±1: right angles are frequent, and 6e-17 in place of
    0 adds up to half of the operations.
    """
    block = model._block.copy()
    nodes, links = (int(block[k]) for k in (NODES, LINKS))
    first = int(block[LINK_START])
    for begin in [*(HEADER + NODE * i + ROTATION for i in range(nodes)),
                  *(first + LINK * i + LINK_ROTATION for i in range(links))]:
        rotation = block[begin:begin + 9]
        rounded = np.round(rotation)
        np.copyto(rotation, rounded + 0.0, where=np.abs(rotation - rounded) < ROUNDING)
    return block


class Variables(NamedTuple):
    """Inputs after the state, from which numbers of the packed model follow: `values` (k,), a regular example, and
    `put(block, inputs)`, which writes the expressions into the packed model.
    """

    values: Array
    put: Callable[[Symbols, Symbols], None]


def recorded(model: RobotModel, name: str, function: Function, plain: Plain = PLAIN,
             variables: Variables | None = None) -> Program:
    """The traced program of a function for one robot; raises `NoProgram`. name: for messages."""
    if not model.nv:
        raise NoProgram(f"{name}: model '{model.name}' has no joint that moves")
    rng = np.random.default_rng(1)
    state = [model.random_configuration(rng) if kind == "q" else rng.normal(size=model.nv) for kind in function.inputs]
    if variables is not None:
        state.append(variables.values)
    program = Program(np.concatenate(state).tolist())
    inputs: list[Any] = np.split(symbols(program.inputs), np.cumsum([len(part) for part in state])[:-1])
    block = symbols(_exact(model).tolist())
    if variables is not None:
        variables.put(block, inputs.pop())
    count = sum(int(np.prod(shape)) for shape in function.shapes(model))
    out = symbols([0.0] * count)
    work = symbols([0.0] * model._new_work().size)
    try:
        accepted = function.run(plain, block, inputs, work, out)
        if not accepted:
            raise NoProgram(f"its kernel refuses a random state of model '{model.name}'")
        program.finish(out.tolist())
    except NoProgram as none:
        raise NoProgram(f"{name}: {none}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise NoProgram(f"{name}: its kernel does what no scalar does: {error}") from error
    return program

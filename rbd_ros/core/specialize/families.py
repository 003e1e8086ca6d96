"""Specialized functions with parameters: Jacobians of links, dynamics for masks, orders of derivatives.

Such code is requested by name and parameters, `"jacobian:tool0:world"`, `"hybrid_dynamics:joint1,joint3"`,
`"inverse_dynamics_time_derivatives:3"`; in calls, parameters are arguments.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..derivatives.forward import hybrid_derivatives_entry
from ..derivatives.hybrid import HybridDerivatives, hybrid_dynamics_derivatives
from ..derivatives.second_time_derivatives import second_order_recursion
from ..derivatives.taylor import taylor_order, taylor_start, workspace_size
from ..derivatives.time_derivatives import (
    forward_dynamics_time_derivatives, has_varying, inverse_dynamics_time_derivatives,
)
from ..dynamics.articulated import articulated_recursion
from ..dynamics.hybrid import Hybrid, hybrid_dynamics, hybrid_dynamics_entry, prescribed_mask
from ..dynamics.kinematics import FRAMES, jacobian, jacobian_entry
from ..dynamics.shared_coordinates import shared_recursion
from ..errors import RbdError, shown, unknown_name
from ..model.block import GRAVITY, SHARED
from ..model.robot_model import RobotModel
from .functions import FUNCTIONS, Function, thirds
from .plain import Plain
from .program import Symbols, symbols

Parameters = tuple[Any, ...]    # that can be keys


class Family(NamedTuple):
    """Functions that differ by parameters.

    of_call(model, *inputs): the arrays and the parameters of a call; of_text(model, text): parameters as text;
    function(model, parameters); call(model, arrays, parameters): by the ordinary kernels.
    """

    of_call: Callable[..., tuple[tuple[Any, ...], Parameters]]
    of_text: Callable[[RobotModel, str], Parameters]
    function: Callable[[RobotModel, Parameters], Function]
    call: Callable[[RobotModel, Sequence[Any], Parameters], Any]
    text: Callable[[RobotModel, Parameters], str]


def _link_of_text(model: RobotModel, text: str) -> Parameters:
    body, _, frame = text.rpartition(":")
    if frame not in FRAMES:
        body, frame = text, "body"
    model.body_index(body)
    return body, frame


def _jacobian_of(model: RobotModel, parameters: Parameters) -> Function:
    body, frame = parameters
    link, choice = model.body_index(body), FRAMES.get(frame)
    if choice is None:
        raise RbdError(f"frame is {shown(frame)}, expected one of {', '.join(FRAMES)}")
    return Function("q", lambda model: ((6, model.nv),), lambda plain, B, x, W, out: plain(jacobian_entry)(
        B, *x, link, choice, out.reshape(6, -1)))


def _mask_of_call(model: RobotModel, q: Any, v: Any, a: Any, tau: Any, prescribed: Any) -> tuple[Any, Parameters]:
    if type(prescribed) is not np.ndarray or prescribed.dtype.char != "?" or prescribed.shape != (model.nv,):
        prescribed = prescribed_mask(model, prescribed)
    return (q, v, a, tau), (prescribed.tobytes(),)


def _mask_of_text(model: RobotModel, text: str) -> Parameters:
    return (prescribed_mask(model, [name for name in text.split(",") if name]).tobytes(),)


def _mask(parameters: Parameters) -> NDArray[np.bool_]:
    """The mask from its bytes, the quickest hashable form."""
    return np.frombuffer(parameters[0], dtype=np.bool_)


def _text_of_mask(model: RobotModel, parameters: Parameters) -> str:
    return ",".join(name for name, masked in zip(model.velocity_names, _mask(parameters), strict=True) if masked)


def _hybrid_of(model: RobotModel, parameters: Parameters) -> Function:
    prescribed = _mask(parameters)

    def run(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
        return plain(hybrid_dynamics_entry)(B, *x, prescribed, W, *np.split(out, 2)) == 0

    return Function("qvvv", lambda model: ((model.nv,), (model.nv,)), run, Hybrid)


def _hybrid_derivatives_of(model: RobotModel, parameters: Parameters) -> Function:
    prescribed = _mask(parameters)

    def run(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
        return plain(hybrid_derivatives_entry)(B, *x, prescribed, W, *thirds(out, len(x[1]))) == 0

    return Function("qvvv", lambda model: ((model.nv, model.nv),) * 3, run, HybridDerivatives)


def _order_of_call(model: RobotModel, q: Any, v: Any, a: Any, *higher: Any) -> tuple[Any, Parameters]:
    return (q, v, a, *higher), (len(higher),)


def _order_of_text(model: RobotModel, text: str) -> Parameters:
    text = text or "2"
    if not re.fullmatch(r"\d{1,2}", text, flags=re.ASCII):
        raise RbdError(f"time derivatives: expected the order of the highest, 0, 1, 2, …, got '{text}'")
    return (int(text),)


def _inverse_series_of(model: RobotModel, parameters: Parameters) -> Function:
    top, = parameters

    def run(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
        q, nv = x[0], len(x[1])
        if top <= 2 and not plain(has_varying)(B):
            efforts = symbols([0.0] * 3 * nv).reshape(3, nv)
            plain(second_order_recursion)(B, q, 0, (*x[1:], *[symbols([0.0] * nv)] * (2 - top)), (0, 0, 0, 0), W,
                                          efforts)
            out[:] = efforts.reshape(-1)[:len(out)]
            return True
        rates = symbols([rate / factorial(m) for m, each in enumerate(x[1:]) for rate in each])
        W = symbols([0.0] * plain(workspace_size)(B, top))
        plain(taylor_start)(B, q, 0, rates, top, W)
        for m in range(top + 1):
            tau = out[m * nv:(m + 1) * nv]
            plain(taylor_order)(B, q, 0, rates, B[:0], 0, 0, m, top, W, tau)
            tau *= float(factorial(m))
        return True

    return Function("qv" + "v" * (top + 1), lambda model: ((top + 1, model.nv),), run)


def _forward_series_of(model: RobotModel, parameters: Parameters) -> Function:
    top, = parameters

    def run(plain: Plain, B: Symbols, x: Sequence[Symbols], W: Symbols, out: Symbols) -> Any:
        """Order by order, as `forward_time_derivatives_batch`."""
        q, v = x[:2]
        nv = len(v)
        weightless = B.copy()
        weightless[GRAVITY:GRAVITY + 3] = 0.0
        zeros = symbols([0.0] * nv)
        unprescribed = np.zeros(0, dtype=np.bool_), zeros
        rates = symbols([*v, *[0.0] * nv * (top + 1)])
        series = symbols([0.0] * plain(workspace_size)(B, top))
        plain(taylor_start)(B, q, 0, rates, top, series)
        for m in range(top + 1):
            below, acceleration = symbols([0.0] * nv), symbols([0.0] * nv)
            plain(taylor_order)(B, q, 0, rates, B[:0], 0, 0, m, top, series, below)
            residual = symbols(x[2 + m] / float(factorial(m)) - below)
            if B[SHARED] > 0.0:
                H = symbols([0.0] * nv * (nv + 1))
                if plain(shared_recursion)(weightless, q, 0, zeros, residual, 0, unprescribed, (W[:0], 0), W, H,
                                           acceleration, acceleration) != 0:
                    return False
            elif plain(articulated_recursion)(weightless, q, 0, zeros, residual, 0, unprescribed, (W[:0], 0), W,
                                              acceleration, acceleration) != 0:
                return False
            rates[(m + 1) * nv:(m + 2) * nv] = acceleration / (m + 1.0)
            out[m * nv:(m + 1) * nv] = float(factorial(m)) * acceleration
            if m < top:
                plain(taylor_order)(B, q, 0, rates, B[:0], 0, 0, m, top, series, below)
        return True

    return Function("qvv" + "v" * top, lambda model: ((top + 1, model.nv),), run)


def _by_mask(public: Callable[..., Any], function: Callable[[RobotModel, Parameters], Function]) -> Family:
    return Family(_mask_of_call, _mask_of_text, function,
                  lambda model, x, parameters: public(model, *x, _mask(parameters).copy()), _text_of_mask)


def _by_order(public: Callable[..., Any], function: Callable[[RobotModel, Parameters], Function]) -> Family:
    return Family(_order_of_call, _order_of_text, function, lambda model, x, order: public(model, *x),
                  lambda model, order: str(order[0]))


FAMILIES: dict[str, Family] = {
    "jacobian": Family(lambda model, q, body, frame: ((q,), (body, frame)), _link_of_text, _jacobian_of,
                       lambda model, x, link: jacobian(model, *x, *link), lambda model, link: ":".join(link)),
    "hybrid_dynamics": _by_mask(hybrid_dynamics, _hybrid_of),
    "hybrid_dynamics_derivatives": _by_mask(hybrid_dynamics_derivatives, _hybrid_derivatives_of),
    "inverse_dynamics_time_derivatives": _by_order(inverse_dynamics_time_derivatives, _inverse_series_of),
    "forward_dynamics_time_derivatives": _by_order(forward_dynamics_time_derivatives, _forward_series_of),
}


def function_of(model: RobotModel, text: str) -> tuple[str, Parameters, Function]:
    """The name, parameters and function of `"name"` or `"name:parameters"`; raises `RbdError` for unknown ones."""
    name, _, argument = text.partition(":") if isinstance(text, str) else (text, "", "")
    if name in FAMILIES:
        parameters = FAMILIES[name].of_text(model, argument)
        return name, parameters, FAMILIES[name].function(model, parameters)
    if name not in FUNCTIONS or argument:
        raise unknown_name("function", text, [*FUNCTIONS, *FAMILIES])
    return name, (), FUNCTIONS[name]


def label(model: RobotModel, name: str, parameters: Parameters) -> str:
    """The text of a function and its parameters, the inverse of `function_of`."""
    return f"{name}:{FAMILIES[name].text(model, parameters)}" if name in FAMILIES else name

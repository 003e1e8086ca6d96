"""A robot's functions as functions of CasADi: its symbols, derivatives, solvers and code."""
from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiled.cache import cache_directory, prepare
from ..dynamics.friction import Friction, fitting
from ..dynamics.hybrid import prescribed_mask
from ..errors import RbdError
from ..lie import series
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from . import program as p
from .c_source import OUTPUTS, Wanted, wanted_of
from .functions import PLAIN, recorded
from .machine import drop_oldest
from .model_inputs import model_inputs
from .plain import Plain
from .program import Program, Scalar, sincos

Array = NDArray[np.float64]
WITH_FRICTION = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics")
COMPILERS = ("cc", "gcc", "clang")
KEPT = 100    # compiled functions in the cache
_SWITCHES = {"sine_ratio": series.SWITCH, "versine_ratio": series.SWITCH, "sine_defect_ratio": series.SWITCH,
             "sine_ratio_slope": series.SWITCH_DERIVATIVE, "versine_ratio_slope": series.SWITCH_DERIVATIVE,
             "sine_defect_ratio_slope": series.SWITCH_DERIVATIVE, "versine_ratio_curvature": series.SWITCH_DERIVATIVE,
             "sine_defect_ratio_curvature": series.SWITCH_DERIVATIVE}


def casadi_function(model: RobotModel, function: str, *, friction: Friction | None = None, inertias: Sequence[str] = (),
                    payload: str = "", external: bool = False) -> Any:
    """A `casadi.Function` of a function of the model, for symbols of CasADi (SX, MX) and numbers (DM).

    function: a name of `c_source`, with parameters for some ("jacobian:tool0:world"). Inputs are columns, named as in
    this library (q, v, a, …); outputs have the shapes of its results, poses (4·nb, 4) one body below the other.
    friction: as the argument of inverse, forward and hybrid dynamics. inertias: bodies whose inertial parameters are
    an input `inertias` (10·k,), ordered as in `model.inertial_parameters`. payload: a body with a load, whose ten
    parameters in the body's frame are an input `payload` (10,). Derivatives by q are those by its numbers, four for a
    quaternion, which may have any norm. The result is NaN for states with a singular mass matrix. external: compile
    CasADi's C code of the function and its first and second derivatives with the system's compiler, kept in the cache.
    Raises `RbdError` without casadi or compiler, for unknown names, and for functions without straight-line code.

        >>> model = rbd.sample("two_link")
        >>> rbd.casadi_function(model, "inverse_dynamics")
        Function(inverse_dynamics:(q[2],v[2],a[2])->(effort[2]) SXFunction)
    """
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    wanted = wanted_of(model, function)
    _check(model, wanted, friction)
    more = model_inputs(model, inertias, payload)
    ca = _casadi()
    program = recorded(model, wanted.label, wanted.function, _BOTH, more.variables)
    inputs = {name: ca.SX.sym(name, size) for name, size in wanted.inputs(model, more).items()}
    law = None if friction is None else _Law(ca, model, wanted, friction, inputs)
    numbers = _numbers(ca, program, [x for name in inputs for x in ca.vertsplit(
        law.unloaded if law is not None and name == "tau" else inputs[name])])
    outputs = []
    for shape in wanted.function.shapes(model):
        count = int(np.prod(shape))
        part, numbers = ca.vertcat(*numbers[:count]), numbers[count:]
        columns = shape[-1] if len(shape) > 1 else 1
        outputs.append(ca.reshape(part, columns, count // columns).T)
    if law is not None:
        outputs = law.rubbed(outputs)
    name = re.sub("_+", "_", wanted.name).strip("_")
    made = ca.Function(name, list(inputs.values()), outputs, list(inputs), list(OUTPUTS[wanted.of]))
    return _external(ca, made) if external else made


def _casadi() -> Any:
    try:
        import casadi
    except ImportError:
        raise RbdError("casadi_function needs the package casadi (`pip install casadi`)") from None
    return casadi


def _check(model: RobotModel, wanted: Wanted, friction: Friction | None) -> None:
    for joint in model.joints:
        if joint.type == "spherical_exponential" and wanted.of.endswith("time_derivatives"):
            raise RbdError(f"casadi_function: joint '{joint.name}' is spherical_exponential, whose series in time "
                           f"branch on the angle: {wanted.of} needs joints of type spherical")
    if friction is not None:
        if wanted.of not in WITH_FRICTION:
            raise RbdError(f"casadi_function: {wanted.of} has no friction, which {', '.join(WITH_FRICTION)} have; "
                           "CasADi differentiates these with it")
        fitting(model, friction)


# symbols: both branches of the small-angle switch, and quaternions of any norm

def _smooth(name: str, switch: float) -> Callable[[Any], Any]:
    """The coefficient `series.name` as one expression. Neither branch sees arguments far beyond its own side, so that
    neither it nor its derivatives are ever infinite; bounds apart from the switch leave no kink there.
    """
    ordinary = PLAIN(getattr(series, name))

    def value(x: Any) -> Any:
        if not isinstance(x, Scalar):
            return ordinary(x)
        program = x.program
        is_near = program.make(p.LESS, x.index, program.index(switch))
        with program.deciding(True):
            near = ordinary(program.make(p.MIN, x.index, program.index(1.1 * switch)))
        with program.deciding(False):
            far = ordinary(program.make(p.MAX, x.index, program.index(0.9 * switch)))
        return program.make(p.WHERE, is_near.index, near.index) + program.make(
            p.WHERE, (1.0 - is_near).index, far.index)

    return value


_BOTH = Plain({"sincos": sincos, "positions_valid": lambda B, q, states: True,
               **{name: _smooth(name, switch) for name, switch in _SWITCHES.items()}})


# printing

def _numbers(ca: Any, program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a program as expressions; NaN where a guard fails."""
    operate = {p.ADD: lambda a, b: a + b, p.SUB: lambda a, b: a - b, p.MUL: lambda a, b: a * b,
               p.DIV: lambda a, b: a / b, p.NEG: lambda a: -a, p.SIN: ca.sin, p.COS: ca.cos, p.SQRT: ca.sqrt,
               p.ABS: ca.fabs, p.MIN: ca.fmin, p.MAX: ca.fmax, p.LESS: lambda a, b: a < b,
               p.WHERE: lambda a, b: ca.if_else(a, b, 0.0)}
    value: list[Any] = []
    for each in program.nodes:
        if each.op == p.CONSTANT:
            value.append(ca.SX(each.a))
        elif each.op == p.INPUT:
            value.append(inputs[each.a])
        else:
            value.append(operate[each.op](*(value[i] for i in each.operands)))
    compare = {p.GREATER: lambda a, b: a > b, p.AT_LEAST: lambda a, b: a >= b, p.EQUAL: lambda a, b: a == b}
    outside = None
    for guard in program.guards:
        holds = compare[guard.comparison](value[guard.left], value[guard.right])
        fails = ca.logic_not(holds) if guard.outcome else holds
        outside = fails if outside is None else ca.logic_or(outside, fails)
    outputs = [value[i] for i in program.outputs]
    if outside is None:
        return outputs
    nothing = ca.if_else(outside, np.nan, 0.0)
    return [x + nothing for x in outputs]


class _Law:
    """Friction of inverse, forward and hybrid dynamics."""

    def __init__(self, ca: Any, model: RobotModel, wanted: Wanted, friction: Friction, inputs: dict[str, Any]) -> None:
        self._ca, self._friction, self._of, self._v = ca, friction, wanted.of, inputs["v"]
        self._tau: Any = inputs.get("tau")
        self.unloaded = None if self._tau is None else self._by_entry(friction.remove, self._tau)
        if wanted.of == "hybrid_dynamics":
            names = wanted.label.partition(":")[2]
            self._prescribed = prescribed_mask(model, [name for name in names.split(",") if name])

    def rubbed(self, outputs: list[Any]) -> list[Any]:
        """The outputs with friction."""
        if self._of == "inverse_dynamics":
            return [self._by_entry(self._friction.add, outputs[0])]
        if self._of == "hybrid_dynamics":
            acceleration, effort = outputs
            loaded = self._by_entry(self._friction.add, effort)
            return [acceleration, self._ca.vertcat(*(
                loaded[i] if held else self._tau[i] for i, held in enumerate(self._prescribed)))]
        return outputs

    def _by_entry(self, law: Callable[[Any, Any], Any], tau: Any) -> Any:
        """The law of arrays of scalars: NumPy's functions of these are methods of each."""
        return self._ca.vertcat(*law(*(_entries(self._ca, x) for x in (self._v, tau))))


def _entries(ca: Any, x: Any) -> Any:
    array = np.empty(x.shape[0], dtype=object)
    for i, entry in enumerate(ca.vertsplit(x)):
        array[i] = entry
    return array


# compiled

def _external(ca: Any, function: Any) -> Any:
    """The function and its first and second derivatives from compiled C code."""
    compiler = os.environ.get("CC") or next((found for found in map(shutil.which, COMPILERS) if found), None)
    if compiler is None:
        raise RbdError(f"casadi_function: external=True needs a C compiler, and there is none of {', '.join(COMPILERS)}"
                       " (Debian, Ubuntu: apt install gcc); CC is the path of another one")
    name = function.name()
    backward = function.reverse(1)
    generator = ca.CodeGenerator(f"{name}.c")
    for each in (function, function.forward(1), backward, function.jacobian(), backward.jacobian()):
        generator.add(each)
    source = generator.dump()
    key = hashlib.sha256(f"{compiler} {ca.__version__} {platform.machine()}\n{source}".encode()).hexdigest()[:24]
    library = _folder() / f"{name}_{key}.so"
    if not library.exists():
        _compile(compiler, source, library)
    return ca.external(name, str(library))


def _folder() -> Path:
    """Folder of compiled code: in the cache, or, if others can write there or nobody, of this process."""
    folder = cache_directory() / "casadi"
    with contextlib.suppress(OSError):
        if prepare(folder):
            return folder
    folder = Path(tempfile.mkdtemp(prefix="rbd_casadi_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _compile(compiler: str, source: str, library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as place:
        text, made = Path(place, "code.c"), Path(place, "code.so")
        text.write_text(source)
        command = [*shlex.split(compiler), "-O1", "-fPIC", "-shared", str(text), "-o", str(made), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()
            raise RbdError(f"casadi_function: the C compiler '{compiler}' failed: {said}") from None
        made.replace(library)
    with contextlib.suppress(OSError):
        drop_oldest(library.parent, KEPT)

"""A robot's functions as C99: straight-line code without heap, loops or dependencies but `math.h`; or for CUDA."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import RbdError, unknown_name
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from . import program as p
from .cuda_source import cuda_cmake, cuda_kernel, cuda_test
from .families import FAMILIES, function_of, label
from .functions import PUBLIC, Function, recorded
from .model_inputs import ModelInputs, model_inputs
from .program import NoProgram, Program

TARGETS = ("c", "cuda")
PRECISIONS = {"double": ("double", "", 1e-12), "float": ("float", "f", 1e-3)}    # type, suffix, tolerance of the test
MAX_OPERATIONS = 15_000    # per function: C compilers need minutes for more
ARGUMENTS = {"inverse_dynamics": ("q", "v", "a"), "forward_dynamics": ("q", "v", "tau"), "mass_matrix": ("q",),
             "coriolis_matrix": ("q", "v"), "forward_kinematics": ("q",), "inertial_regressor": ("q", "v", "a"),
             "inverse_dynamics_derivatives": ("q", "v", "a"), "forward_dynamics_derivatives": ("q", "v", "tau"),
             "inverse_dynamics_time_derivatives": ("q", "v", "a"), "gravity_effort": ("q",), "bias_effort": ("q", "v"),
             "jacobian": ("q",), "hybrid_dynamics": ("q", "v", "a", "tau"),
             "hybrid_dynamics_derivatives": ("q", "v", "a", "tau"),
             "forward_dynamics_time_derivatives": ("q", "v", "tau"), "body_velocities": ("q", "v"),
             "body_accelerations": ("q", "v", "a"), "kinetic_energy": ("q", "v"), "potential_energy": ("q",),
             "center_of_mass": ("q",), "centroidal_momentum": ("q", "v")}
HIGHER = {"inverse_dynamics_time_derivatives": ("jerk", "snap"), "forward_dynamics_time_derivatives": ("dtau", "ddtau")}
WHAT = {"inverse_dynamics": "joint efforts", "forward_dynamics": "joint accelerations",
        "mass_matrix": "joint space inertia, row by row", "coriolis_matrix": "C(q, v), row by row",
        "forward_kinematics": "poses of all links, world from link, 4 x 4 row by row",
        "inertial_regressor": "Y(q, v, a), row by row", "gravity_effort": "efforts that hold the robot at rest",
        "inverse_dynamics_derivatives": "d effort by q, v and a, each row by row",
        "forward_dynamics_derivatives": "d acceleration by q, v and tau, each row by row",
        "bias_effort": "efforts of velocity and gravity",
        "inverse_dynamics_time_derivatives": "efforts and their time derivatives, order by order",
        "forward_dynamics_time_derivatives": "joint accelerations and their time derivatives, order by order",
        "jacobian": "Jacobian of a link, angular rows first, row by row",
        "hybrid_dynamics": "all joint accelerations, then all joint efforts",
        "hybrid_dynamics_derivatives": "d what is sought by q, v and what is given, each row by row",
        "body_velocities": "twists of all links in their own axes, angular first",
        "body_accelerations": "component derivatives of the twists of all links, without gravity",
        "kinetic_energy": "kinetic energy", "potential_energy": "potential energy",
        "center_of_mass": "centre of mass in world axes",
        "centroidal_momentum": "momentum about the centre of mass in world axes, angular first"}
OUTPUTS = {"inverse_dynamics": ("effort",), "gravity_effort": ("effort",), "bias_effort": ("effort",),
           "forward_dynamics": ("acceleration",), "hybrid_dynamics": ("acceleration", "effort"),
           "mass_matrix": ("M",), "coriolis_matrix": ("C",), "forward_kinematics": ("poses",), "jacobian": ("J",),
           "inertial_regressor": ("Y",), "inverse_dynamics_derivatives": ("effort_q", "effort_v", "effort_a"),
           "forward_dynamics_derivatives": ("acceleration_q", "acceleration_v", "acceleration_tau"),
           "hybrid_dynamics_derivatives": ("unknown_q", "unknown_v", "unknown_given"),
           "inverse_dynamics_time_derivatives": ("efforts",), "forward_dynamics_time_derivatives": ("accelerations",),
           "body_velocities": ("velocities",), "body_accelerations": ("accelerations",), "kinetic_energy": ("energy",),
           "potential_energy": ("energy",), "center_of_mass": ("center",), "centroidal_momentum": ("momentum",)}
_INFIX = {p.ADD: "+", p.SUB: "-", p.MUL: "*", p.DIV: "/"}
_CALL = {p.SIN: "sin", p.COS: "cos", p.SQRT: "sqrt", p.ABS: "fabs"}


class Wanted(NamedTuple):
    """A function of a printer: `label` with parameters, `name` in C, `call` to the ordinary kernels."""

    label: str
    name: str
    of: str    # the public function
    function: Function
    arguments: tuple[str, ...]
    call: Callable[..., Any]

    def inputs(self, model: RobotModel, more: ModelInputs) -> dict[str, int]:
        """Sizes of all arguments by name, in order."""
        state = (model.nq if kind == "q" else model.nv for kind in self.function.inputs)
        return dict(zip(self.arguments, state, strict=True)) | more.sizes

    def outputs(self, model: RobotModel) -> dict[str, int]:
        """Sizes of the results by name."""
        return {name: int(np.prod(shape)) for name, shape in zip(OUTPUTS[self.of], self.function.shapes(model),
                                                                 strict=True)}


def c_source(model: RobotModel, functions: Sequence[str] = ("inverse_dynamics",), name: str = "",
             precision: str = "double", *, target: str = "c", inertias: Sequence[str] = (), payload: str = "",
             gravity: bool = False) -> str:
    """C99 text with functions of the form `int NAME_inverse_dynamics(const double q[], …, double out[])`.

    functions: names of `ARGUMENTS`, with parameters for some: "jacobian:tool0:world", "hybrid_dynamics:joint1,joint3"
    (joints with prescribed accelerations), "inverse_dynamics_time_derivatives:3" (order, by default 2). Arrays are in
    the order of `model.joint_names`, in SI units, as in this library. The C functions return 0, or 1 without writing
    `out` for states outside the code's domain (a joint that moves no inertia, a quaternion not of norm 1). name: a C
    identifier for the robot; by default the model's name. precision: "double" or "float". target: "c", or "cuda" for
    kernels with a thread per state, for any strides, which write NaN for states outside the code's domain.

    inertias: bodies whose inertial parameters, as in `model.inertial_parameters`, are arguments of all functions, in
    place of the model's (`inertias`, 10 each); payload: a body with a load, whose parameters in its frame are added
    (`payload`, 10); gravity: its acceleration in axes of the root link is an argument (`gravity`, 3). So another tool,
    load or mounting needs no other code. Raises `RbdError` for unknown names, functions of more than 15,000 operations,
    joints of type spherical_exponential, whose code branches on the angle, and functions of constraints, which branch
    on pivots.

        >>> model = rbd.sample("two_link")
        >>> "two_link_inverse_dynamics" in rbd.c_source(model, ["inverse_dynamics"])
        True
    """
    files = c_files(model, functions, name, precision, target=target, inertias=inertias, payload=payload,
                    gravity=gravity)
    return files[f"{identifier(model, name)}.{'cu' if target == 'cuda' else 'c'}"]


def c_files(model: RobotModel, functions: Sequence[str], name: str = "", precision: str = "double", *,
            target: str = "c", inertias: Sequence[str] = (), payload: str = "", gravity: bool = False
            ) -> dict[str, str]:
    """File name → text: the source, its header (of C), a CMakeLists.txt, and a test with reference results."""
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if target not in TARGETS:
        raise unknown_name("target", target, TARGETS)
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    functions = [functions] if isinstance(functions, str) else list(dict.fromkeys(functions))
    if not functions:
        raise RbdError("c_source: no function is requested")
    all_wanted = list({wanted.label: wanted for wanted in (wanted_of(model, text) for text in functions)}.values())
    if len({wanted.name for wanted in all_wanted}) < len(all_wanted):
        labels = ", ".join(wanted.label for wanted in all_wanted)
        raise RbdError(f"c_source: functions have the same name in C: {labels}")
    if not model.nv:
        raise RbdError(f"c_source: model '{model.name}' has no joint that moves")
    for joint in model.joints:
        if joint.type == "spherical_exponential":    # its code branches on the angle
            raise RbdError(f"c_source: joint '{joint.name}' is spherical_exponential, whose code branches on its "
                           "angle; use joints of type spherical")
    name, inputs = identifier(model, name), model_inputs(model, inertias, payload, gravity)
    if target == "cuda":
        return _cuda_files(model, name, all_wanted, precision, inputs)
    bodies = [_function(model, name, wanted, precision, inputs) for wanted in all_wanted]
    arrays = _arrays(model, name, precision)
    source = [f'#include "{name}.h"', "", "#include <math.h>", "", *arrays, "", *bodies]
    return {f"{name}.c": "\n".join(source), f"{name}.h": _header(model, name, all_wanted, precision, inputs),
            "CMakeLists.txt": _cmake(name), f"test_{name}.c": _test(model, name, all_wanted, precision, inputs)}


def wanted_of(model: RobotModel, text: str) -> Wanted:
    """The function of the text `"name"` or `"name:parameters"`."""
    of = text.partition(":")[0] if isinstance(text, str) else ""
    if of.startswith("constrained_"):
        raise RbdError(f"{of} chooses its pivots by their size, which differs from state to state: there is no "
                       "straight-line code. Use functions of the tree and the constraints' equations beside it")
    if of not in ARGUMENTS:
        raise unknown_name("function", text, ARGUMENTS)
    of, parameters, function = function_of(model, text)
    if of not in FAMILIES:
        return Wanted(of, of, of, function, ARGUMENTS[of], PUBLIC[of])
    text_label = label(model, of, parameters)
    higher = [*HIGHER.get(of, ()), *(f"higher{k}" for k in range(3, len(function.inputs)))]
    arguments = (*ARGUMENTS[of], *higher)[:len(function.inputs)]
    own_name = of if text == of else re.sub(r"\W+", "_", text_label, flags=re.ASCII).strip("_")
    return Wanted(text_label, own_name, of, function, arguments,
                   lambda model, *x: FAMILIES[of].call(model, x, parameters))


def identifier(model: RobotModel, name: str = "") -> str:
    """The name in C: `name`, else that of the model; raises `RbdError` for no identifier."""
    identifier = name or re.sub(r"\W", "_", model.name, flags=re.ASCII).lower() or "robot"
    if identifier[0].isdigit():
        identifier = f"robot_{identifier}"
    if not re.fullmatch(r"[A-Za-z_]\w*", identifier, flags=re.ASCII):
        raise RbdError(f"name: expected an identifier of C, got '{name}'")
    return identifier


def _declaration(model: RobotModel, robot: str, wanted: Wanted, precision: str, more: ModelInputs) -> str:
    number, count = PRECISIONS[precision][0], sum(wanted.outputs(model).values())
    arguments = [f"const {number} {argument}[{size}]" for argument, size in wanted.inputs(model, more).items()]
    return f"int {robot}_{wanted.name}({', '.join(arguments)}, {number} out[{count}])"


def _recorded(model: RobotModel, wanted: Wanted, more: ModelInputs) -> Program:
    program = recorded(model, wanted.label, wanted.function, variables=more.variables)
    if program.operations > MAX_OPERATIONS:
        raise NoProgram(f"{wanted.label}: {program.operations:,} operations, more than {MAX_OPERATIONS:,}, which a C "
                        "compiler takes in reasonable time")
    return program


def _printed(program: Program, places: Sequence[str], precision: str) -> tuple[dict[int, str], dict[int, str]]:
    """Names of all values, and the statements of those that are computed, in order. places: names of the inputs."""
    number, suffix, _ = PRECISIONS[precision]
    value = {program.inputs[k].index: place for k, place in enumerate(places)}
    statements = {}
    for i, node in enumerate(program.nodes):
        if node.op == p.CONSTANT:
            text = f"{_rounded(node.a, precision)}{suffix}"
            value[i] = text if node.a >= 0.0 else f"({text})"
        elif node.op != p.INPUT:
            statements[i] = f"const {number} x{i} = {_expression(program, i, value, suffix)};"
            value[i] = f"x{i}"
    return value, statements


def _refusals(program: Program, value: Mapping[int, str]) -> list[str]:
    """Conditions of states outside the code's domain."""
    return [f"{'!' if g.outcome else ''}({value[g.left]} {g.comparison} {value[g.right]})" for g in program.guards]


def _function(model: RobotModel, robot: str, wanted: Wanted, precision: str, more: ModelInputs) -> str:
    program, sizes = _recorded(model, wanted, more), wanted.inputs(model, more)
    places = [f"{argument}[{k}]" for argument, size in sizes.items() for k in range(size)]
    value, statements = _printed(program, places, precision)
    lines = [f"    {statement}" for statement in statements.values()]
    refuse = [f"    if ({condition}) return 1;" for condition in _refusals(program, value)]
    unused = [f"    (void){argument};" for argument in sizes
              if not any(f"{argument}[" in line for line in (*lines, *refuse, *(value[i] for i in program.outputs)))]
    stores = [f"    out[{k}] = {value[i]};" for k, i in enumerate(program.outputs)]
    return "\n".join([_declaration(model, robot, wanted, precision, more), "{", *unused, *lines, *refuse, *stores,
                      "    return 0;", "}", ""])


def _cuda_files(model: RobotModel, name: str, functions: Sequence[Wanted], precision: str, more: ModelInputs
                ) -> dict[str, str]:
    number, suffix, tolerance = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    joints = ", ".join(model.joint_names).replace("*/", "")
    lines = [f"/* Robot '{model.name.replace('*/', '')}', made by rbd_ros. SI units; joints: {joints}.",
             "   A thread per state. Entry k of state s of an array x is x[s * x_state + k * x_entry]; x_state is 0",
             "   for a vector of all states. Results are NaN where a joint moves no inertia. */", *_comments(more), ""]
    cases = []
    for wanted in functions:
        program, sizes, outputs = _recorded(model, wanted, more), wanted.inputs(model, more), wanted.outputs(model)
        places = [f"{argument}{k}" for argument, size in sizes.items() for k in range(size)]
        value, statements = _printed(program, places, precision)
        of = "" if wanted.label == wanted.of else f" ({wanted.label})".replace("*/", "")
        lines += [f"/* {', '.join(outputs)}: {WHAT[wanted.of]}{of} */",
                  cuda_kernel(f"{name}_{wanted.name}", number, suffix, sizes, outputs, program, value, statements,
                              _refusals(program, value)), ""]
        arguments, expected = _example(model, wanted, precision, more, rng)
        cases.append((f"{name}_{wanted.name}", {argument: _numbers(x, suffix) for argument, x in arguments.items()},
                      sizes, {output: _numbers(np.ravel(x), "") for output, x in zip(outputs, expected, strict=True)},
                      outputs))
    return {f"{name}.cu": "\n".join(lines), f"test_{name}.cu": cuda_test(name, number, tolerance, cases),
            "CMakeLists.txt": cuda_cmake(name)}


def _rounded(x: float, precision: str) -> float:
    """x rounded to the type; numbers too small for it become 0."""
    return float(np.float32(x)) if precision == "float" else x


def _expression(program: Program, i: int, value: Mapping[int, str], suffix: str) -> str:
    node = program.nodes[i]
    if node.op in _INFIX:
        return f"{value[node.a]} {_INFIX[node.op]} {value[node.b]}"
    return f"-{value[node.a]}" if node.op == p.NEG else f"{_CALL[node.op]}{suffix}({value[node.a]})"


def _limits(model: RobotModel) -> dict[str, np.ndarray]:
    return {"position_lower": model.position_lower, "position_upper": model.position_upper,
            "velocity_limit": model.velocity_limit, "effort_limit": model.effort_limit}


def _arrays(model: RobotModel, name: str, precision: str) -> list[str]:
    number, suffix, _ = PRECISIONS[precision]
    names = ", ".join(f'"{escaped(entry)}"' for entry in model.joint_names) or "0"
    lines = [f"const char *const {name}_joint_names[] = {{{names}}};"]
    for entry, values in _limits(model).items():
        text = ", ".join(f"{float(x)}{suffix}" if np.isfinite(x) else ("-" if x < 0.0 else "") + "INFINITY"
                         for x in values) or f"0.0{suffix}"
        lines.append(f"const {number} {name}_{entry}[] = {{{text}}};")
    return lines


def escaped(text: str) -> str:
    """The text as it stands in a literal of C."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _header(model: RobotModel, name: str, functions: Sequence[Wanted], precision: str, more: ModelInputs) -> str:
    number, upper = PRECISIONS[precision][0], name.upper()
    lines = [f"/* Robot '{model.name.replace('*/', '')}', made by rbd_ros. SI units; joints in the order of "
             f"{name}_joint_names.", "   Functions return 0, or 1 where a joint moves no inertia: then out is not "
             "written. */", f"#ifndef {upper}_H", f"#define {upper}_H", "", f"#define {upper}_NQ {model.nq}",
             f"#define {upper}_NV {model.nv}", f"#define {upper}_LINKS {len(model.body_names)}", "",
             "#ifdef __cplusplus", 'extern "C" {', "#endif", "", f"extern const char *const {name}_joint_names[];"]
    lines += [f"extern const {number} {name}_{each}[];" for each in _limits(model)]
    comments = _comments(more)
    lines += ["", *comments] if comments else []
    for each in functions:
        of = "" if each.label == each.of else f" ({each.label})".replace("*/", "")
        lines += ["", f"/* out: {WHAT[each.of]}{of} */", f"{_declaration(model, name, each, precision, more)};"]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _comments(more: ModelInputs) -> list[str]:
    """Lines about the arguments after the state."""
    ten = "   mass, mass * centre (3), moments of inertia about the origin: xx, xy, yy, xz, yz, zz */"
    comments = []
    if more.bodies:
        names = ", ".join(more.bodies).replace("*/", "")
        comments += [f"/* inertias: ten numbers each of {names}, in the frame of the link:", ten]
    if more.payload:
        name = more.payload.replace("*/", "")
        comments += [f"/* payload: ten numbers of a load on {name}, in the frame of this link:", ten]
    return comments + (["/* gravity: its acceleration in axes of the root link */"] if "gravity" in more.sizes else [])


def _cmake(name: str) -> str:
    return (f"cmake_minimum_required(VERSION 3.10)\nproject({name} C)\nset(CMAKE_C_STANDARD 99)\n"
            "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
            f"add_library({name} {name}.c)\n"
            f"target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
            f"if(NOT MSVC)\n  target_link_libraries({name} PUBLIC m)\nendif()\n"
            f"enable_testing()\nadd_executable(test_{name} test_{name}.c)\n"
            f"target_link_libraries(test_{name} {name})\nadd_test(NAME {name} COMMAND test_{name})\n")


def _test(model: RobotModel, name: str, functions: Sequence[Wanted], precision: str, more: ModelInputs) -> str:
    """A C program that compares with results of the ordinary kernels."""
    number, suffix, tolerance = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    lines = [f'#include "{name}.h"', "", "#include <math.h>", "#include <stdio.h>", "", "static int failed = 0;", "",
             f"static void check(const char *what, int count, const {number} *found, const double *expected)", "{",
             "    double size = 1e-300, error = 0.0;", "    for (int i = 0; i < count; ++i) {",
             "        size = fmax(size, fabs(expected[i]));",
             "        error = fmax(error, fabs((double)found[i] - expected[i]));", "    }",
             f"    if (!(error <= {tolerance} * size)) failed = 1;",
             '    printf("%s: relative error %.1e\\n", what, error / size);', "}", "", "int main(void)", "{"]
    for wanted in functions:
        arguments, results = _example(model, wanted, precision, more, rng)
        expected = np.concatenate([np.ravel(part) for part in results])
        lines.append("    {")
        for argument, numbers in arguments.items():
            lines.append(f"        const {number} {argument}[] = {{{_numbers(numbers, suffix)}}};")
        lines += [f"        const double expected[] = {{{_numbers(expected, '')}}};",
                  f"        {number} out[{len(expected)}];",
                  f"        if ({name}_{wanted.name}({', '.join(arguments)}, out)) failed = 1;",
                  f'        check("{wanted.name}", {len(expected)}, out, expected);', "    }"]
    return "\n".join([*lines, "    return failed;", "}", ""])


def _example(model: RobotModel, wanted: Wanted, precision: str, more: ModelInputs, rng: np.random.Generator
             ) -> tuple[dict[str, np.ndarray], tuple[np.ndarray, ...]]:
    """Random arguments by name, and the arrays of the result."""
    state = [model.random_configuration(rng) if kind == "q" else rng.normal(size=model.nv)
             for kind in wanted.function.inputs]
    if precision == "float":
        state = [x.astype(np.float32).astype(np.float64) for x in state]
    values, changed = more.example(model, rng)
    result = wanted.call(changed, *state)
    return (dict(zip(wanted.arguments, state, strict=True)) | values,
            result if isinstance(result, tuple) else (result,))


def _numbers(values: np.ndarray, suffix: str) -> str:
    return ", ".join(f"{float(x)}{suffix}" for x in values)

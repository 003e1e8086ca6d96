"""A robot's functions as C99: straight-line code without heap, loops or dependencies but `math.h`."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import RbdError, unknown_name
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from . import program as p
from .functions import FUNCTIONS, PUBLIC, Function, recorded
from .program import Program

PRECISIONS = {"double": ("double", "", 1e-12), "float": ("float", "f", 1e-3)}    # type, suffix, tolerance of the test
ARGUMENTS = {"inverse_dynamics": ("q", "v", "a"), "forward_dynamics": ("q", "v", "tau"), "mass_matrix": ("q",),
             "coriolis_matrix": ("q", "v"), "forward_kinematics": ("q",), "inertial_regressor": ("q", "v", "a"),
             "inverse_dynamics_derivatives": ("q", "v", "a"), "forward_dynamics_derivatives": ("q", "v", "tau"),
             "inverse_dynamics_time_derivatives": ("q", "v", "a", "jerk", "snap"),
             "gravity_effort": ("q",), "bias_effort": ("q", "v")}
WHAT = {"inverse_dynamics": "joint efforts", "forward_dynamics": "joint accelerations",
        "mass_matrix": "joint space inertia, row by row", "coriolis_matrix": "C(q, v), row by row",
        "forward_kinematics": "poses of all links, world from link, 4 x 4 row by row",
        "inertial_regressor": "Y(q, v, a), row by row", "gravity_effort": "efforts that hold the robot at rest",
        "inverse_dynamics_derivatives": "d effort by q, v and a, each row by row",
        "forward_dynamics_derivatives": "d acceleration by q, v and tau, each row by row",
        "inverse_dynamics_time_derivatives": "efforts, and their first and second time derivative",
        "bias_effort": "efforts of velocity and gravity"}
_INFIX = {p.ADD: "+", p.SUB: "-", p.MUL: "*", p.DIV: "/"}
_CALL = {p.SIN: "sin", p.COS: "cos", p.SQRT: "sqrt", p.ABS: "fabs"}


def c_source(model: RobotModel, functions: Sequence[str] = ("inverse_dynamics",), name: str = "",
             precision: str = "double") -> str:
    """C99 text with a function for each of these, `int NAME_inverse_dynamics(const double q[], …, double out[])`.

    functions: of `ARGUMENTS`; they take and fill arrays in the order of `model.joint_names`, in SI units, as the
    functions of this library do. They return 0, or 1 where a state is beyond what the code is for (a joint that moves
    no inertia, a quaternion that has not norm 1) and `out` was not written. name: of the robot, a C identifier; by
    default the model's. precision: "double" or "float". `RbdError` for unknown names, a function of more than 15,000
    operations, and joints of type spherical_exponential, whose code branches on the angle.
    """
    return c_files(model, functions, name, precision)[f"{_identifier(model, name)}.c"]


def c_files(model: RobotModel, functions: Sequence[str], name: str = "", precision: str = "double") -> dict[str, str]:
    """The source with its header, a CMakeLists.txt, and a test with reference numbers, by file name."""
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    functions = [functions] if isinstance(functions, str) else list(dict.fromkeys(functions))
    if not functions:
        raise RbdError("c_source: no function is asked for")
    for each in functions:
        if each not in ARGUMENTS:
            raise unknown_name("function", each, ARGUMENTS)
    if not model.nv:
        raise RbdError(f"c_source: model '{model.name}' has no joint that moves")
    for joint in model.joints:
        if joint.type == "spherical_exponential":    # no straight line holds for small and for large rotations
            raise RbdError(f"c_source: joint '{joint.name}' is spherical_exponential, whose code branches on its "
                           "angle; use joints of type spherical")
    name = _identifier(model, name)
    bodies = [_function(model, name, each, precision) for each in functions]
    arrays = _arrays(model, name, precision)
    source = [f'#include "{name}.h"', "", "#include <math.h>", "", *arrays, "", *bodies]
    return {f"{name}.c": "\n".join(source), f"{name}.h": _header(model, name, functions, precision),
            "CMakeLists.txt": _cmake(name), f"test_{name}.c": _test(model, name, functions, precision)}


def _identifier(model: RobotModel, name: str) -> str:
    found = name or re.sub(r"\W", "_", model.name, flags=re.ASCII).lower() or "robot"
    if found[0].isdigit():
        found = f"robot_{found}"
    if not re.fullmatch(r"[A-Za-z_]\w*", found, flags=re.ASCII):
        raise RbdError(f"name: expected an identifier of C, got '{name}'")
    return found


def _traced(name: str) -> tuple[str, Function]:
    """The function of `FUNCTIONS` that gives this one, and that."""
    of = "inverse_dynamics" if name in ("gravity_effort", "bias_effort") else name
    return of, FUNCTIONS[of]


def _sizes(model: RobotModel, name: str) -> tuple[list[int], int]:
    """Of the arguments, and of the result."""
    function = _traced(name)[1]
    inputs = [model.nq if kind == "q" else model.nv for kind in function.inputs][:len(ARGUMENTS[name])]
    return inputs, sum(int(np.prod(shape)) for shape in function.shapes(model))


def _declaration(model: RobotModel, robot: str, name: str, precision: str) -> str:
    number = PRECISIONS[precision][0]
    inputs, count = _sizes(model, name)
    arguments = [f"const {number} {each}[{size}]" for each, size in zip(ARGUMENTS[name], inputs, strict=True)]
    return f"int {robot}_{name}({', '.join(arguments)}, {number} out[{count}])"


def _function(model: RobotModel, robot: str, name: str, precision: str) -> str:
    number, suffix, _ = PRECISIONS[precision]
    of, _ = _traced(name)
    program = recorded(model, of, len(ARGUMENTS[name]))
    inputs, _ = _sizes(model, name)
    places = [f"{each}[{k}]" for each, size in zip(ARGUMENTS[name], inputs, strict=True) for k in range(size)]
    value = {program.inputs[k].index: place for k, place in enumerate(places)}
    lines = []
    for i, node in enumerate(program.nodes):
        if node.op == p.CONSTANT:
            text = f"{_rounded(node.a, precision)}{suffix}"
            value[i] = text if node.a >= 0.0 else f"({text})"
        elif node.op != p.INPUT:
            lines.append(f"    const {number} x{i} = {_expression(program, i, value, suffix)};")
            value[i] = f"x{i}"
    guards = [f"{value[g.left]} {g.comparison} {value[g.right]}" for g in program.guards]
    refuse = [f"    if ({'!' if g.outcome else ''}({text})) return 1;"
              for g, text in zip(program.guards, guards, strict=True)]
    unused = [f"    (void){each};" for each in ARGUMENTS[name]
              if not any(f"{each}[" in line for line in (*lines, *refuse, *(value[i] for i in program.outputs)))]
    stores = [f"    out[{k}] = {value[i]};" for k, i in enumerate(program.outputs)]
    return "\n".join([_declaration(model, robot, name, precision), "{", *unused, *lines, *refuse, *stores,
                      "    return 0;", "}", ""])


def _rounded(x: float, precision: str) -> float:
    """The number that the type holds: what is too small for it is 0."""
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
    names = ", ".join(f'"{_escaped(each)}"' for each in model.joint_names) or "0"
    found = [f"const char *const {name}_joint_names[] = {{{names}}};"]
    for each, values in _limits(model).items():
        text = ", ".join(f"{float(x)}{suffix}" if np.isfinite(x) else ("-" if x < 0.0 else "") + "INFINITY"
                         for x in values) or f"0.0{suffix}"
        found.append(f"const {number} {name}_{each}[] = {{{text}}};")
    return found


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _header(model: RobotModel, name: str, functions: Sequence[str], precision: str) -> str:
    number, upper = PRECISIONS[precision][0], name.upper()
    lines = [f"/* Robot '{model.name.replace('*/', '')}', made by rbd_ros. SI units; joints in the order of "
             f"{name}_joint_names.", "   Functions return 0, or 1 where a joint moves no inertia: then out is not "
             "written. */", f"#ifndef {upper}_H", f"#define {upper}_H", "", f"#define {upper}_NQ {model.nq}",
             f"#define {upper}_NV {model.nv}", f"#define {upper}_LINKS {len(model.body_names)}", "",
             "#ifdef __cplusplus", 'extern "C" {', "#endif", "", f"extern const char *const {name}_joint_names[];"]
    lines += [f"extern const {number} {name}_{each}[];" for each in _limits(model)]
    for each in functions:
        lines += ["", f"/* out: {WHAT[each]} */", f"{_declaration(model, name, each, precision)};"]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _cmake(name: str) -> str:
    return (f"cmake_minimum_required(VERSION 3.10)\nproject({name} C)\nset(CMAKE_C_STANDARD 99)\n"
            "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
            f"add_library({name} {name}.c)\n"
            f"target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
            f"if(NOT MSVC)\n  target_link_libraries({name} PUBLIC m)\nendif()\n"
            f"enable_testing()\nadd_executable(test_{name} test_{name}.c)\n"
            f"target_link_libraries(test_{name} {name})\nadd_test(NAME {name} COMMAND test_{name})\n")


def _test(model: RobotModel, name: str, functions: Sequence[str], precision: str) -> str:
    """A program that compares with numbers of the ordinary kernels."""
    number, suffix, tolerance = PRECISIONS[precision]
    rng = np.random.default_rng(0)
    lines = [f'#include "{name}.h"', "", "#include <math.h>", "#include <stdio.h>", "", "static int failed = 0;", "",
             f"static void check(const char *what, int count, const {number} *found, const double *expected)", "{",
             "    double size = 1e-300, error = 0.0;", "    for (int i = 0; i < count; ++i) {",
             "        size = fmax(size, fabs(expected[i]));",
             "        error = fmax(error, fabs((double)found[i] - expected[i]));", "    }",
             f"    if (!(error <= {tolerance} * size)) failed = 1;",
             '    printf("%s: relative error %.1e\\n", what, error / size);', "}", "", "int main(void)", "{"]
    for each in functions:
        state = [model.random_configuration(rng) if kind == "q" else rng.normal(size=model.nv)
                 for kind in _traced(each)[1].inputs[:len(ARGUMENTS[each])]]
        if precision == "float":
            state = [x.astype(np.float32).astype(np.float64) for x in state]
        found = PUBLIC[each](model, *state)
        parts = found if isinstance(found, tuple) else (found,)
        expected = np.concatenate([np.ravel(part) for part in parts])
        lines.append("    {")
        for argument, values in zip(ARGUMENTS[each], state, strict=True):
            lines.append(f"        const {number} {argument}[] = {{{_numbers(values, suffix)}}};")
        lines += [f"        const double expected[] = {{{_numbers(expected, '')}}};",
                  f"        {number} out[{len(expected)}];",
                  f"        if ({name}_{each}({', '.join(ARGUMENTS[each])}, out)) failed = 1;",
                  f'        check("{each}", {len(expected)}, out, expected);', "    }"]
    return "\n".join([*lines, "    return failed;", "}", ""])


def _numbers(values: np.ndarray, suffix: str) -> str:
    return ", ".join(f"{float(x)}{suffix}" for x in values)

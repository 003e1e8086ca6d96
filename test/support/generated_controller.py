"""The generated controller package, compiled: its logic by ctypes, its plugins against stand-in headers."""
from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import yaml

from rbd_ros.cli.files.written import write_files
from rbd_ros.cli.ros2_control.package import package_files

STAND_INS = Path(__file__).parent / "ros2_control"
MODES = ("inactive", "waiting", "ramp_in", "running", "stale", "stopped")
STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wpedantic"]
HAS_COMPILER = shutil.which("g++") is not None and shutil.which("gcc") is not None


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def write_package(folder, model, **options):
    """Write the package and the headers around it (`stand_ins`), and compile its C."""
    files = package_files(model, **options)
    write_files(folder, files)
    (package, parameters), = yaml.safe_load(files["src/parameters.yaml"]).items()
    stand_ins(folder / "headers", package, parameters)
    arm = next(name for name in files if name.startswith("arm/") and name.endswith(".c"))
    run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-c", folder / arm, "-o", folder / "arm.o")


def includes(folder):
    return [word for place in (folder / "arm", folder / "src", folder / "test", folder / "headers", STAND_INS)
            for word in ("-I", place)]


class Logic:
    """The logic of one package: as `rbd.TorqueController`, whose parameters it takes."""

    def __init__(self, folder, model, package):
        run("g++", *STRICT, "-O1", "-fPIC", "-shared", f"-DPACKAGE={package}", *includes(folder), "-include",
            folder / "headers" / package / f"{package}_parameters.hpp", STAND_INS / "shim.cpp", folder / "arm.o",
            "-o", folder / "logic.so")
        self.model, self.library = model, ctypes.CDLL(str(folder / "logic.so"))
        counts = re.search(r"struct Counts\n\{(.*?)\n\};", (folder / "src" / "torque_controller.hpp").read_text(),
                           flags=re.DOTALL)
        self.count_names = re.findall(r"(\w+) = 0", counts[1])

    def call(self, name, *arguments):
        """Numbers as double, arrays as pointers: they are written in place only if they are contiguous."""
        values = [x if isinstance(x, float) else np.ascontiguousarray(x, dtype=float) for x in arguments]
        return getattr(self.library, name)(*(
            ctypes.c_double(x) if isinstance(x, float) else x.ctypes.data_as(ctypes.c_void_p) for x in values))

    def set(self, values):
        """Take the parameters that both have; `values` as `TorqueController.parameters`."""
        self.library.set_defaults()
        for name, value in values.items():
            items = value if isinstance(value, tuple) else (value,)
            if items and isinstance(items[0], str):
                texts = (ctypes.c_char_p * len(items))(*(item.encode() for item in items))
                self.library.set_texts(name.encode(), texts, len(items))
            elif items:
                numbers = (ctypes.c_double * len(items))(*items)
                self.library.set_numbers(name.encode(), numbers, len(items))

    def configure(self, values):
        self.call("reset", 0.0)    # an emergency stop stays latched
        self.set(values)
        self.library.configure()

    def use(self, values):
        self.set(values)
        self.library.use()

    def update(self, now, q, v):
        """(effort, mode)"""
        out = np.empty(self.model.nv)
        mode = MODES[self.call("update", float(now), q, v, out)]
        return out, mode

    def finish(self):
        out = np.empty(self.model.nv)
        self.call("finish", out)
        return out

    def counts(self):
        return {name: self.library.counted(k) for k, name in enumerate(self.count_names)}


# ---- the plugins against stand-ins

HEADERS = ("controller_interface/chainable_controller_interface.hpp", "diagnostic_msgs/msg/diagnostic_array.hpp",
           "inverse_dynamics_solver/exceptions.h", "inverse_dynamics_solver/inverse_dynamics_solver.h",
           "pluginlib/class_list_macros.hpp", "rcl_interfaces/msg/set_parameters_result.hpp",
           "realtime_tools/realtime_buffer.hpp", "std_msgs/msg/bool.hpp", "std_srvs/srv/trigger.hpp",
           "trajectory_msgs/msg/joint_trajectory_point.hpp")
TYPES = {"bool": "bool", "double": "double", "string": "std::string", "double_array": "std::vector<double>",
         "string_array": "std::vector<std::string>"}


def stand_ins(folder, package, parameters):
    """Write headers that lead to the stand-ins, and that of the parameters, as generate_parameter_library names it."""
    for name in HEADERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        solver = "inverse_dynamics_solver" in name
        (folder / name).write_text(f'#include "{"solver" if solver else "ros2_control"}.hpp"\n')
    (folder / "gtest").mkdir(exist_ok=True)
    (folder / "gtest" / "gtest.h").write_text('#include "gtest.hpp"\n')
    (folder / package).mkdir(exist_ok=True)
    (folder / package / f"{package}_parameters.hpp").write_text(parameter_header(package, parameters))


def literal(value):
    if isinstance(value, list):
        return "{" + ", ".join(map(literal, value)) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return "std::numeric_limits<double>::infinity()" if value == float("inf") else repr(float(value))


def parameter_header(package, tree):
    """Struct `Params` and `ParamListener`, without validation: as those of generate_parameter_library."""
    reads = []

    def members(entries, path):
        lines = []
        for name, entry in entries.items():
            if "type" in entry and "description" in entry:
                kind, full = TYPES[entry["type"]], ".".join((*path, name))
                lines.append(f"{kind} {name} = {literal(entry['default_value'])};")
                reads.append(f'if (const auto found = all.find("{full}"); found != all.end()) '
                             f"{{params.{full} = std::get<{kind}>(found->second.value);}}")
            else:
                lines += [f"struct {{{' '.join(members(entry, (*path, name)))}}} {name};"]
        return lines

    body = "\n  ".join(members(tree, ()))
    return f"""#pragma once
#include "ros2_control.hpp"
namespace {package}
{{
struct Params
{{
  {body}
}};
class ParamListener
{{
public:
  explicit ParamListener(std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node) : node_(node) {{}}
  bool is_old(const Params &) const {{return node_->changed;}}
  Params get_params()
  {{
    node_->changed = false;
    const auto & all = node_->parameters;
    Params params;
    {chr(10).join(reads)}
    return params;
  }}
private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_;
}};
}}
"""

"""`rbd secure`: the SROS2 policy and keys of a node and of the roles that communicate with it."""
from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from ...core.errors import RbdError
from ...runtime.parameter_files import flat
from ...runtime.security.policy import bringup
from ...runtime.security.rights import TABLE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd secure`."""
    parser.add_argument("node", choices=sorted(TABLE), help="which node")
    parser.add_argument("--params-file", nargs="+", default=[], metavar="FILE",
                        help="parameter files of the node, as at its start: they determine its topics")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME:=VALUE",
                        help="further parameters, such as adapters:=[forward_command]")
    parser.add_argument("--remap", nargs="+", default=[], metavar="FROM:=TO", help="remappings, as at its start")
    parser.add_argument("--namespace", default="/", help="of the node (default: /)")
    parser.add_argument("--enclave", default="/rbd_ros", help="prefix of the enclaves' names (default: /rbd_ros)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the policy (default: printed)")
    parser.add_argument("--keystore", metavar="FOLDER", help="also make keys and permissions there, with `ros2 "
                                                             "security`")


def run(namespace: argparse.Namespace) -> int:
    """Write the policy, and keys if requested; returns 1 if `ros2 security` is missing."""
    values: dict[str, Any] = {}
    for file in namespace.params_file:
        values |= parameters(Path(file), namespace.node, namespace.namespace)
    values |= {name: yaml.safe_load(value) for name, value in map(_pair, namespace.set)}
    text = bringup(namespace.node, values, "/" + namespace.namespace.strip("/"), dict(map(_pair, namespace.remap)),
                   namespace.enclave)
    output = namespace.output
    if output is None and namespace.keystore:
        output = str(Path(namespace.keystore) / f"{namespace.node}.policy.xml")
    if output is None:
        sys.stdout.write(text)
        return 0
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    Path(output).write_text(text, encoding="utf-8")
    print(f"wrote {output}")
    return make_keys(Path(namespace.keystore), Path(output)) if namespace.keystore else 0


def make_keys(keystore: Path, policy: Path) -> int:
    """Create keys and permissions of every enclave of the policy; existing keys are kept."""
    ros2 = shutil.which("ros2")
    command = ["ros2", "security", "generate_artifacts", "-k", str(keystore), "-p", str(policy)]
    if ros2 is None or subprocess.run([ros2, "security", "--help"], capture_output=True).returncode:
        missing = "command ros2" if ros2 is None else "package sros2"
        print(f"no keys: there is no {missing} here (Debian, Ubuntu: apt install ros-$ROS_DISTRO-sros2 "
              f"ros-$ROS_DISTRO-ros2cli). Once installed:\n  {' '.join(command)}", file=sys.stderr)
        return 1
    if subprocess.run([ros2, *command[1:]]).returncode:
        raise RbdError("`ros2 security` failed, see above")
    print(f"keys in {keystore}. For every program:\n  export ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce "
          f"ROS_SECURITY_KEYSTORE={keystore.resolve()}\nEach is started in its enclave: … --ros-args --enclave PATH")
    return 0


def parameters(file: Path, node: str, namespace: str) -> dict[str, Any]:
    """Parameters of a node in a file: sections `/**`, its name and its full name, later ones taking precedence."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RbdError(f"cannot read parameters {file}: {error}") from None
    full = f"/{namespace.strip('/')}/{node}".replace("//", "/")
    if not isinstance(content, dict):
        raise RbdError(f"{file}: expected sections with ros__parameters")
    values: dict[str, Any] = {}
    for section, inner in content.items():
        if section in ("/**", f"/**/{node}", node, full) and isinstance(inner, dict):
            values |= flat(inner.get("ros__parameters"))
    return values


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition(":=")
    if not name or not separator:
        raise RbdError(f"'{text}': expected NAME:=VALUE")
    return name, value

"""SROS2 policies (schema 0.2.0): the rights of nodes and roles as XML, one enclave each.

Topics and services without an entry are denied. DDS checks only the keys of an enclave: they grant its rights to a node
of any name.
"""
from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from .rights import NODE, Rights, Values, rights_of
from .roles import PROGRAM, robot_of, roles_of

PARTS = (("topics", "topic", ("publish", "subscribe")), ("services", "service", ("reply", "request")),
         ("actions", "action", ("execute", "call")))


def bringup(node: str, values: Values, namespace: str = "/", remapped: Mapping[str, str] | None = None,
            prefix: str = "/rbd_ros") -> str:
    """The policy of a node with these parameters and of all roles beside it.

    prefix: of the enclaves, `<prefix>/<node>` and `<prefix>/<node>_<role>`. remapped: remappings of the node.
    """
    plain = rights_of(node, values)
    names = dict(remapped or {})
    roles = {f"_{role}": granted_rights for role, granted_rights in roles_of(node, plain).items()}
    if "~/effort" in plain.publish and "robot_description" in plain.subscribe:    # torque has a receiver
        outputs = plain.publish - NODE.publish - {"~/effort"}
        roles["_robot"] = robot_of(plain, frozenset(name for name in outputs if not name.startswith("~/wrench/")))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<policy version="0.2.0">', "  <enclaves>"]
    for name, granted_rights in ({"": plain} | roles).items():
        profiles = {node: granted_rights.renamed(names)} | ({f"{node}{name}": PROGRAM} if name else {})
        lines += [f"    <enclave path={quoteattr(prefix.rstrip('/') + '/' + node + name)}>", "      <profiles>"]
        for owner, granted in profiles.items():
            lines += _profile(namespace, owner, granted)
        lines += ["      </profiles>", "    </enclave>"]
    return "\n".join([*lines, "  </enclaves>", "</policy>", ""])


def _profile(namespace: str, node: str, granted: Rights) -> list[str]:
    """XML lines of the rights of this node in this namespace."""
    lines = [f"        <profile ns={quoteattr(namespace)} node={quoteattr(node)}>"]
    for outer, inner, kinds in PARTS:
        for kind in kinds:
            names = sorted(getattr(granted, kind))
            if names:
                lines.append(f'          <{outer} {kind}="ALLOW">')
                lines += [f"            <{inner}>{escape(name)}</{inner}>" for name in names]
                lines.append(f"          </{outer}>")
    return [*lines, "        </profile>"]

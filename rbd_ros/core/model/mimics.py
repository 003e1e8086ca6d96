"""Mimic joints: their source joints, and the friction reflected to these."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..errors import RbdError, unknown_name
from .coordinates import Joint, Mimic, dissipation
from .joints import JointSpec, primitives


def resolve_mimics(joints: Sequence[JointSpec]) -> dict[str, Mimic]:
    """Mimic joints by name, each as a function of an independent joint; chains are composed."""
    by_name = {joint.name: joint for joint in joints}
    mimics = {}
    for joint in joints:
        if joint.mimic is None:
            continue
        source, ratio, offset = joint.mimic
        chain = [joint.name]
        while True:
            if source not in by_name:
                raise unknown_name("joint to mimic", source, by_name, f"joint '{joint.name}'")
            if source in chain:
                raise RbdError(f"mimic joints form a cycle: {' → '.join([*chain, source])}")
            if not (np.isfinite(ratio) and np.isfinite(offset)):
                raise RbdError(f"mimic joint '{joint.name}': multiplier and offset must be finite")
            chain.append(source)
            above = by_name[source].mimic
            if above is None:
                break
            source, ratio, offset = above[0], ratio * above[1], ratio * above[2] + offset
        for spec in (joint, by_name[source]):
            if len(primitives(spec)) != 1 or primitives(spec)[0].nv != 1:
                raise RbdError(f"mimic joint '{joint.name}' of '{source}': '{spec.name}' is {spec.type}, "
                               "but only joints of one coordinate can mimic")
        mimics[joint.name] = Mimic(joint.name, source, float(ratio), float(offset))
    return mimics


def with_followers(joints: Sequence[Joint], mimics: Iterable[Mimic], specs: Mapping[str, JointSpec]) -> list[Joint]:
    """Joints with the friction of their mimic joints added: damping r² d and friction |r| f of one with ratio r."""
    by_name = {joint.name: joint for joint in joints}
    for mimic in mimics:
        damping, friction = dissipation(specs[mimic.name], 1)
        source, ratio = by_name[mimic.source], mimic.multiplier
        by_name[mimic.source] = dataclasses.replace(source, damping=source.damping + ratio**2 * damping,
                                                    friction=source.friction + abs(ratio) * friction)
    return list(by_name.values())

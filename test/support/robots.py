"""Robots of example-robot-data, and small ones built in a line or two."""

import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

import rbd_ros as rbd


@cache
def urdf_paths():
    """All URDF files of the package example-robot-data, by `folder/file` (none where it is not installed)."""
    try:
        found = [Path(str(file.locate())) for file in files("example-robot-data") or () if file.suffix == ".urdf"]
    except PackageNotFoundError:
        return {}
    return {f"{path.parts[path.parts.index('robots') + 1]}/{path.stem}": path for path in sorted(found)}


@cache
def load(name, **options):
    """A robot of example-robot-data; warnings about the inertias of its description are not the tests' matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        return rbd.load_urdf(urdf_paths()[name], **options)


def inertia(mass=1.0, com=(0.1, 0.05, -0.2), moments=(0.03, 0.04, 0.05)):
    return rbd.Inertia(mass, np.array(com), np.diag(moments))


def build(joints, links=None, **options):
    """A model from joint specs; links that are not given weigh 1 kg, the root nothing."""
    names = dict.fromkeys(name for joint in joints for name in (joint.parent, joint.child))
    children = {joint.child for joint in joints}
    given = {name: inertia() if name in children else rbd.Inertia.zero() for name in names}
    given.update(links or {})
    return rbd.RobotModel.from_description(rbd.Description("robot", given, tuple(joints), **options))


def chain(*types, **options):
    """A serial chain of joints of these types, 0.3 m apart, named j0, j1, … with links l0, l1, …"""
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    at = np.array([0.1, 0.0, 0.3])
    return build([rbd.JointSpec(f"j{i}", kind, f"l{i}", f"l{i + 1}", position=at, axis=axes[i % 3])
                  for i, kind in enumerate(types)], **options)


def random_state(model, seed):
    """q, v, a of one state."""
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)


def random_states(model, count, seed):
    """q (N, nq), v, a (N, nv)."""
    each = [random_state(model, (seed, k)) for k in range(count)]
    return tuple(np.array(x) for x in zip(*each, strict=True))


def assert_close(got, expected, bound, what=""):
    """Within `bound` of the largest entry of what is expected (per state where there is a leading batch axis)."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if expected.size == 0:
        return 0.0
    scale = np.abs(expected).max()
    error = np.abs(got - expected).max()
    assert error <= bound * max(scale, 1e-300), f"{what}: off by {error:.3g}, largest entry {scale:.3g}"
    return float(error / scale) if scale else 0.0

"""All pairs of surfaces that can touch in a point, on two bodies that move freely, and states in which they do."""

from functools import cache

import numpy as np

import rbd_ros as rbd
from support.robots import build, inertia

FRAMES = ([[0.1, -0.05, 0.2], [0.4, -0.3, 0.2]], [[-0.05, 0.1, 0.03], [-0.2, 0.5, 1.1]])
BODIES = {"sphere": (rbd.Sphere, {"radius": 0.2}), "cylinder": (rbd.Cylinder, {"radius": 0.15}),
          "ellipsoid": (rbd.Ellipsoid, {"semi_axes": (0.3, 0.2, 0.15)}),
          "torus": (rbd.Torus, {"major_radius": 0.3, "minor_radius": 0.1})}
HOLLOW = {"sphere": (rbd.Sphere, {"radius": 0.9}), "cylinder": (rbd.Cylinder, {"radius": 0.8}),
          "ellipsoid": (rbd.Ellipsoid, {"semi_axes": (1.1, 0.9, 0.8)}),
          "torus": (rbd.Torus, {"major_radius": 2.0, "minor_radius": 0.7})}
HOLDS = {"sphere": ("sphere", "ellipsoid", "torus"), "cylinder": ("sphere", "ellipsoid", "torus"),
         "ellipsoid": ("sphere", "ellipsoid", "torus"), "torus": ("sphere", "ellipsoid", "torus")}
OPEN = [("plane", name) for name in BODIES] + [(name, "plane") for name in BODIES if name != "cylinder"] + [
    (first, second) for first in BODIES for second in BODIES]
PAIRS = OPEN + [(f"hollow {first}", second) for first in HOLDS for second in HOLDS[first]] + [
    (second, f"hollow {first}") for first in HOLDS for second in HOLDS[first]]


def surface(name, link, frame):
    if name == "plane":
        return rbd.Plane(link, frame)
    made, sizes = (HOLLOW if name.startswith("hollow") else BODIES)[name.removeprefix("hollow ")]
    return made(link, **sizes, frame=frame, inside=name.startswith("hollow"))


@cache
def bodies():
    """Two bodies that fly, one of them on an arm's link."""
    return build([rbd.JointSpec("shoulder", "revolute", "base", "arm", axis=(0.0, 1.0, 0.0)),
                  rbd.JointSpec("first", "floating", "arm", "one"), rbd.JointSpec("second", "floating", "base", "two")],
                 {"one": inertia(1.3), "two": inertia(0.7, (0.02, -0.03, 0.01))})


@cache
def pair(first, second, rolling=True):
    """Model and constraints of a pair."""
    a, b = surface(first, "one", FRAMES[0]), surface(second, "two", FRAMES[1])
    contact = rbd.RollingContact(a, b, spin=False, name="touch") if rolling else rbd.SlidingContact(a, b, name="touch")
    return bodies(), rbd.ConstraintSet([contact])


def poses(model, q):
    """Those of both surfaces in the world."""
    at = rbd.forward_kinematics(model, q)
    return [at[model.body_index(link)] @ np.asarray(surface("plane", link, frame).frame)
            for link, frame in zip(("one", "two"), FRAMES, strict=True)]


def placed(first, second, seed, gap=0.0):
    """q, v of a state in which they are a gap apart: the second is put there along the normal of a first guess."""
    model, constraints = pair(first, second)
    rng = np.random.default_rng((seed, len(first), len(second)))
    for _ in range(100):
        q = model.neutral()
        q[0] = rng.uniform(-1.0, 1.0)
        for joint in ("first", "second"):
            at = model.joint(joint).idx_q
            x = rng.normal(size=4)
            q[at + 3:at + 7] = x / np.linalg.norm(x)
        hollow = "hollow" in first or "hollow" in second
        axis = next((surface(name, "one", None).sizes[0] for name in (first, second) if name == "hollow torus"), 0.0)
        T1, T2 = poses(model, q)
        if hollow:    # inside, near the middle of the room
            t = rng.uniform(-np.pi, np.pi)
            middle = axis * np.array([np.cos(t), np.sin(t), 0.0]) + rng.uniform(-0.1, 0.1, 3)
            T = T1 if "hollow" in first else T2
            goal = T[:3, :3] @ middle * (1.0 if "hollow" in first else -1.0) + T1[:3, 3] - T2[:3, 3]
        else:
            x = rng.normal(size=3)
            normals = {"plane"} & {first, second}
            T = T1 if first == "plane" else T2
            x = (T[:3, 2] * (1.0 if first == "plane" else -1.0) if normals else x / np.linalg.norm(x))
            goal = 0.9 * x + T1[:3, 3] - T2[:3, 3]
        at = model.joint("second").idx_q
        q[at:at + 3] += goal
        try:
            q = rbd.project(model, constraints, q).q
        except rbd.RbdError:
            continue
        if gap:
            A = rbd.constraint_jacobian(model, constraints, q)[0]
            q = model.integrate(q, gap * A / (A @ A))
        return q, rng.normal(size=model.nv)
    raise AssertionError(f"no state of {first}, {second} in which they touch")

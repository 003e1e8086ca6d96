"""Derivatives by every parameter of a model, against an imaginary step of that parameter in a model assembled anew."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import brentq
from support import complex_step as cs
from support.robots import assert_close, random_state
from support.trees import TYPES, mimic_tree, random_tree
from support.varied import STEP, Varied

import rbd_ros as rbd
from rbd_ros.core.model.joint_kinds import PRISMATIC
from rbd_ros.core.model.joints import primitives

CLOSE = 1e-10


def locked_tree():
    """Joints of three kinds locked between moving ones."""
    model = random_tree(11, ["revolute", "universal", "prismatic", "spherical", "revolute", "revolute"])
    turned = np.random.default_rng(2).normal(size=4)
    return rbd.RobotModel.from_description(dataclasses.replace(model.description, locked={
        "joint1": [0.3, -0.4], "joint3": turned / np.linalg.norm(turned), "joint4": 0.7}))


def mimics_of_mimics():
    """Three in a row behind one joint."""
    model = random_tree(7, ["revolute"] * 6)
    followed = {"joint1": ("joint4", 1.7, 0.2), "joint4": ("joint3", -0.6, 0.2), "joint3": ("joint0", 1.3, 0.2)}
    joints = tuple(dataclasses.replace(each, mimic=followed.get(each.name)) for each in model.description.joints)
    return rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=joints))


TREES = {"chain": lambda: random_tree(5, ["revolute"] * 6), "all": lambda: random_tree(1, TYPES),
         "floating": lambda: random_tree(2, TYPES, root="floating"), "mimic": mimic_tree, "locked": locked_tree,
         "mimics of mimics": mimics_of_mimics,
         "screws": lambda: random_tree(3, ["helical", "prismatic", "composite", "cylindrical", "cam", "planar"])}
AXES = {"universal": (2, 3), "spherical_euler": (3, 3), "composite": (3, 3)} | dict.fromkeys(
    ("revolute", "continuous", "prismatic", "helical", "cam", "cylindrical", "planar"), 3)


def parameters(model, rng):
    """Per kind of parameter, its change at every joint and link that has it."""
    moving = {*model.joint_names, *(mimic.name for mimic in model.mimics)}
    specs = [spec for spec in model.description.joints if spec.name in moving]
    screws = {}
    for spec in specs:
        steps = primitives(spec)
        if all(step.kind.screw for step in steps):
            screws[spec.name] = rng.normal(size=(len(steps), 6))
            for step, s in zip(steps, screws[spec.name], strict=True):
                s[:3] *= step.type != PRISMATIC    # one that begins to turn is no screw of finite pitch
            if len(steps) == 1:
                screws[spec.name] = screws[spec.name][0]
    return {
        "gravity": rng.normal(size=3),
        "inertias": {name: rng.normal(size=10) for name in model.body_names},
        "placements": {spec.name: rng.normal(size=6) for spec in model.description.joints},
        "screws": screws,
        "axes": {spec.name: rng.normal(size=AXES[spec.type]) for spec in specs if spec.type in AXES},
        "pitches": {spec.name: rng.normal(size=3) * [step.type != PRISMATIC for step in primitives(spec)]
                    if spec.type == "composite" else rng.normal()
                    for spec in specs if spec.type in ("helical", "revolute", "composite")},
        "advances": {spec.name: rng.normal(size=len(spec.advance)) for spec in specs if spec.type == "cam"},
        "rotor_inertias": {spec.name: rng.normal() for spec in specs},
        "mimics": {mimic.name: rng.normal(size=2) for mimic in model.mimics},
        "external_wrenches": rng.normal(size=(len(model.body_names), 6)),
        "friction": of_friction(model, np.random.default_rng(11))}


def of_friction(model, rng):
    return {name: {what: rng.normal(size=model.joint(name).nv) for what in FRICTION} for name in model.joint_names}


FRICTION = ("damping", "coulomb", "breakaway", "stribeck_velocity", "smoothing", "asymmetry", "viscous_asymmetry",
            "load")


def friction(model, rng):
    """A law whose every term counts at speeds of 1."""
    n = model.nv
    level = rng.uniform(0.5, 2.0, size=n)
    return rbd.Friction(rng.uniform(0.1, 2.0, size=n), level, level + rng.uniform(0.2, 1.0, size=n),
                        rng.uniform(0.5, 2.0, size=n), rng.uniform(0.3, 1.0, size=n),
                        asymmetry=rng.uniform(-0.5, 0.5, size=n), viscous_asymmetry=rng.uniform(-0.1, 0.1, size=n))


def rubbing(model, law, v, tangent, tau=0.0):
    """Its effort on complex numbers, the law varied, from the formula; tau: efforts without friction."""
    d, c, b, w, s, a, e, k = fields = tuple(
        np.broadcast_to(getattr(law, what), (model.nv,)).astype(complex) for what in FRICTION)
    for name, change in tangent.friction.items():
        joint = model.joint(name)
        at = slice(joint.idx_v, joint.idx_v + joint.nv)
        for x, what in zip(fields, FRICTION, strict=True):
            x[at] += STEP * np.asarray(change.get(what, 0.0))
    t = np.tanh(v / s)
    level = c + (b - c) * np.exp(-(v / w) ** 2) + k * np.sqrt(tau**2 + 0.01)
    return d * v + e * v * t + level * t + a * t * t


def relieved(model, law, v, tangent, tau):
    """Efforts without friction, of complex efforts with it: a root, and Newton's step from there."""
    def excess(x):
        return x + rubbing(model, law, v, tangent, x) - tau

    x = np.zeros(model.nv)
    for i in range(model.nv):
        def along(y, i=i):
            return excess(np.where(np.arange(model.nv) == i, y, 0.0))[i].real
        x[i] = brentq(along, -1e3, 1e3, xtol=1e-14)
    rest = excess(x)
    return x - 1j * rest.imag / ((excess(x + STEP) - rest).imag / STEP.imag)


def varied(model, law, q, v, a, tau, F, mask, tangent):
    """∂ of inverse, forward and hybrid dynamics by complex numbers."""
    other = Varied(model, tangent)
    Q = cs.tangents(model, q)
    step = [q + 0j, v + 0j, a + 0j, tau + 0j]
    for i, (name, along) in enumerate((("q", Q), ("v", None), ("a", None), ("tau", None))):
        change = getattr(tangent, name)
        if change is not None:
            step[i] = step[i] + STEP * (change if along is None else along @ change)
    q, v, a, tau = step
    zero = np.zeros(model.nv)
    W = other.wrenches(F + STEP * (0.0 if tangent.external_wrenches is None else tangent.external_wrenches))

    def inverse(v, a, wrench=None):
        return cs.inverse_dynamics(model, q, v, a, wrench, other.block)

    weight = inverse(zero, zero)
    M = np.transpose([inverse(zero, e) - weight for e in np.eye(model.nv)])
    effort = inverse(v, a, W)
    out, left = [effort + rubbing(model, law, v, tangent, effort)], relieved(model, law, v, tangent, tau)
    for held in (np.zeros(model.nv, dtype=bool), mask):
        start = np.where(held, a, 0.0)
        bias = inverse(v, start, W)
        free = ~held
        change = np.linalg.solve(M[np.ix_(free, free)], (left - bias)[free])
        sought = np.array(bias)
        sought[free] = change
        sought[held] += M[np.ix_(held, free)] @ change
        out.append(np.where(held, sought + rubbing(model, law, v, tangent, sought), sought))
    return [x.imag / STEP.imag for x in out]


def directional(model, law, q, v, a, tau, F, mask, tangent):
    return [rbd.inverse_dynamics_directional(model, q, v, a, tangent, F, friction=law),
            rbd.forward_dynamics_directional(model, q, v, tau, tangent, F, friction=law),
            rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, tangent, F, friction=law)]


def case(name):
    model = TREES[name]()
    rng = np.random.default_rng(sorted(TREES).index(name))
    q, v, a = random_state(model, 3)
    law = dataclasses.replace(friction(model, np.random.default_rng(9)), load=rng.uniform(0.0, 0.9, size=model.nv))
    return model, (law, q, v, a, rng.normal(size=model.nv), rng.normal(size=(len(model.body_names), 6)),
                   rng.random(model.nv) < 0.5), rng


@pytest.mark.parametrize("name", TREES)
def test_every_parameter(name):
    """One kind of parameter after another, then all of them and the state at once."""
    model, given, rng = case(name)
    changes = parameters(model, rng)
    tangents = [rbd.Tangent(**{kind: change}) for kind, change in changes.items()]
    everything = {**changes, **dict(zip(("q", "v", "a", "tau"), rng.normal(size=(4, model.nv)), strict=True))}
    everything["screws"] = {}    # those of an axis that changes too are another derivative of the same
    tangents.append(rbd.Tangent(**everything))
    together = directional(model, *given, tangents)
    for i, tangent in enumerate(tangents):
        expected = varied(model, *given, tangent)
        for one, many, want in zip(directional(model, *given, tangent), together, expected, strict=True):
            assert_close(one, want, CLOSE, [*changes, "everything"][i])
            assert_close(many[i], one, 1e-13)

"""States beyond what floating point numbers hold: every public function says so, and none returns a silent NaN."""
from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest
from support.closed import closed
from support.collisions import capsules
from support.elastic_arm import DRIVES
from support.samples import samples
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]
ARRAYS = {"q": "q", "q0": "q", "q1": "q", "v": "v", "a": "v", "tau": "v", "dv": "v", "jerk": "v", "snap": "v",
          "effort": "v"}
MODELS = {"iiwa": lambda: rbd.sample("iiwa").with_(damping=1.0, friction=1.0),
          "floating": lambda: rbd.sample("biped", root="floating"),
          "every joint": lambda: random_tree(4, TYPES), "mimic": mimic_tree,
          "sliders": lambda: random_tree(1, ["prismatic"] * 3 + ["revolute"])}
RECIPES = {    # further arguments
    "body": lambda model: model.body_names[-1], "prescribed": lambda model: model.joint_names[1:],
    "pose": lambda model: rbd.forward_kinematics(model, model.random_configuration(6))[-1],
    "direction": lambda model: np.linspace(0.3, 1.1, 6), "contacts": lambda model: [rbd.CompliantContact(
        rbd.Plane("world"), rbd.Sphere(model.body_names[-1], 10.0), stiffness=1e3, dissipation=0.1)],
    "actuated": lambda model: model.joint_names, "covariance": lambda model: np.ones(model.nv),
    "tangent": lambda model: rbd.Tangent(
        np.ones(model.nv), np.ones(model.nv), np.ones(model.nv), np.ones(model.nv))}
HIGHER = {"inverse_dynamics_time_derivatives", "forward_dynamics_time_derivatives"}
# what has no state: makers, readers and lists
OTHERS = {"box_contacts", "closest_points", "compile_all", "contact_accelerations", "contact_rates", "contact_twist",
          "from_screws", "load_actuation", "load_constraints", "load_contacts", "load_urdf", "sample",
          "sample_constraints", "sample_names", "sample_path", "smoothed_path", "surfaces_of"}
FUNCTIONS = [name for name in rbd.__all__ if inspect.isfunction(getattr(rbd, name)) and name not in OTHERS]
HUGE = (1e100, 1e160, 1e200, 1e308)
SIZES = HUGE if samples(4, 2) == 4 else HUGE[::3]


made = functools.cache(lambda kind: MODELS[kind]())


def first(name):
    return next(iter(inspect.signature(getattr(rbd, name)).parameters))


@functools.cache
def needed(name):
    parameters = list(inspect.signature(getattr(rbd, name)).parameters.values())[1:]
    return [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


PLANNED = ["effort_energy", "optimize_motion", "plan_path", "time_optimal", "tracking_gains"]    # of motions
# of no state
LEARNT = ["base_parameters", "batch", "c_source", "casadi_function", "contact_thresholds", "crocoddyl_model",
          "cuda_batch", "drive_gains", "excitation", "excitation_poses", "float_test", "identify", "jax_function",
          "joint_friction", "sampled_pairs", "specialize", "spatial_inertias", "torch_function", "touched_body"]
IN_TIME = ["simulate"]    # diverges at a time: simulation/test_simulate.py
DEFINED = {"articulated_bodies": ("mimic joints", ["mimic"]),    # what says so where it is not: of these models
           "operational_space_inertia": ("directions", ["mimic", "sliders"])}
FREE = [name for name in FUNCTIONS
        if first(name) == "model" and "constraints" not in needed(name) and name not in (
            *PLANNED, *LEARNT, *IN_TIME)]
CONSTRAINED = [name for name in FUNCTIONS if "constraints" in needed(name)]
MOVING = [name for name in FUNCTIONS if first(name) == "actuation"]


def numbers(result):
    """All numbers that a function returns."""
    if isinstance(result, rbd.ExternalWrench):    # infinite where a pose hides a direction
        return [result.wrench, result.residual]
    if isinstance(result, tuple):
        return [x for part in result for x in numbers(part)]
    return [np.asarray(result)] if isinstance(result, (np.ndarray, float, int)) else []


def huge_states(given, size, seed):
    """The arguments with huge numbers in one of them: everywhere, or at one place; of both signs."""
    rng = np.random.default_rng(seed)
    for name in [name for name in given if name in ARRAYS or name in ("efforts", "multipliers")
                 or name.startswith("motor_")]:
        for at in [slice(None), *rng.choice(given[name].size, min(given[name].size, 3), replace=False)]:
            changed = given[name].copy().reshape(-1)
            changed[at] = size * rng.choice([-1.0, 1.0], size=changed[at].shape)
            yield given | {name: changed.reshape(given[name].shape)}


def check(call, said, *arguments):
    """Finite numbers, or an error of ours, of a length one can read."""
    try:
        result = call(*arguments)
    except rbd.RbdError as error:
        said.append(str(error))
        assert len(str(error)) < 600, str(error)
        return
    assert all(np.isfinite(x).all() for x in numbers(result)), result


def states_of(model, names):
    rng = np.random.default_rng(5)
    return {name: model.random_configuration(rng) if ARRAYS[name] == "q" else rng.normal(size=model.nv)
            for name in names}


def test_every_function_is_looked_at():
    looked_at = {*FREE, *CONSTRAINED, *MOVING, *PLANNED, *LEARNT, *IN_TIME}
    assert not set(FUNCTIONS) - looked_at, "a new function: give it its place here"


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", FREE)
def test_a_huge_state_of_a_tree(name, kind):
    model, function, said = made(kind), getattr(rbd, name), []
    given = {p: RECIPES[p](model) for p in needed(name) if p in RECIPES} | states_of(
        model, [p for p in needed(name) if p in ARRAYS])
    assert list(given) and set(given) == set(needed(name))
    more = list(states_of(model, ["a", "tau"]).values()) if name in HIGHER else []

    def call(values):
        return function(model, *(values[p] for p in needed(name)), *more)

    check(call, said, given)
    reason, undefined = DEFINED.get(name, ("", []))
    assert said == [] if kind not in undefined else reason in said[0]
    for size in SIZES:
        for changed in huge_states(given, size, 1):
            check(call, said, changed)
            check(call, said, {p: np.stack([given[p], x, x]) if p in ARRAYS else x for p, x in changed.items()})
    for size in HUGE[2:] if more else ():
        check(function, said, model, *(given[p] for p in needed(name)), size * more[0], more[1])


CLEAR = [("joint_wrenches", "v", "joint_wrenches"), ("body_momenta", "v", "velocities"),
         ("inverse_dynamics", "v", "effort"), ("bias_effort", "v", "effort"), ("forward_dynamics", "v", "acceleration"),
         ("hybrid_dynamics", "v", "effort"), ("kinetic_energy", "v", "kinetic_energy"),
         ("coriolis_matrix", "v", "coriolis_matrix"), ("body_velocities", "v", "velocities"),
         ("body_accelerations", "v", "accelerations"), ("inertial_regressor", "v", "regressor"),
         ("inverse_dynamics_derivatives", "v", "derivatives"), ("forward_dynamics_derivatives", "v", "derivatives"),
         ("inverse_dynamics_time_derivatives", "v", "effort"), ("mass_matrix", "q", "mass_matrix"),
         ("potential_energy", "q", "potential_energy"), ("forward_kinematics", "q", "poses"),
         ("forward_dynamics", "q", "result"), ("center_of_mass", "q", "center_of_mass")]


@pytest.mark.parametrize(("name", "parameter", "result"), CLEAR, ids=lambda word: word)
def test_the_error_names_result_and_state(name, parameter, result):
    model = MODELS["sliders"]()
    given = {p: RECIPES[p](model) for p in needed(name) if p in RECIPES} | states_of(
        model, [p for p in needed(name) if p in ARRAYS])
    given[parameter] = np.full_like(given[parameter], 1.7e308)
    function = getattr(rbd, name)
    with pytest.raises(rbd.RbdError, match=rf"^{result}.* would not be finite: .*floating point numbers.*"
                                           rf"{parameter} up to 1\.7e\+308"):
        function(model, **given)
    if name == "forward_dynamics" and parameter == "q":
        return
    batch = {p: np.stack([0.0 * x, 0.0 * x, x]) if p in ARRAYS else x for p, x in given.items()}
    with pytest.raises(rbd.RbdError, match=rf"^{result}.* of state 2 would"):
        function(model, **batch)


@pytest.mark.parametrize("kind", ["iiwa", "floating"])
def test_integrate_and_difference(kind):
    model, said = MODELS[kind](), []
    q = model.random_configuration(0)
    for size in HUGE:
        for changed in huge_states({"q": q, "dv": np.ones(model.nv)}, size, 2):
            check(model.integrate, said, changed["q"], changed["dv"])
            check(model.integrate, said, np.stack([q, changed["q"]]), changed["dv"])
        for changed in huge_states({"q0": q, "q1": q}, size, 2):
            check(model.difference, said, changed["q0"], changed["q1"])
    with pytest.raises(rbd.RbdError, match=r"^difference\["):
        model.difference(np.full(model.nq, 1.7e308) if kind == "iiwa" else np.append([1.7e308] * 3, q[3:]),
                         np.full(model.nq, -1.7e308) if kind == "iiwa" else np.append([-1.7e308] * 3, q[3:]))


@pytest.mark.parametrize("robot", ["five_bar", "stewart", "biped", "ball_on_plate"])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_a_huge_state_of_a_mechanism(name, robot):
    model, constraints, q = closed(robot)
    function, said = getattr(rbd, name), []
    names = [p for p in needed(name) if p in ARRAYS] + (["v"] if name == "project" else [])
    given = states_of(model, names) | {"q": q}
    given["v"] = 0.0 * given.get("v", np.zeros(model.nv))
    if "a" in given:
        given["a"] = 0.0 * given["a"]
    given = {p: x for p, x in given.items() if p in names}
    if "multipliers" in needed(name):
        given["multipliers"] = np.ones(constraints.size)

    def call(values):
        rest = [values[p] if p in values else RECIPES[p](model) for p in needed(name) if p != "constraints"]
        return function(model, constraints, *rest, *([values["v"]] if name == "project" else []))

    for size in HUGE:
        for changed in huge_states(given, size, 3):
            check(call, said, changed)
            if name != "anchored":
                check(call, said, {p: np.stack([given[p], x]) for p, x in changed.items()})
            if name == "constrained_forward_dynamics":
                check(lambda values: function(model, constraints, **values, damping=1e-3), said, changed)
    assert said or "v" not in given    # angles alone are no lengths, and may be as large as they like


@pytest.mark.parametrize("name", MOVING)
def test_a_huge_state_of_an_elastic_arm(name):
    model = rbd.sample("two_link").with_(damping=1.0, friction=1.0)
    actuation, said, rng = rbd.load_actuation(DRIVES, model), [], np.random.default_rng(0)
    given = states_of(model, [p for p in needed(name) if p in ARRAYS])
    if name == "motor_reference":
        given["efforts"] = rng.normal(size=(3, 2))
    if name == "feedback_linearization":
        given |= {"motor_position": np.array([0.0, 0.0, 300.0]), "motor_velocity": np.zeros(3)}
    gains = rbd.FeedbackGains.placed(actuation, 20.0) if "gains" in needed(name) else None
    extra = {"gains": gains, "reference": np.zeros((5, 2))}

    def call(values):
        result = getattr(rbd, name)(actuation, **{p: values.get(p, extra.get(p)) for p in needed(name)})
        return tuple(getattr(result, p) for p in result._fields if p != "stiffness") if hasattr(
            result, "_fields") else result

    for size in HUGE:
        for changed in huge_states(given, size, 4):
            check(call, said, changed)
    assert said


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("name", PLANNED)
def test_a_huge_motion(name, size):
    model, said = rbd.sample("iiwa").with_(damping=1.0, friction=1.0), []
    free = rbd.MotionLimits(*[np.inf if limit != "position_lower" else -np.inf for limit in (
        "position_lower", "position_upper", "velocity", "acceleration", "jerk", "effort", "effort_rate")])
    q = model.random_configuration(np.random.default_rng(2))
    collisions = None
    if name == "plan_path":
        pytest.importorskip("coal")
        collisions = rbd.CollisionModel.from_urdf(capsules("iiwa"), model)
    for limits in (None, free):
        for goal in (np.full(7, size), q + size * (np.arange(7) == 3), -size * q):
            def fast(goal=goal, limits=limits):
                return rbd.time_optimal(model, [q, 0 * q, goal], limits=limits)(0.1)

            def cheap(start, goal=goal, limits=limits):
                return rbd.optimize_motion(model, start, goal, limits=limits, time_limit=1.0)(0.1)

            def around(goal=goal, limits=limits):
                return rbd.plan_path(model, collisions, q, goal, limits=limits, iterations=10).points

            def followed(goal=goal):
                motion = rbd.SplineMotion(np.repeat([q, goal], 6, axis=0), 1.0)
                return rbd.tracking_gains(model, motion, np.ones(14), np.ones(7), period=0.05).gains

            if name == "time_optimal":
                check(fast, said)
            elif name == "plan_path":
                check(around, said)
            elif name == "tracking_gains":
                check(followed, said)
            else:
                check(cheap, said, q)
                check(cheap, said, rbd.Reference(0 * q, goal, q))
    assert said

"""Every public function that takes a model, given wrong arrays, names or models: an error that names the input."""

import inspect
import math
import warnings

import numpy as np
import pytest

import rbd_ros as rbd

with warnings.catch_warnings():
    warnings.simplefilter("ignore", rbd.RbdWarning)    # published inertias
    MODEL = rbd.sample("iiwa").with_(damping=1.0)
FLOATING = rbd.sample("two_link", root="floating")
STATES = {"q": "q", "q0": "q", "q1": "q", "v": "v", "a": "v", "tau": "v", "dv": "v"}
NAMES = ("body", "prescribed")


def takes_model(name):
    function = getattr(rbd, name)
    return inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), None) == "model"


def required(function):
    return [p.name for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "model"]


def valid(model, name):
    """A valid value for a parameter of this name."""
    if name in STATES:
        rates = np.linspace(0.1, 0.5, model.nv)
        return model.integrate(model.neutral(), rates) if STATES[name] == "q" else rates    # neutral is singular
    return model.body_names[-1] if name == "body" else (model.joint_names[-1],)


FUNCTIONS = [name for name in rbd.__all__ if takes_model(name)
             and all(p in STATES or p in NAMES for p in required(getattr(rbd, name)))]
CASES = [(name, p) for name in FUNCTIONS for p in required(getattr(rbd, name)) if p in STATES]
OF_STATES = [name for name in FUNCTIONS if any(p in STATES for p in required(getattr(rbd, name)))
             and name != "simulate"]    # its times are those of all states: simulation/test_simulate.py
WITH_WRENCHES = [name for name in FUNCTIONS if "external_wrenches" in inspect.signature(getattr(rbd, name)).parameters]


def call(name, model=MODEL, **changed):
    function = getattr(rbd, name)
    return function(model, **({p: valid(model, p) for p in required(function)} | changed))


def test_there_is_something_to_test():
    assert {"inverse_dynamics", "forward_dynamics", "mass_matrix", "jacobian", "kinetic_energy"} <= set(FUNCTIONS)


def wrong_states(size):
    one = np.zeros(size)
    nan, infinite = one.copy(), one.copy()
    nan[1], infinite[1] = math.nan, -math.inf
    return {
        "nan": nan, "inf": infinite, "nan in a batch": np.stack([one, nan]), "short": one[:-1],
        "long": np.zeros(size + 1), "empty": np.empty(0), "empty list": [], "number": 0.0, "none": None,
        "text": "zero", "words": ["a"] * size, "dict": {"joint_1": 0.0},
        "three axes": np.zeros((1, 1, size)), "transposed": np.zeros((size, 2)), "ragged": [[0.0] * size, [0.0]],
        "complex": one.astype(complex), "object": np.array([object()] * size), "set": set(range(size)),
        "wide": np.zeros((2, size + 1)),
    }


@pytest.mark.parametrize("wrong", wrong_states(7))
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_wrong_state_is_named(name, parameter, wrong):
    size = MODEL.nq if STATES[parameter] == "q" else MODEL.nv
    with pytest.raises(rbd.RbdError) as caught:
        call(name, **{parameter: wrong_states(size)[wrong]})
    message = str(caught.value)
    assert message.startswith(parameter), message
    if wrong in ("nan", "inf"):
        assert "joint_2" in message


@pytest.mark.parametrize(("name", "parameter"), [case for case in CASES if STATES[case[1]] == "q"])
@pytest.mark.parametrize("quaternion", [(0, 0, 0, 0), (0, 0, 0, 2), (1, 1, 1, 1)])
def test_a_quaternion_that_is_none_is_named(name, parameter, quaternion):
    q = FLOATING.neutral()
    q[3:7] = quaternion
    with pytest.raises(rbd.RbdError, match=rf"{parameter}.*root_joint.*quaternion"):
        call(name, FLOATING, **{parameter: q})
    with pytest.raises(rbd.RbdError, match=rf"{parameter}.*root_joint.*quaternion"):
        call(name, FLOATING, **{parameter: np.stack([FLOATING.neutral(), q])})


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if len(required(getattr(rbd, name))) > 1
                                  and "body" not in required(getattr(rbd, name))])
def test_batches_of_different_length_are_refused(name):
    first, second = [p for p in required(getattr(rbd, name)) if p in STATES][:2]
    with pytest.raises(rbd.RbdError, match="different length"):
        call(name, **{first: np.stack([valid(MODEL, first)] * 2), second: np.stack([valid(MODEL, second)] * 3)})


@pytest.mark.parametrize("model", [None, "iiwa", 3, {}, MODEL.description], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_something_else_than_a_model_is_refused(name, model):
    function = getattr(rbd, name)
    with pytest.raises(rbd.RbdError, match=rf"model.*got {type(model).__name__}"):
        function(model, **{p: valid(MODEL, p) for p in required(function)})


@pytest.mark.parametrize(("wrenches", "words"), [
    ({"link_9": np.zeros(6)}, ["link_9", "link_7"]), ({"link_7": np.zeros(3)}, ["link_7", "(3,)", "(6,)"]),
    ({"link_7": [0, 0, 0, 0, 0, math.nan]}, ["link_7", "finite"]), ({"link_7": "x" * 6}, ["link_7"]),
    ({"link_7": None}, ["link_7"]), (np.zeros(6), ["external_wrenches", "(8, 6)"]), ("up", ["external_wrenches"]),
    (np.full((8, 6), math.inf), ["link_0", "finite"]), (np.zeros((2, 8, 6)), ["external_wrenches", "(2, 8, 6)"]),
    ({7: np.zeros(6)}, ["7", "link_7"]), ([[0.0] * 6, [0.0]], ["external_wrenches"]),
    ({"link_7": np.zeros(6, complex)}, ["link_7", "real"]), (np.zeros((8, 6), complex), ["external_wrenches", "real"]),
], ids=range(13))
@pytest.mark.parametrize("name", WITH_WRENCHES)
def test_wrong_wrenches_are_named(name, wrenches, words):
    with pytest.raises(rbd.RbdError) as caught:
        call(name, external_wrenches=wrenches)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("name", ["link7", "", None, 3, "joint_1"])
def test_wrong_names_are_answered_with_the_valid_ones(name):
    for ask in (MODEL.body_index, lambda name: rbd.jacobian(MODEL, MODEL.neutral(), name),
                lambda name: MODEL.with_body(name, mass=1.0)):
        with pytest.raises(rbd.RbdError, match=f"'{name}'.*link_7"):
            ask(name)
    if name != "joint_1":
        with pytest.raises(rbd.RbdError, match=f"'{name}'.*joint_7"):
            MODEL.joint(name)


@pytest.mark.parametrize("frame", ["World", "", None, 0])
def test_a_wrong_frame(frame):
    with pytest.raises(rbd.RbdError, match=r"frame.*body, world, aligned"):
        rbd.jacobian(MODEL, MODEL.neutral(), "link_7", frame)


@pytest.mark.parametrize(("change", "words"), [
    (lambda: MODEL.with_(dampin=1.0), ["dampin", "damping"]),
    (lambda: MODEL.with_(damping=np.zeros(3)), ["damping", "7"]),
    (lambda: MODEL.with_(damping="x"), ["damping", "'x'"]), (lambda: MODEL.with_(damping=math.inf), ["damping", "inf"]),
    (lambda: MODEL.with_(friction=-1.0), ["friction", "negative"]),
    (lambda: MODEL.with_(effort_limit=math.nan), ["effort_limit", "nan"]),
    (lambda: MODEL.with_(gravity=3.0), ["gravity", "three"]), (lambda: MODEL.with_(gravity="x"), ["gravity", "'x'"]),
    (lambda: MODEL.with_body("link_7", mass="x"), ["link_7", "mass", "'x'"]),
    (lambda: MODEL.with_body("link_7", com=[1, 2]), ["link_7", "com", "[1, 2]"]),
    (lambda: MODEL.with_body("link_7", inertia=np.eye(2)), ["link_7", "inertia", "(3, 3)"]),
    (lambda: MODEL.with_body("link_7", inertia=np.triu(np.ones((3, 3)))), ["symmetric"]),
    (lambda: MODEL.with_scaled_masses(0), ["mass factor", "positive"]),
    (lambda: MODEL.with_scaled_masses("x"), ["mass factor", "'x'"]),
    (lambda: rbd.Inertia("x", np.zeros(3), np.eye(3)), ["mass", "'x'"]),
    (lambda: rbd.Inertia(1.0, np.zeros(2), np.eye(3)), ["centre of mass", "three"]),
    (lambda: rbd.Inertia(1.0, np.zeros(3), None), ["inertia matrix", "None"]),
], ids=range(17))
def test_wrong_changes_are_named(change, words):
    with pytest.raises(rbd.RbdError) as caught:
        change()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def built(**changes):
    links = {"a": rbd.Inertia.zero(), "b": rbd.Inertia(1.0, np.zeros(3), np.eye(3))}
    joint = {"name": "j", "type": "revolute", "parent": "a", "child": "b"} | changes
    return rbd.RobotModel.from_description(rbd.Description("m", links, (rbd.JointSpec(**joint),)))


@pytest.mark.parametrize(("changes", "words"), [
    ({"type": "hinge"}, ["j", "hinge", "revolute"]), ({"parent": "c"}, ["j", "'c'"]),
    ({"axis": (0, 0, 0)}, ["j", "zero"]), ({"axis": "z"}, ["j", "axis", "'z'"]),
    ({"axis": (0, 0, 1e300)}, ["j", "axis"]), ({"rotation": np.ones((3, 3))}, ["j", "rotation"]),
    ({"rotation": -np.eye(3)}, ["j", "rotation"]), ({"position": (0, 0)}, ["j", "position"]),
    ({"position": (0, 0, math.nan)}, ["j", "position", "nan"]), ({"lower": 1.0, "upper": 0.0}, ["j", "lower", "upper"]),
    ({"effort": "x"}, ["j", "effort", "'x'"]), ({"damping": math.inf}, ["j", "damping", "inf"]),
    ({"rotor_inertia": [1, 2]}, ["j", "rotor_inertia"]), ({"type": "helical", "pitch": math.nan}, ["j", "pitch"]),
    ({"type": "composite"}, ["j", "parts"]), ({"type": "universal", "axes": ((1, 0, 0),)}, ["j", "axes"]),
    ({"mimic": ("j", 1.0, 0.0)}, ["j", "cycle"]), ({"mimic": ("k", 1.0, 0.0)}, ["j", "'k'"]),
    ({"mimic": ("j", math.nan, 0.0)}, ["j"]),
], ids=range(19))
def test_wrong_joints_are_named(changes, words):
    assert built().nv == 1
    with pytest.raises(rbd.RbdError) as caught:
        built(**changes)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


SAME = {
    "read-only": frozen, "strided": lambda x: np.repeat(x, 2)[::2], "reversed": lambda x: x[::-1].copy()[::-1],
    "list": list, "tuple": tuple, "column of a matrix": lambda x: np.stack([x, x], axis=1)[:, 0],
    "batch of one": lambda x: x[None], "read-only batch": lambda x: frozen(x[None]),
    "Fortran batch": lambda x: np.asfortranarray(np.stack([x, x])),
    "broadcast": lambda x: np.broadcast_to(x, (3, x.size)),
    "longdouble": lambda x: x.astype(np.longdouble), "big-endian": lambda x: x.astype(">f8"),
    "masked": lambda x: np.ma.array(x), "objects": lambda x: x.astype(object),
}


@pytest.mark.parametrize("kind", SAME)
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_numbers_in_any_container_are_taken(name, parameter, kind):
    expected, found = call(name), call(name, **{parameter: SAME[kind](valid(MODEL, parameter))})
    for left, right in zip(arrays(expected), arrays(found), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        assert right.shape[right.ndim - left.ndim:] == left.shape
        np.testing.assert_allclose(right, np.broadcast_to(left, right.shape), rtol=1e-12, atol=1e-13)


def arrays(result):
    """All arrays of a result, those of its parts too."""
    return [array for part in result for array in arrays(part)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", OF_STATES)
def test_a_batch_is_its_states_one_by_one(name):
    rng = np.random.default_rng(2)
    states = {p: np.stack([MODEL.random_configuration(rng) if STATES[p] == "q" else rng.normal(size=MODEL.nv)
                           for _ in range(4)]) for p in required(getattr(rbd, name)) if p in STATES}
    batch = arrays(call(name, **states))
    for k in range(4):
        for part, one in zip(batch, arrays(call(name, **{p: x[k] for p, x in states.items()})), strict=True):
            np.testing.assert_allclose(part[k], one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OF_STATES)
def test_an_empty_batch_gives_an_empty_result(name):
    states = {p: np.empty((0, valid(MODEL, p).size)) for p in required(getattr(rbd, name)) if p in STATES}
    assert all(len(array) == 0 for array in arrays(call(name, **states)))


@pytest.mark.skipif(not rbd.COMPILED, reason="plain Python divides by the number of coordinates")
@pytest.mark.parametrize("name", ["mass_matrix", "gravity_effort", "inverse_dynamics", "forward_dynamics", "jacobian",
                                  "forward_kinematics", "center_of_mass"])
def test_a_robot_that_cannot_move(name):
    model = rbd.sample("two_link", locked={"shoulder": 0.1, "elbow": 0.2})
    if name == "center_of_mass":
        with pytest.raises(rbd.RbdError, match=r"two_link.*mass"):
            call(name, model)
    else:
        assert all(np.isfinite(array).all() for array in arrays(call(name, model)))


OPTIONS = {
    "root": ({"root": "flying"}, "flying", "floating"),
    "mimic": ({"mimic": "maybe"}, "maybe", "project"),
    "gravity text": ({"gravity": "down"}, "gravity", "down", "three"),
    "gravity short": ({"gravity": (0, -9.81)}, "gravity", "three"),
    "gravity nan": ({"gravity": (0, 0, math.nan)}, "gravity", "nan"),
    "gravity none": ({"gravity": None}, "gravity", "None"),
    "locked name": ({"locked": {"joint_0": 0}}, "joint_0", "did you mean 'joint_"),
    "locked value": ({"locked": {"joint_1": "x"}}, "joint_1", "'x'"),
    "locked nan": ({"locked": {"joint_1": math.nan}}, "joint_1", "nan"),
    "locked two": ({"locked": {"joint_1": [1, 2]}}, "joint_1", "[1, 2]"),
    "locked list": ({"locked": ["joint_1"]}, "locked", "list"),
    "rotor name": ({"rotor_inertia": {"joint_0": 0}}, "joint_0", "did you mean 'joint_"),
    "rotor value": ({"rotor_inertia": {"joint_1": "x"}}, "joint_1", "rotor_inertia", "'x'"),
    "rotor negative": ({"rotor_inertia": {"joint_1": -1}}, "joint_1", "rotor_inertia", "negative"),
    "rotor infinite": ({"rotor_inertia": {"joint_1": math.inf}}, "joint_1", "rotor_inertia", "inf"),
    "rotor list": ({"rotor_inertia": [1.0]}, "rotor_inertia", "list"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_wrong_options_are_named(case):
    options, *words = OPTIONS[case]
    with pytest.raises(rbd.RbdError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        rbd.sample("iiwa", **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_joint_with_the_name_of_the_floating_root_is_refused():
    text = rbd.sample_path("two_link").read_text().replace('"shoulder"', '"root_joint"')
    assert rbd.load_urdf(text).nv == 2
    with pytest.raises(rbd.RbdError, match="root_joint"):
        rbd.load_urdf(text, root="floating")


def test_samples_are_where_they_say():
    assert all(rbd.sample_path(name).is_file() for name in rbd.sample_names())
    with pytest.raises(rbd.RbdError, match="two_link"):
        rbd.sample("twolink")

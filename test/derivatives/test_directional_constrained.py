"""Derivatives of constrained dynamics by every parameter, against an imaginary step through the dense equations."""

import dataclasses

import numpy as np
import pytest
from support import complex_step as cs
from support.closed import closed, consistent_states
from support.robots import assert_close, random_state
from support.trees import mimic_tree, random_tree
from support.varied import STEP, Varied, moved, pose
from test_directional_parameters import friction, parameters, rubbing

import rbd_ros as rbd
from rbd_ros.core.model import constraint_block as cb

CLOSE = 1e-10


def loop_tree(kinds, **options):
    """A tree whose last link is held to the first by three axes, a tool to the world, and two joints by a gear; the
    first random one whose rows are well apart.
    """
    for seed in range(30):
        model = random_tree(seed, kinds, **options)
        rng = np.random.default_rng(seed)
        frames = list(rng.normal(scale=0.3, size=(4, 2, 3)))
        constraints = rbd.ConstraintSet([
            rbd.LoopClosure("base", f"link{len(kinds) - 1}", ["rx", "x", "z"], *frames[:2], name="loop"),
            rbd.FixedContact("tool3", frames[2], kind="point", world=frames[3], name="contact"),
            rbd.JointCoupling({"joint0": 1.0, "joint2": [-2.0, 0.5, 0.3]}, 0.2, name="gear")])
        if np.linalg.cond(rbd.constraint_jacobian(model, constraints, random_state(model, 3)[0])) < 100.0:
            return model, constraints
    raise AssertionError("no such tree")


def mimic_loop():
    model = mimic_tree()
    rng = np.random.default_rng(3)
    return model, rbd.ConstraintSet([
        rbd.LoopClosure("base", "link6", ["x", "ry"], *rng.normal(size=(2, 2, 3)), name="loop"),
        rbd.JointCoupling({"joint6": 1.0, "joint1": [-2.0, 0.5, 0.3]}, 0.2, name="gear")])


MANY = ["revolute", "universal", "helical", "composite", "planar", "cam", "spherical", "cylindrical", "revolute"]
MECHANISMS = {"fixed": lambda: loop_tree(MANY), "floating": lambda: loop_tree(MANY[:5], root="floating"),
              "mimic": mimic_loop,
              "locked": lambda: loop_tree(["revolute"] * 7, root="floating", locked={"joint3": 0.4, "joint5": -0.8})}


def of_constraints(constraints, rng):
    """Changes of frames and coefficients."""
    closing = [name for name in constraints.names if not isinstance(constraints[name], rbd.JointCoupling)]
    gears = [name for name in constraints.names if name not in closing]
    return {"predecessor_frames": {name: rng.normal(size=6) for name in closing},
            "successor_frames": {name: rng.normal(size=6) for name in closing},
            "constants": {name: rng.normal() for name in gears},
            "terms": {name: {joint: rng.normal(size=len(x)) for joint, x in constraints[name].terms.items()}
                      for name in gears}}


def packed(model, constraints, tangent, links):
    """The packed constraints on complex numbers, from the declared frames."""
    C = constraints.bound(model).block.astype(complex)
    o = cb.START
    for name in constraints.names:
        item = constraints[name]
        if isinstance(item, rbd.JointCoupling):
            C[o + cb.CONSTANT] += STEP * tangent.constants.get(name, 0.0)
            at = o + cb.FIRST_TERM
            for joint, x in item.terms.items():
                more = np.atleast_1d(tangent.terms.get(name, {}).get(joint, np.zeros(len(x))))
                C[at + cb.TERM_FIRST:at + cb.TERM_FIRST + len(x)] += STEP * more
                if joint in tangent.mimics:    # it follows an independent one
                    C[at + cb.TERM_RATIO] += STEP * tangent.mimics[joint][0]
                    C[at + cb.TERM_OFFSET] += STEP * tangent.mimics[joint][1]
                at += cb.TERM_FIRST + len(x)
        else:
            ends = ((None, item.world), (item.link, item.frame)) if isinstance(item, rbd.FixedContact) else (
                (item.predecessor, item.predecessor_frame), (item.successor, item.successor_frame))
            changes = (tangent.predecessor_frames, tangent.successor_frames)
            for (link, frame), change, at in zip(ends, changes, (cb.ROTATION_1, cb.ROTATION_2), strict=True):
                T = moved(pose(frame[:3, :3], frame[:3, 3]), change.get(name, np.zeros(6)))
                T = links[link][1] @ T if link in links else T
                C[o + at:o + at + 9], C[o + at + 9:o + at + 12] = T[:3, :3].ravel(), T[:3, 3]
        o += int(C[o + cb.SIZE].real)
    return C


def equations(model, law, constraints, given, tangent):
    """Complex M, ID(q, v, a), A, A a + Ȧq̇ and a, tau, of everything moved along a tangent."""
    q, v, a, tau, F = given
    other = Varied(model, tangent)
    step = []
    for x, change, along in ((q, tangent.q, cs.tangents(model, q)), (v, tangent.v, np.eye(model.nv)),
                             (a, tangent.a, np.eye(model.nv)), (tau, tangent.tau, np.eye(model.nv))):
        step.append(x + STEP * along @ (np.zeros(model.nv) if change is None else change))
    q, v, a, tau = step
    W = other.wrenches(F + STEP * (0.0 if tangent.external_wrenches is None else tangent.external_wrenches))
    zero = np.zeros(model.nv)

    def inverse(v, a, wrench=None):
        return cs.inverse_dynamics(model, q, v, a, wrench, other.block)

    weight = inverse(zero, zero)
    M = np.transpose([inverse(zero, e) - weight for e in np.eye(model.nv)])
    C = packed(model, constraints, tangent, other.links)
    m = constraints.size
    A, f, b = np.zeros((m, model.nv), dtype=complex), np.zeros(m, dtype=complex), np.zeros(m, dtype=complex)
    arrays = [np.asarray(x, dtype=complex) for x in (other.block, C, q, v, zero)]
    cs.packed_rows(*arrays, np.zeros(cs.kinematics.SIZE * cs.nodes(model), dtype=complex), A.reshape(-1), f, b)
    return M, inverse(v, zero, W) + rubbing(model, law, v, tangent), A, b, a, tau


def hybrid(terms, held):
    """Accelerations, efforts and multipliers, by the KKT system of independent rows."""
    M, bias, A, gamma, a, tau = terms
    n, m = M.shape[0], len(A)
    S = np.diag(1.0 - held)
    # unknown: accelerations, efforts, λ
    K = np.block([[M, -np.eye(n), -A.T], [A, np.zeros((m, n + m))], [np.diag(held * 1.0), S, np.zeros((n, m))]])
    x = np.linalg.solve(K, np.concatenate([-bias, -gamma, np.where(held, a, tau)]))
    return x[:n], x[n:2 * n], x[2 * n:]


def least(B, r):
    """The least solution of B x = r for more unknowns than independent equations, all rows independent."""
    return B.T @ np.linalg.solve(B @ B.T, r)


def inverse(terms, actuated, minimize, weights):
    M, bias, A, _, a, tau = terms
    effort = M @ a + bias
    rest = (effort - tau)[~actuated]
    B, A_a = A[:, ~actuated].T, A[:, actuated].T
    if minimize == "multipliers":
        lam = least(B, rest)
    else:
        W = np.diag(weights)
        k = len(rest)
        K = np.block([[A_a.T @ W @ A_a, B.T], [B, np.zeros((k, k))]])
        lam = np.linalg.solve(K, np.concatenate([A_a.T @ W @ effort[actuated], rest]))[:len(A)]
    return np.where(actuated, effort - A.T @ lam, tau), lam


def imaginary(parts):
    return [part.imag / STEP.imag for part in parts]


def agree(part, want, what):
    if np.abs(want).max() < 1e-12:    # of terms of size 1 … 100: nothing there feels it, not a rotor, not a motor
        assert np.abs(part).max() < 1e-11, what
    else:
        assert_close(part, want, CLOSE, what)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_parameter(name):
    """Forward, hybrid and inverse, the latter with few, many and all joints actuated; one kind after another, then all
    with the state at once.
    """
    model, constraints = MECHANISMS[name]()
    rng = np.random.default_rng(7)
    q, v, a = random_state(model, 3)
    tau, F = rng.normal(size=model.nv), rng.normal(size=(len(model.body_names), 6))
    changes, law = parameters(model, rng) | of_constraints(constraints, rng), friction(model, np.random.default_rng(9))
    for own in changes["friction"].values():    # its derivatives are in test_joint_friction.py
        del own["load"]
    everything = {**changes, **dict(zip(("q", "v", "a", "tau"), rng.normal(size=(4, model.nv)), strict=True))}
    everything["screws"] = {}
    tangents = [rbd.Tangent(**{kind: change}) for kind, change in changes.items()] + [rbd.Tangent(**everything)]
    m, nv = constraints.size, model.nv
    none = np.zeros(nv, dtype=bool)
    A = rbd.constraint_jacobian(model, constraints, q)
    weights = rng.uniform(0.5, 2.0, size=nv)
    loose: list[int] = []    # coordinates whose efforts the constraints can carry
    for i in rng.permutation(nv):
        if len(loose) < m and np.linalg.cond(A[:, [*loose, i]]) < 100.0:
            loose.append(i)
    free = np.isin(np.arange(nv), loose) | (np.arange(nv) % 3 == 0)
    passive = [np.isin(np.arange(nv), loose[:count]) for count in (0, m // 2, m)]
    forward = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, tangents, external_wrenches=F,
                                                           friction=law)
    for i, tangent in enumerate(tangents):
        what = [*changes, "everything"][i]
        terms = equations(model, law, constraints, (q, v, a, tau, F), tangent)
        want = imaginary(hybrid(terms, none))
        one = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, tangent, external_wrenches=F,
                                                           friction=law)
        for part, several, expected in zip(one, forward, want[::2], strict=True):
            assert_close(part, expected, CLOSE, what)
            assert_close(several[i], part, 1e-12, what)
        found = rbd.constrained_hybrid_dynamics_directional(model, constraints, q, v, a, tau, ~free, tangent,
                                                            external_wrenches=F, friction=law)
        for part, expected in zip(found, imaginary(hybrid(terms, ~free)), strict=True):
            agree(part, expected, what)
        for undriven in passive:
            given, driven = np.where(undriven, tau, 0.0), ~undriven
            held = dataclasses.replace(tangent, tau=None if tangent.tau is None else tangent.tau * undriven)
            terms = equations(model, law, constraints, (q, v, a, given, F), held)
            for minimize in ("multipliers", "effort"):
                found = rbd.constrained_inverse_dynamics_directional(
                    model, constraints, q, v, a, driven, tangent, minimize, weights if minimize == "effort" else None,
                    given, external_wrenches=F, friction=law, check_acceleration=False)
                expected = imaginary(inverse(terms, driven, minimize, weights[driven]))
                for part, want in zip(found, expected, strict=True):
                    agree(part, want, f"{what}, {undriven.sum()} passive, {minimize}")


@pytest.mark.parametrize("name", ["five_bar", "stewart", "gripper", "biped"])
def test_along_states_it_is_the_full_derivative(name):
    """On samples with dependent rows too; batches of states."""
    model, constraints, _ = closed(name)
    q, v, _, tau = (x[:2] for x in consistent_states(name))
    rng = np.random.default_rng(1)
    changes = rng.normal(size=(3, 2, model.nv))
    tangent = rbd.Tangent(q=changes[0], v=changes[1], tau=changes[2])
    by = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
    found = rbd.constrained_forward_dynamics_directional(model, constraints, q, v, tau, tangent)
    for part, full in zip(found, (by[:3], by[3:]), strict=True):
        expected = sum(np.einsum("nij,nj->ni", slope, change) for slope, change in zip(full, changes, strict=True))
        assert_close(part, expected, 1e-8)


@pytest.mark.parametrize("minimize", ["multipliers", "effort"])
def test_passive_efforts_are_zero_unless_they_are_given(minimize):
    model, constraints, _ = closed("five_bar")
    q, v, a, _ = (x[:2] for x in consistent_states("five_bar"))
    driven = np.arange(model.nv) > 0
    tangent = rbd.Tangent(q=np.ones(model.nv), gravity=[0.3, 0.0, 1.0], tau=np.arange(model.nv))
    for state in ((q, v, a), (q[0], v[0], a[0])):
        left_out, zero = (rbd.constrained_inverse_dynamics_directional(
            model, constraints, *state, driven, tangent, minimize, passive_effort=passive)
            for passive in (None, np.zeros(model.nv)))
        for part, expected in zip(left_out, zero, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_what_is_no_constraint_set_is_named_by_all():
    model, constraints = loop_tree(["revolute"] * 8)
    zero, every = np.zeros(model.nv), np.ones(model.nv, dtype=bool)
    for call in (lambda c: rbd.constrained_forward_dynamics_directional(model, c, zero, zero, zero, rbd.Tangent()),
                 lambda c: rbd.constrained_inverse_dynamics_directional(model, c, zero, zero, zero, every,
                                                                        rbd.Tangent()),
                 lambda c: rbd.constrained_hybrid_dynamics_directional(model, c, zero, zero, zero, zero, every,
                                                                       rbd.Tangent())):
        with pytest.raises(rbd.RbdError, match="ConstraintSet"):
            call(constraints.constraints)


def test_what_is_wrong_is_named():
    model, constraints = loop_tree(["revolute"] * 8)
    zero = np.zeros(model.nv)

    def call(**change):
        rbd.constrained_forward_dynamics_directional(model, constraints, zero, zero, zero, rbd.Tangent(**change))

    for change, words in (({"constants": {"cog": 1.0}}, ["constants", "cog", "gear"]),
                          ({"constants": {"loop": 1.0}}, ["loop", "constants"]),
                          ({"successor_frames": {"gear": np.zeros(6)}}, ["gear", "successor_frames"]),
                          ({"terms": {"gear": {"joint5": 1.0}}}, ["joint5", "gear"]),
                          ({"terms": {"gear": {"joint2": 1.0}}}, ["joint2", "gear"]),
                          ({"predecessor_frames": {"loop": np.zeros(3)}}, ["loop", "predecessor_frames"])):
        with pytest.raises(rbd.RbdError) as caught:
            call(**change)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    user = rbd.ConstraintSet([rbd.UserConstraint(lambda q: q[:1], lambda q: np.eye(model.nv)[:1], lambda q, v: [0.0])])
    with pytest.raises(rbd.RbdError, match="UserConstraint"):
        rbd.constrained_forward_dynamics_directional(model, user, zero, zero, zero, rbd.Tangent())

"""Models from a product of exponentials: equal to their URDF twins, and to the product itself."""

import numpy as np
import pytest
from support.robots import assert_close, random_state
from support.trees import random_inertia

import rbd_ros as rbd
from rbd_ros.core.dynamics.closed_form import node_step

se3 = rbd.lie.se3


def twin(model, frame):
    """The same robot from screws, bodies' frames as in the URDF, moving links only."""
    movable = [joint for joint in model.joints if joint.nv == 1]
    names = [joint.child for joint in movable]
    poses = rbd.forward_kinematics(model, model.neutral())
    home = np.array([poses[model.body_index(name)] for name in names])
    parents, screws = [], []
    for joint, pose in zip(movable, home, strict=True):
        spec = next(spec for spec in model.description.joints if spec.name == joint.name)
        axis = np.asarray(spec.axis) / np.linalg.norm(spec.axis)
        still = np.zeros(3)
        X = np.concatenate([still, axis] if joint.type == "prismatic" else [axis, still])
        screws.append(X if frame == "body" else se3.Ad(pose) @ X)
        parents.append(names.index(spec.parent) if spec.parent in names else -1)
    inertias = [model.description.links[name] for name in names]
    return rbd.from_screws(screws, home, inertias, frame=frame, parents=parents, names=names, gravity=model.gravity)


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
@pytest.mark.parametrize("frame", ["world", "body"])
@pytest.mark.parametrize("name", ["iiwa", "two_link", "two_link_mueller", "five_bar"])
def test_equal_to_the_urdf_twin(name, frame):
    """Efforts, mass matrix and poses of every link, though the world's screws pass far from most bodies' frames."""
    model = rbd.sample(name)
    found = twin(model, frame)
    assert found.nv == model.nv
    for seed in range(3):
        q, v, a = random_state(model, seed)
        assert_close(rbd.inverse_dynamics(found, q, v, a), rbd.inverse_dynamics(model, q, v, a), 1e-12)
        assert_close(rbd.mass_matrix(found, q), rbd.mass_matrix(model, q), 1e-12)
        poses, expected = rbd.forward_kinematics(found, q), rbd.forward_kinematics(model, q)
        for joint in model.joints:
            assert_close(poses[found.body_index(joint.child)], expected[model.body_index(joint.child)], 1e-13)


def test_any_screws_are_the_product_of_exponentials():
    """P: T_i = exp(S_1 q_1) … exp(S_i q_i) H_i with bodies' frames anywhere; revolute, helical and prismatic."""
    rng = np.random.default_rng(1)
    for seed in range(4):
        S = rng.normal(size=(5, 6))
        S[1, :3] = 0.0
        S[1] /= np.linalg.norm(S[1])
        for k in (0, 2, 3, 4):
            S[k, :3] /= np.linalg.norm(S[k, :3])
        S[4, 3:] -= S[4, :3] * (S[4, :3] @ S[4, 3:])
        home = se3.exp(rng.normal(size=(5, 6)))
        parents = [-1, 0, 1, 0, 3] if seed % 2 else [-1, 0, 1, 2, 3]
        bodies = [random_inertia(rng) for _ in range(5)]
        model = rbd.from_screws(S, home, bodies, parents=parents)
        assert [joint.type for joint in model.joints] == ["helical", "prismatic", "helical", "helical", "revolute"]
        q, v = rng.normal(size=(2, 5))
        poses, chain = rbd.forward_kinematics(model, q), []
        for i, up in enumerate(parents):
            chain.append((np.eye(4) if up < 0 else chain[up]) @ se3.exp(S[i] * q[i]))
            assert_close(poses[model.body_index(f"body{i + 1}")], chain[i] @ home[i], 1e-13)
        body = np.array([se3.Ad_inv(H) @ s for H, s in zip(home, S, strict=True)])
        same = rbd.from_screws(body, home, bodies, parents=parents, frame="body")
        assert_close(rbd.inverse_dynamics(same, q, v, v), rbd.inverse_dynamics(model, q, v, v), 1e-12)
        energy = sum(0.5 * V @ np.block([[b.about_origin, rbd.lie.so3.hat(b.moment)],
                                         [rbd.lie.so3.hat(b.moment).T, b.mass * np.eye(3)]]) @ V
                     for b, V in zip(bodies, (rbd.body_velocities(model, q, v)[model.body_index(f"body{i + 1}")]
                                              for i in range(5)), strict=True))
        assert rbd.kinetic_energy(model, q, v) == pytest.approx(energy, rel=1e-12)
        assert all(node_step(row).kind.screw for row in model._node_rows)


GOOD = {"screws": [[0, 0, 1, 0, 0, 0]], "home": np.eye(4)[None], "inertias": [rbd.Inertia.zero()]}


@pytest.mark.parametrize(("change", "message"), [
    ({"screws": [[0, 0, 2, 0, 0, 0]]}, r"joint1.*\|ω\| = 2"), ({"screws": np.zeros((1, 6))}, r"\|ω\| = 0"),
    ({"screws": np.zeros((2, 6))}, "screws"), ({"home": np.eye(4)}, "home: expected shape"),
    ({"home": np.zeros((1, 4, 4))}, "home"), ({"inertias": []}, "inertias: expected 1"),
    ({"inertias": [None]}, "inertias: expected Inertia"), ({"parents": [0]}, "parents: that of body 0 is 0"),
    ({"parents": ["base"]}, "parents"), ({"names": ["a", "b"]}, "names: expected 1"), ({"frame": "space"}, "frame"),
    ({"names": ["base"]}, "names: expected 1 different"), ({"gravity": (0, 0)}, "gravity"),
    ({"screws": [[0, 0, np.nan, 0, 0, 0]]}, "screws")])
def test_wrong_inputs_are_named(change, message):
    with pytest.raises(rbd.RbdError, match=message):
        rbd.from_screws(**(GOOD | change))

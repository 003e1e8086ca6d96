"""Recordings: files and names, filters and derivatives, and what is said of data that are not as they should be."""
from __future__ import annotations

import warnings

import numpy as np
import pytest
from support.recordings import judged, mutilated as worse, periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.core.identification.recorded.reading import _arrays
from rbd_ros.core.identification.recorded.signals import low_pass, prepare
from rbd_ros.core.identification.recorded.whole_turns import unwound

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
MODEL = rbd.sample("two_link")
TRUTH = perturbed(MODEL)
MOTION = periodic(MODEL, period=8.0, periods=1)
RECORDING = record(TRUTH, MOTION, rate=200.0)


def changed(**parts):
    given = {name: getattr(RECORDING, name) for name in ("t", "q", "v", "a", "tau", "joints")} | parts
    return rbd.Recording(given.pop("t"), given.pop("q"), **given)


def equal(a, b):
    assert a.joints == b.joints
    for name in ("t", "q", "tau"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-8, atol=1e-12)


def test_csv_and_npz_hold_what_was_written(tmp_path):
    t, q, tau, names = RECORDING.t, RECORDING.q, RECORDING.tau, RECORDING.joints
    head = ",".join(["t", *(f"q_{name}" for name in names), *(f"{name}/effort" for name in names), "remark"])
    rows = [",".join(f"{x:.12g}" for x in row) + ",x" for row in np.column_stack([t, q, tau])]
    (tmp_path / "a.csv").write_text("\n".join([head, *rows]))
    equal(rbd.Recording.load(tmp_path / "a.csv"), RECORDING)
    np.savetxt(tmp_path / "b.csv", np.column_stack([t, q, tau]), delimiter=",")
    equal(rbd.Recording.from_csv(tmp_path / "b.csv", {"t": 0, "q": 1, "tau": 1 + MODEL.nv}, names), RECORDING)
    np.savez(tmp_path / "c.npz", t=t, q=q, tau=tau, joints=np.array(names))
    equal(rbd.Recording.load(tmp_path / "c.npz"), RECORDING)


@pytest.mark.parametrize("name, content, words", [
    ("a.csv", b"", "empty"), ("a.csv", b"a,b\n1,2\n", "expected a header"), ("a.csv", b"t,q_x,tau_x\n", "no rows"),
    ("a.csv", b"\xff\xfe\x00", "cannot read|expected a header"), ("a.npz", b"PK", "cannot read"),
    ("a.npz", b"", "cannot read"), ("b.npz", None, "cannot read")])
def test_files_that_are_none(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(rbd.RbdError, match=words):
        rbd.Recording.load(tmp_path / name)


def test_a_bag_is_read_without_ros(tmp_path):
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    State, Header, Time = (store.types[name] for name in (
        "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    for kind in (rosbag2.StoragePlugin.SQLITE3, rosbag2.StoragePlugin.MCAP):
        path = tmp_path / kind.name
        with rosbag2.Writer(path, version=9, storage_plugin=kind) as writer:
            connection = writer.add_connection("/joint_states", State.__msgtype__, typestore=store)
            for t, q, tau in zip(RECORDING.t, RECORDING.q, RECORDING.tau, strict=True):
                stamp = round(1e9 * t) + 1_700_000_000 * 10**9
                message = State(Header(Time(*divmod(stamp, 10**9)), ""), [*RECORDING.joints[::-1], "gripper"],
                                np.array([*q[::-1], 0.1]), np.zeros(0), np.array([*tau[::-1], np.nan]))
                writer.write(connection, stamp, store.serialize_cdr(message, State.__msgtype__))
        found = rbd.Recording.load(path)
        assert set(found.joints) == set(RECORDING.joints)
        ordered, _ = found.in_order_of(MODEL)
        np.testing.assert_allclose(ordered.tau, RECORDING.tau)
        np.testing.assert_allclose(ordered.t - ordered.t[0], RECORDING.t, atol=1e-6)
        with pytest.raises(rbd.RbdError, match="has no topic /efforts; it has /joint_states"):
            rbd.Recording.from_bag(path, topic="efforts")
    with pytest.raises(rbd.RbdError, match="cannot read"):
        rbd.Recording.load(tmp_path / "none")


def test_names_decide_not_the_order():
    order = [1, 0]
    names = tuple(RECORDING.joints[i] for i in order)
    other = changed(q=RECORDING.q[:, order], tau=RECORDING.tau[:, order], joints=names)
    equal(other.in_order_of(MODEL)[0], RECORDING)
    more = changed(q=np.column_stack([RECORDING.q, RECORDING.t]), tau=np.column_stack([RECORDING.tau, RECORDING.t]),
                   joints=(*RECORDING.joints, "gripper"))
    assert more.in_order_of(MODEL)[1] == ("gripper",)
    with pytest.raises(rbd.RbdError, match=f"unknown joint '{RECORDING.joints[1]}'"):
        changed(joints=(RECORDING.joints[0], "elbo")).in_order_of(MODEL)
    with pytest.raises(rbd.RbdError, match="quaternions"):
        RECORDING.in_order_of(rbd.sample("biped", root="floating"))


def test_the_filter_has_the_same_response_at_every_rate_and_no_phase():
    for rate in (100.0, 1000.0):
        t = np.arange(0.0, 8.0, 1.0 / rate)
        for f, gain in ((0.5, 1.0), (5.0, 0.5), (10.0, 1.0 / 257.0)):
            x = np.sin(2.0 * np.pi * f * t)
            middle = slice(len(t) // 3, 2 * len(t) // 3)
            np.testing.assert_allclose(low_pass(x, rate, 5.0)[middle], gain * x[middle], atol=2e-3)


def test_velocities_and_accelerations_are_those_of_the_motion():
    prepared = prepare(MODEL, record(TRUTH, MOTION, rate=200.0, encoder=0.0), cutoff=10.0)
    (piece,) = prepared.pieces
    inner = slice(len(piece.t) // 8, -len(piece.t) // 8)
    q, v, a = MOTION(piece.t)[:3]
    for found, expected in ((piece.q, q), (piece.v, v), (piece.a, a)):
        np.testing.assert_allclose(found[inner], expected[inner], atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("encoder", [0.0, 1e-5, 1e-4, 3e-4])
def test_the_cutoff_follows_the_motion_and_not_the_noise(encoder):
    for rate in (100.0, 500.0):
        assert prepare(MODEL, record(TRUTH, MOTION, rate=rate, encoder=encoder)).cutoff < 6.0
    fast = periodic(MODEL, period=1.0, periods=8)    # up to 5 Hz
    assert 15.0 < prepare(MODEL, record(TRUTH, fast, rate=500.0, encoder=encoder)).cutoff <= 40.0


def test_the_cutoff_does_not_follow_stamps_that_waver():
    """A driver stamps what it reads when it comes to it, some ms late for some ms: noise of positions with a colour."""
    exact = record(TRUTH, MOTION, rate=1000.0)
    late = 5e-4 * low_pass(np.random.default_rng(0).normal(size=(len(exact.t), 1)), 1000.0, 100.0)[:, 0]
    wavering = rbd.Recording(exact.t + late, exact.q, tau=exact.tau, joints=exact.joints)
    assert prepare(MODEL, wavering).cutoff < 6.0


def mutilated(kind, rng):
    """A recording of which something is wrong, and what is said of it."""
    t, q, tau = RECORDING.t.copy(), RECORDING.q.copy(), RECORDING.tau.copy()
    n = len(t)
    at = int(rng.integers(n // 4, 3 * n // 4))
    if kind == "nan":
        q[rng.integers(0, n, 20), 0] = np.nan
        return changed(q=q), "rows are not finite"
    if kind == "gap":
        cut = np.r_[0:at, at + 100:n]
        return changed(t=t[cut], q=q[cut], tau=tau[cut]), "gap"
    if kind == "restart":
        t[at:] -= t[at] - 0.5
        return changed(t=t), "time goes back"
    if kind == "shuffled":
        order = rng.permutation(n)
        return changed(t=t[order], q=q[order], tau=tau[order]), "not in order of time"
    if kind == "twice":
        cut = np.sort(np.r_[0:n, at:at + 30])
        return changed(t=t[cut], q=q[cut], tau=tau[cut]), "the stamp of the row before"
    if kind == "still":
        q[:, 0] = 0.3
        return changed(q=q), "do not move"
    if kind == "no effort":
        tau[:, 1] = 0.0
        return changed(tau=tau), "constant, left out"
    if kind == "infinite":
        tau[at] = np.inf
        return changed(tau=tau), "rows are not finite"
    if kind == "sign":
        return changed(tau=tau * [1.0, -1.0]), "opposite sign"
    if kind == "velocities":
        v = MOTION(t).v[:, ::-1]
        return changed(v=v), "is not the derivative of its position; it is that of"
    raise ValueError(kind)


KINDS = ("nan", "gap", "restart", "shuffled", "twice", "still", "no effort", "infinite", "sign", "velocities")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_found_and_said(kind):
    recording, words = mutilated(kind, np.random.default_rng(0))
    steps = {"prior": 100.0} if kind == "sign" else {}    # without, its fit takes hundreds of steps
    found = rbd.identify(MODEL, recording, delay=0.0, **steps)
    assert any(words in finding for finding in found.findings), found.findings


@pytest.mark.parametrize("block", range(4))
def test_mutilated_recordings_end_in_a_clear_error_or_a_result_that_says_what_was_left_out(block):
    refused = 0
    for seed in range(25 * block, 25 * (block + 1)):
        recording = worse(RECORDING, np.random.default_rng((3, seed)))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)    # no computation went astray on the way
            try:
                found = rbd.identify(MODEL, recording, stribeck=seed % 5 == 0)
            except rbd.RbdError as error:
                assert len(str(error)) > 20
                refused += 1
                continue
        assert not judged(recording, found), (seed, judged(recording, found))
    assert 0 < refused < 25


@pytest.mark.parametrize("given, words", [
    (lambda: rbd.Recording([], np.zeros((0, 2)), tau=np.zeros((0, 2))), "no samples"),
    (lambda: rbd.Recording([0.0], [[1.0]], tau=[[1.0, 2.0]]), "2 columns"),
    (lambda: rbd.Recording([0.0, 1.0], [[1.0]], tau=[[1.0]]), "1 rows"),
    (lambda: rbd.Recording([0.0], [["x"]], tau=[[1.0]]), "expected numbers"),
    (lambda: rbd.Recording([0.0], [1.0], tau=[[1.0]]), "dimensions"),
    (lambda: changed(joints=("a", "a")), "occurs twice"), (lambda: changed(joints=("a",)), "1 names"),
    (lambda: rbd.identify(MODEL, changed(joints=None, q=RECORDING.q[:, :1], tau=RECORDING.tau[:, :1])), "1 columns"),
    (lambda: rbd.identify(MODEL, RECORDING.part(slice(0, 30))), "30 rows"),
    (lambda: rbd.identify(MODEL, RECORDING.part(slice(0, 150))), "no piece of at least"),
    (lambda: rbd.identify(MODEL, None), "expected rbd.Recording"),
    (lambda: rbd.identify(MODEL, RECORDING, mode="all"), "unknown mode"),
    (lambda: rbd.identify(MODEL, RECORDING, mode="payload"), "body"),
    (lambda: rbd.identify(MODEL, RECORDING, gains=[1.0, 0.0]), "gains"),
    (lambda: rbd.identify(MODEL, RECORDING, gains={"x": 1.0}), "unknown joint"),
    (lambda: rbd.identify(MODEL, RECORDING, delay="x"), "delay"),
    (lambda: rbd.identify(MODEL, RECORDING, cutoff=0.0), "cutoff"),
    (lambda: rbd.identify(MODEL, RECORDING, holdout=1.0), "holdout"),
    (lambda: rbd.identify(MODEL, RECORDING, prior=-1.0), "prior")])
def test_wrong_input_is_a_clear_error(given, words):
    with pytest.raises(rbd.RbdError, match=words):
        given()


class TestEffortsOfAnotherTopic:
    """`_arrays` of joint states at 100 Hz that have efforts of their own, and of another topic."""

    STATES = tuple((0.01 * k, {"a": (np.sin(0.01 * k), 0.0, 7.0)}) for k in range(500))

    @staticmethod
    def efforts(kept=lambda k: True, name="a", later=0.0):
        return [(0.01 * k + later, {name: (0.0, 0.0, 0.03 * k)}) for k in range(500) if kept(k)]

    def read(self, efforts):
        return _arrays(self.STATES, efforts, "bag", "/joint_states", "/efforts")

    def test_no_gap_is_bridged(self):
        found = self.read(self.efforts(lambda k: not 100 < k < 300))["tau"][:, 0]
        at = np.arange(500)
        assert np.array_equal(np.isnan(found), (at > 100) & (at < 300))
        np.testing.assert_allclose(found[~np.isnan(found)], 0.03 * at[~np.isnan(found)])

    def test_slower_and_wavering_samples_are_no_gaps(self):
        found = self.read(self.efforts(lambda k: k % 10 == 0 or k == 499))["tau"][:, 0]
        np.testing.assert_allclose(found, 0.03 * np.arange(500))
        assert np.isnan(self.read(self.efforts(later=2.0))["tau"][:, 0]).sum() == 200

    @pytest.mark.parametrize("efforts", [[], [(0.01, {"b": (0.0, 0.0, 1.0)})], [(1e6, {"a": (0.0, 0.0, 1.0)})]],
                             ids=["no message", "other joints", "another time"])
    def test_a_topic_without_efforts_is_named_and_nothing_taken_in_its_place(self, efforts):
        with pytest.raises(rbd.RbdError, match="/efforts has no efforts of joints of /joint_states at times"):
            self.read(efforts)


def test_angles_that_jump_by_whole_turns_are_one_motion():
    """Between −π and π, or from 0 to 2π, with a gap in which a joint may have turned: the fit is the same."""
    motion = periodic(MODEL, period=8.0, periods=1, reach=2.0)
    plain = record(TRUTH, motion, rate=200.0)
    kept = (plain.t < 3.0) | (plain.t > 3.5)
    t, q, tau = plain.t[kept], plain.q[kept], plain.tau[kept]
    expected = rbd.identify(MODEL, rbd.Recording(t, q, tau=tau, joints=plain.joints), delay=0.0)
    assert not any("whole turns" in finding for finding in expected.findings)
    for least in (-np.pi, 0.0):
        turned = rbd.Recording(t, (q - least) % (2.0 * np.pi) + least, tau=tau, joints=plain.joints)
        assert np.abs(np.diff(turned.q, axis=0)).max() > 6.0
        found = rbd.identify(MODEL, turned, delay=0.0)
        assert any("shoulder, elbow jump by whole turns" in finding for finding in found.findings), found.findings
        np.testing.assert_allclose(found.model.inertial_parameters, expected.model.inertial_parameters, atol=1e-6)
        np.testing.assert_allclose(found.residual.after, expected.residual.after, rtol=1e-5)


def test_only_angles_are_unwound_and_only_by_whole_turns():
    links = "".join(f'<link name="{name}"/>' for name in "abc")
    joints = "".join(f'<joint name="{kind}" type="{kind}"><parent link="{a}"/><child link="{b}"/><limit lower="-9" '
                     'upper="9" effort="1" velocity="1"/></joint>' for kind, a, b in (
                         ("continuous", "a", "b"), ("prismatic", "b", "c")))
    model = rbd.load_urdf(f'<robot name="r">{links}{joints}</robot>')
    t = np.arange(400) * 0.01
    for step, left in ((2.0 * np.pi, 0.0), (0.9 - 2.0 * np.pi, 0.9), (np.pi, np.pi), (1e3, 1e3)):
        q = np.where(t[:, None] < 2.0, 0.0, step) * np.ones(2)
        found, names = unwound(model, q, [slice(0, 400)])
        assert names == ("continuous",) * (left != step)
        np.testing.assert_allclose(found[[0, -1]], [[0.0, 0.0], [left, step]], atol=1e-12)
        assert np.array_equal(unwound(model, q, [slice(0, 200), slice(200, 400)])[0], q)


@pytest.mark.parametrize("given", [rbd.sample("iiwa"), 3])
def test_a_topic_is_a_name(given):
    with pytest.raises(rbd.RbdError, match=r"topic: expected a name, got .*takes the model"):
        rbd.Recording.from_bag("nowhere", given)

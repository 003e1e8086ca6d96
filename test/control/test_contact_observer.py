"""The observer of a running robot without ROS: pushes that are known, what is touched, gaps, resets and lies."""
from __future__ import annotations

import numpy as np
import pytest
from support.recordings import periodic

import rbd_ros as rbd
from rbd_ros.runtime.estimation.contact_observer import ContactObserver, Observed, ObserverSettings
from rbd_ros.runtime.estimation.payload_adoption import payload_values
from rbd_ros.runtime.inputs.rejections import TAKEN

MODEL = rbd.sample("iiwa")
NAMES = MODEL.joint_names
H = 1_000_000    # ns
Q = np.linspace(0.2, 1.0, 7)
TIP = MODEL.body_names[-1]


def observer(**values):
    return ContactObserver(MODEL, ObserverSettings.from_values({"threshold": [0.01], **values}, MODEL))


def fed(one, push, steps=300, begin=1, body=TIP):
    """At rest against this wrench on a body."""
    effort = rbd.gravity_effort(MODEL, Q) - rbd.jacobian(MODEL, Q, body).T @ push
    found = [one.on_state((begin + k) * H, NAMES, Q, np.zeros(7), effort) for k in range(steps)]
    return found


def test_a_push_is_found_with_its_place():
    push = np.array([0.0, 0.5, 0.4, 20.0, 0.0, -5.0])
    one = observer()
    found = fed(one, push)
    assert found[0] is TAKEN and isinstance(found[1], Observed)
    np.testing.assert_allclose(found[-1].wrench.wrench, push, atol=1e-4)
    changes = [state.change for state in found[1:] if state.change]
    assert changes[-1].body == TIP and all(change.touching for change in changes) and len(changes) <= 3
    assert one.report()["touched"] == TIP
    found = fed(one, np.zeros(6), steps=800, begin=301)
    assert [state.change.touching for state in found if state.change] == [False]
    assert one.counts["contacts"] == 1 and one.report()["touched"] == ""
    middle, other = MODEL.joints[3].child, observer(body=MODEL.joints[3].child)
    fed(other, push, body=middle)
    assert other.report()["touched"] == middle


def test_the_covariance_of_means_is_in_the_order_of_the_joints():
    half = np.tril(np.random.default_rng(1).uniform(0.1, 1.0, (7, 7)))
    wanted, order = half @ half.T, [2, 0, 1, 6, 5, 3, 4]
    values = {"joints": [NAMES[k] for k in order], "mean_covariance": wanted[np.ix_(order, order)].reshape(-1)}
    np.testing.assert_allclose(observer(**values).settings.noise, wanted, rtol=1e-12)
    assert observer().settings.noise is None and observer(sigma=[0.1, *np.zeros(6)]).settings.noise is None
    np.testing.assert_array_equal(observer(sigma=[0.1]).settings.noise, 0.1**2 * np.eye(7))


@pytest.mark.parametrize("wrong", [[1.0], [-1.0], np.ones(7), np.ones(49), np.eye(7).reshape(-1)[:-1],
                                   -np.eye(7).reshape(-1), np.arange(49.0), np.full(49, np.inf)])
def test_a_covariance_of_means_that_is_none_is_refused(wrong):
    with pytest.raises(rbd.RbdError, match="parameter 'mean_covariance'"):
        observer(mean_covariance=wrong)


def test_a_gap_begins_anew():
    one = observer()
    fed(one, np.array([0.0, 0.0, 0.4, 30.0, 0.0, 0.0]))
    assert one.on_state(10**10, NAMES, Q, np.zeros(7), np.zeros(7)) is TAKEN
    assert one.counts["gaps"] == 1
    found = fed(one, np.zeros(6), steps=2, begin=10_001)[-1]
    assert np.abs(found.effort).max() < 3.0    # nothing is left of the push; zero efforts were those of the gap's end


def test_resets_repeats_and_missing_efforts():
    one = observer()
    fed(one, np.zeros(6), steps=5, begin=1000)
    estimates = one.counts["estimates"]
    assert one.on_state(1004 * H, NAMES, Q, np.zeros(7), np.zeros(7)) is TAKEN and one.counts["repeated"] == 1
    fed(one, np.zeros(6), steps=5)    # the time goes back
    assert one.counts["estimates"] == estimates + 4
    one.on_state(6 * H, NAMES, Q, np.zeros(7), [])
    one.on_state(7 * H, NAMES, Q, np.zeros(7), np.full(7, np.nan))
    assert one.counts["without_effort"] == 2
    assert isinstance(one.on_state(8 * H, NAMES[:3], Q[:3], np.zeros(3), np.zeros(3)), type(TAKEN))
    assert one.rejections.total


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 5))])
def test_no_lie_of_a_sensor_gets_out(seed):
    """Random states, some of them wild: all that comes out is finite, and it goes on."""
    rng = np.random.default_rng(seed)
    one, t = observer(), 1
    for _ in range(300):
        t += int(rng.choice([H, H, H, 0, -H, 10**12, 1]))
        state = [Q + 0.01 * rng.normal(size=7), 0.1 * rng.normal(size=7), rng.normal(size=7)]
        if rng.random() < 0.2:
            state[rng.integers(3)][rng.integers(7)] = rng.choice([np.nan, np.inf, 1e300, -1e9, 1e150])
        found = one.on_state(max(t, 0), NAMES, *state)
        if isinstance(found, Observed):
            assert all(np.isfinite(x).all() for x in (found.effort, found.sigma, found.wrench.wrench))
    fed(one, np.zeros(6), begin=t // H + 10**7)
    fed(one, np.zeros(6), steps=800, begin=t // H + 2 * 10**7)
    assert one.report()["touched"] == ""


@pytest.mark.parametrize(("values", "words"), [
    ({"body": "no"}, "link in parameter 'body'"), ({"payload.estimate": "no"}, "link in parameter 'payload.estimate'"),
    ({"threshold": [-1.0]}, "threshold"), ({"threshold": [1.0, 2.0]}, "threshold"),
    ({"gain": 0.0}, "gain"), ({"max_interval": 2.0}, "max_interval"), ({"effort_source": "sensor"}, "effort_source")])
def test_wrong_parameters(values, words):
    with pytest.raises(rbd.RbdError, match=words):
        observer(**values)


def carried(one, load, seconds, begin=0.0, push=None):
    """In motion with a load; what is told of it."""
    motion, truth = periodic(MODEL, 1, period=4.0), MODEL if load is None else MODEL.with_payload(TIP, load)
    found, h = [], 0.004
    times = begin + h * np.arange(round(seconds / h))
    q, v, a = motion(times % 4.0)[:3]
    tau = rbd.inverse_dynamics(truth, q, v, a) - (0.0 if push is None else push)
    for t, *row in zip(times, q, v, tau, strict=True):
        state = one.on_state(round(1e9 * t) + 1, NAMES, *row)
        found += [state.load] if isinstance(state, Observed) and state.load else []
    return found


def test_a_load_is_estimated_and_taken_over_on_request():
    load = rbd.Inertia(2.0, np.array([0.03, -0.02, 0.08]), np.diag([0.01, 0.012, 0.008]))
    values = {"payload.estimate": TIP, "threshold": 2.0}
    one = observer(**values)
    told = carried(one, load, 4.5)
    assert 3 <= len(told) <= 5 and told[-1].observed[:4].all() and not told[-1].touching
    adopted = payload_values(*told[-1])
    assert adopted["payload.body"] == TIP and adopted["payload.mass"] == pytest.approx(2.0, rel=1e-3)
    np.testing.assert_allclose(adopted["payload.com"], load.com, atol=1e-3)
    assert one.report()["touched"]    # an unknown load is a contact
    one.apply(ObserverSettings.from_values({**values, **adopted}, MODEL))
    again = carried(one, load, 2.5, begin=4.5)
    assert not one.report()["touched"] and again[0].observed.all()    # the estimate went on, of the whole load
    assert again[-1].load.mass == pytest.approx(2.0, rel=1e-3)
    push = rbd.jacobian(MODEL, MODEL.neutral(), TIP).T @ [0.0, 5.0, 0.0, 60.0, 60.0, 60.0]
    touched = carried(one, load, 1.5, begin=7.0, push=push)
    assert touched[-1].touching and touched[-1].load.mass == pytest.approx(2.0, rel=0.01)
    with pytest.raises(rbd.RbdError, match="touches"):
        payload_values(*touched[-1])


def test_what_was_not_shown_is_not_taken_over():
    one = observer(**{"payload.estimate": TIP, "threshold": 2.0})
    fed(one, np.zeros(6), steps=1500)    # at rest
    with pytest.raises(rbd.RbdError, match=f"the motion has not shown .*'{TIP}'"):
        payload_values(*one.estimated())
    load = rbd.Inertia(2.0, np.zeros(3), 0.01 * np.eye(3))
    for unsure in (np.full(10, 0.3), np.array([0.01, 0.1, *[0.01] * 8])):
        with pytest.raises(rbd.RbdError, match="not known well enough"):
            payload_values(TIP, load, unsure, [True] * 10, False)
    told = carried(one, None, 5.0, begin=10.0)
    assert payload_values(*told[-1]) == {"payload.body": TIP, "payload.mass": 0.0}    # nothing is carried


@pytest.mark.parametrize(("half_width", "load", "options", "words"), [
    ([np.nan] * 10, (2.0, 0.0, 0.01), {}, "half_width"), ([-1.0] * 10, (2.0, 0.0, 0.01), {}, "half_width"),
    ([9.0] * 10, (2.0, 0.0, 0.01), {}, "not known well enough"),
    ([0.0] * 10, (40.0, 0.0, 0.01), {"heaviest": 30.0}, "not plausible"),
    ([0.0] * 10, (2.0, 5.0, 0.01), {}, "not plausible"), ([0.0] * 10, (2.0, 0.0, 1e9), {}, "not plausible"),
    ([0.0] * 10, (2.0, 0.0, 0.01), {"carried": "link_5"}, "on 'link_5'")])
def test_estimates_of_a_stranger_are_not_believed(half_width, load, options, words):
    mass, x, inertia = load
    with pytest.raises(rbd.RbdError, match=words):
        payload_values(TIP, rbd.Inertia(mass, np.full(3, x), inertia * np.eye(3)), half_width, [True] * 10, False,
                       **options)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_no_lie_of_a_sensor_ends_the_estimate_of_a_load(seed):
    rng, t = np.random.default_rng(seed), 0
    one = observer(**{"payload.estimate": TIP, "threshold": 2.0, "friction.coulomb": True})
    for _ in range(600):
        t += int(rng.choice([*[4 * H] * 40, 0, -H, 10**12, 1]))
        state = [0.5 * rng.normal(size=7), rng.normal(size=7), rng.normal(size=7)]
        if rng.random() < 0.03:
            state[rng.integers(3)][rng.integers(7)] = rng.choice([np.nan, np.inf, 1e300, -1e9, 1e20, 1e49])
        one.on_state(max(t, 0), NAMES, *state)
        assert np.isfinite(one.estimated().load.mass)
    one.apply(ObserverSettings.from_values({"payload.estimate": TIP, "threshold": 2.0}, MODEL))
    load = rbd.Inertia(2.0, np.array([0.03, -0.02, 0.08]), np.diag([0.01, 0.012, 0.008]))
    told = carried(one, load, 6.0, begin=round(t * 1e-9) + 1e4)
    assert told[-1].load.mass == pytest.approx(2.0, rel=0.01) and not told[-1].touching


def test_a_contact_that_other_parameters_end_is_told():
    push = np.array([0.0, 0.5, 0.4, 20.0, 0.0, -5.0])
    for goes_on in (True, False):
        one = observer()
        fed(one, push)
        one.apply(ObserverSettings.from_values({"threshold": [0.02]}, MODEL))
        found = fed(one, push if goes_on else np.zeros(6), steps=800, begin=301)
        assert [state.change.touching for state in found[1:] if state.change] == [False] * (not goes_on)
        assert (one.report()["touched"] == TIP) == goes_on


def test_covariance_of_the_wrench():
    """By the given deviations of the joints; without them nothing is said."""
    one = observer(sigma=[0.2], body="link_6")
    found = fed(one, np.zeros(6), steps=3)[-1]
    J = rbd.jacobian(MODEL, Q, "link_6")[:, :6]
    np.testing.assert_allclose(found.wrench.covariance, 0.04 * np.linalg.inv(J @ J.T), rtol=1e-6)
    assert one.settings.knows_sigma and not observer().settings.knows_sigma

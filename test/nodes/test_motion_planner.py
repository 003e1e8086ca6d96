"""The motion planner as users have it: a process of its own, asked by service and action over DDS."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import NodeProcess, Peer, driver_of
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from parameters.node_maker import Nodes
from rclpy.action import ActionClient
from rclpy.lifecycle import TransitionCallbackReturn

import rbd_ros as rbd
from rbd_interfaces import action, srv
from rbd_interfaces.msg import MotionRequest, MotionWaypoint, NamedWrench
from rbd_ros.runtime.planning.motion_planner import CANCELLED as NO_PLAN

IIWA = rbd.sample("iiwa")
NAMES = list(IIWA.joint_names)
START = [0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0]
GOAL = [1.2, -0.3, 0.5, -0.5, 0.6, -0.4, 1.0]
GOOD = {"name": NAMES, "start": START, "goal": GOAL, "duration": 1.5}
IMPOSSIBLE = GOOD | {"duration": 0.82}
# So, too, and on a straight line; effort rates make each of a thousand iterations take 10 ms
LONG = GOOD | {"duration": 0.9, "max_effort_rate": [1e6] * 7, "waypoints": [MotionWaypoint(
    fraction=s, position=(1.0 - s) * np.array(START) + s * np.array(GOAL)) for s in np.arange(1, 11) / 11]}
SOON = 1.0    # s of the processor, of the ten that it takes; 0.1 as a rule
FIELDS = ("positions", "velocities", "accelerations", "effort")
ACCEPTED, SUCCEEDED, CANCELED, ABORTED = 1, 4, 5, 6


class Planner(Peer):
    """A client of the planner, by both ways."""

    def __init__(self):
        super().__init__("motion_planner")
        self.action = ActionClient(self.node, action.PlanMotion, "motion_planner/plan_motion")

    def ask(self, **fields):
        return self.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(
            motion=MotionRequest(**fields)))

    def done(self, future, what="answer"):
        return self.spin_until(future.done, what) and future.result()

    def send(self, feedback=None, **fields):
        self.spin_until(self.action.server_is_ready, "action server")
        return self.action.send_goal_async(
            action.PlanMotion.Goal(motion=MotionRequest(**fields)),
            None if feedback is None else lambda message: feedback.append(message.feedback))

    def goal(self, feedback=None, **fields):
        return self.done(self.send(feedback, **fields), "goal to be accepted")

    def change(self, transition):
        return self.call(ChangeState, "motion_planner/change_state", ChangeState.Request(
            transition=Transition(id=transition))).success


@pytest.fixture(scope="module")
def planner(tmp_path_factory, private_domain):
    """It must end cleanly after all tests, in the middle of a search that hears nothing, and take its process along."""
    process = NodeProcess(tmp_path_factory.mktemp("planner"), "motion_planner",
                          ["--params-file", "config/motion_planner.yaml"],
                          robot_description_file=str(rbd.sample_path("iiwa")), time_limit=60.0)
    try:
        with Planner() as peer:
            peer.spin_until(lambda: peer.status == "active", "active node")
            peer.processor_time = process.processor_time
            yield peer
            feedback = []
            peer.goal(feedback, **LONG)
            peer.spin_until(lambda: feedback, "feedback")
            [searching] = children(process.process.pid)
            os.kill(searching, signal.SIGSTOP)
            begin = time.monotonic()
            assert process.end() == 0 and time.monotonic() < begin + 10.0    # 2 s, on a machine with time
            assert not Path(f"/proc/{searching}").exists()
        assert "Traceback" not in process.output()
    finally:
        process.kill()


def children(parent):
    """Numbers of the processes that a process has started."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")
            if path.read_text().rpartition(")")[2].split()[1] == str(parent)]


def arrays(trajectory, field):
    return np.array([getattr(point, field) for point in trajectory.points])


def times(trajectory):
    return np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in trajectory.points])


def test_a_motion_in_the_order_of_the_asker(planner):
    order = [3, 0, 6, 2, 1, 5, 4]
    via = np.mean([START, GOAL], axis=0) + 0.1
    answer = planner.ask(name=[NAMES[i] for i in order], start=[START[i] for i in order],
                         goal=[GOAL[i] for i in order], duration=1.7, objective=["effort", "jerk"],
                         weight=[1.0, 1e-4], waypoints=[MotionWaypoint(fraction=0.5, position=via[order])],
                         max_effort=(0.8 * IIWA.effort_limit)[order])
    assert answer.success, answer.message
    plan, trajectory = answer.plan, answer.plan.trajectory
    assert list(trajectory.joint_names) == [NAMES[i] for i in order]
    back = np.argsort(order)
    q, v, a, tau = (arrays(trajectory, field)[:, back] for field in FIELDS)
    np.testing.assert_allclose(q[[0, -1]], [START, GOAL], atol=1e-9)
    np.testing.assert_allclose(q[len(q) // 2], via, atol=1e-6)
    np.testing.assert_allclose(tau, rbd.inverse_dynamics(IIWA, q, v, a) + rbd.friction_effort(IIWA, v), atol=1e-9)
    assert np.all(np.abs(tau) <= 0.8 * IIWA.effort_limit) and np.all(np.abs(v) <= IIWA.velocity_limit)
    # what joint_trajectory_controller demands: increasing times, the last velocity 0
    t = times(trajectory)
    assert t[0] == 0.0 and np.all(np.diff(t) > 0.0) and len(t) == 171 and t[-1] == pytest.approx(1.7)
    assert not v[0].any() and not v[-1].any()
    assert plan.duration == pytest.approx(1.7) and plan.cost > 0.0 and plan.violation <= 0.0
    assert plan.kkt_residual <= 1e-6 and plan.iterations > 0 and plan.planning_time > 0.0
    used = {item.limit: item for item in plan.usage}
    assert used.keys() == {"position", "velocity", "effort"}
    worst = np.abs(tau / (0.8 * IIWA.effort_limit)).max()
    assert used["effort"].ratio == pytest.approx(worst, rel=0.01) and used["effort"].joint in NAMES


def test_free_durations_and_loads(planner):
    free = planner.ask(name=NAMES, start=START, goal=GOAL)
    bounded = planner.ask(name=NAMES, start=START, goal=GOAL, shortest_duration=1.2, longest_duration=3.0,
                          objective=["duration"])
    assert free.success and bounded.success
    assert 1.0 < free.plan.duration < 2.5 and bounded.plan.duration == pytest.approx(1.2, rel=1e-3)
    request = MotionRequest(**GOOD, payload_body="link_7")
    request.payload.m, request.payload.com.z = 5.0, 0.1
    answer = planner.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(motion=request))
    from rbd_ros.core.model.payload import payload, with_payloads
    loaded = with_payloads(IIWA, {"link_7": payload(5.0, [0.0, 0.0, 0.1], np.zeros((3, 3)))})
    q, v, a, tau = (arrays(answer.plan.trajectory, field) for field in FIELDS)
    np.testing.assert_allclose(tau, rbd.inverse_dynamics(loaded, q, v, a) + rbd.friction_effort(loaded, v), atol=1e-9)


def test_the_robot_as_it_is_now(planner):
    assert "start is empty" in planner.ask(name=NAMES, goal=GOAL).message
    answers = []

    def answered(v):
        planner.send_state(["gripper", *NAMES[::-1]], [9.0, *START[::-1]], [0.0, *v[::-1]])
        answers[:] = [planner.ask(name=NAMES, goal=GOAL, duration=1.5)]
        return answers[0]

    planner.spin_until(lambda: answered([0.0] * 7).success, "answer for the present state")
    np.testing.assert_allclose(answers[0].plan.trajectory.points[0].positions, START, atol=1e-12)
    planner.spin_until(lambda: "joint 'joint_3' moves at 0.2" in answered([0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0]).message,
                       "refusal while the robot moves")


def test_a_request_of_any_size_has_an_answer_soon(planner):
    """10,000 waypoints made a system of equations of 800 MB, which nothing ended."""
    points = [MotionWaypoint(fraction=s, position=START) for s in np.arange(1, 10_001) / 10_002]
    answer = planner.ask(**GOOD | {"waypoints": points, "time_limit": 2.0})
    assert not answer.success and "waypoints has 10000 entries, expected at most 100" in answer.message
    answer = planner.ask(**GOOD | {"external_wrenches": [NamedWrench(body="link_7")] * 10_000})
    assert not answer.success and "external_wrenches has 10000 entries, expected at most" in answer.message
    begin = time.monotonic()
    points = [MotionWaypoint(fraction=s, position=START) for s in np.arange(1, 101) / 101]
    answer = planner.ask(**GOOD | {"waypoints": points, "time_limit": 2.0})
    assert not answer.success and time.monotonic() < begin + 10.0
    assert planner.ask(**GOOD).success


def test_what_is_not_good_has_no_trajectory(planner):
    answer = planner.ask(**IMPOSSIBLE)
    assert not answer.success and not answer.plan.trajectory.points and answer.plan.violation > 0.1
    assert "times its limit at" in answer.message and "joint_1" in answer.message
    answer = planner.ask(**GOOD, max_effort=[1e3, 1e3, 1.0, 1e3, 1e3, 1e3, 1e3])
    assert not answer.success and "goal: the effort of joint 'joint_3' is -1.35" in answer.message
    answer = planner.ask(**GOOD | {"goal": GOAL[:3]})
    assert not answer.success and answer.message.startswith("goal has 3 numbers for 7 names")
    result = planner.done(planner.goal(**GOOD | {"goal": GOAL[:3]}).get_result_async())
    assert result.status == ABORTED and result.result.message.startswith("goal has 3 numbers for 7 names")


def test_an_action_tells_how_far_it_is(planner):
    feedback = []
    handle = planner.goal(feedback, **GOOD)
    result = planner.done(handle.get_result_async(), "result")
    assert result.status == SUCCEEDED and result.result.success and len(result.result.plan.trajectory.points) == 151
    planner.spin_until(lambda: feedback, "feedback")
    numbers = [message.iterations for message in feedback]
    assert numbers == sorted(numbers) and feedback[-1].cost > 0.0 and np.isfinite(feedback[-1].violation)


def test_cancel(planner):
    """Also while another one is searched for; and the service answers meanwhile, in its turn."""
    feedback = []
    first, second = planner.goal(feedback, **LONG), planner.goal(**GOOD)
    planner.spin_until(lambda: feedback, "feedback")
    for handle in (second, first):
        result, begin = handle.get_result_async(), planner.processor_time()
        planner.done(handle.cancel_goal_async(), "acceptance of the wish to cancel")
        planner.done(result, "result")
        assert planner.processor_time() < begin + SOON
        assert result.result().status == CANCELED and result.result().result.message == "cancelled"
        assert not result.result().result.plan.trajectory.points
    assert planner.ask(**GOOD).success


def test_requests_take_turns(planner):
    handles = [planner.goal(**GOOD) for _ in range(3)]
    assert planner.ask(**GOOD).success
    assert all(planner.done(handle.get_result_async()).result.success for handle in handles)
    busy = [planner.done(sent) for sent in [planner.send(**LONG) for _ in range(9)]]
    assert [handle.accepted for handle in busy] == [True] * 8 + [False]
    results = [handle.get_result_async() for handle in busy[:8]]
    for handle in busy[:8]:
        handle.cancel_goal_async()
    assert [planner.done(result).status for result in results] == [CANCELED] * 8


def test_parameters_act_from_the_next_request_on(planner):
    assert planner.set_parameter("effort_limits.scaling", 0.5).successful
    halved = planner.ask(**GOOD)
    assert planner.set_parameter("effort_limits.scaling", 1.0).successful
    assert halved.success and np.all(np.abs(arrays(halved.plan.trajectory, "effort")) <= 0.5 * IIWA.effort_limit)
    assert "payload.body" in planner.set_parameter("payload.body", "no_such_link").reason


@pytest.fixture(params=["no state", "fast states"])
def driver(request, planner):
    """Nothing, or a process that sends states without pause."""
    if request.param == "no state":
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", driver_of(1e-3, dict.fromkeys(NAMES, 0.0), {"gripper": 0.0})])
    try:
        planner.spin_until(lambda: float(planner.diagnostics.get("joint_state_age", "inf")) < 0.1, "states")
        yield
    finally:
        process.kill()
        process.wait()


def test_an_inactive_node_says_so_and_ends_its_search(planner, driver):
    feedback = []
    handle = planner.goal(feedback, **LONG)
    planner.spin_until(lambda: feedback, "feedback")
    begin = planner.processor_time()
    assert planner.change(Transition.TRANSITION_DEACTIVATE)
    result = planner.done(handle.get_result_async())
    assert planner.processor_time() < begin + SOON
    assert result.status == ABORTED and "is not active: inactive" in result.result.message
    assert "is not active: inactive" in planner.ask(**GOOD).message
    assert planner.change(Transition.TRANSITION_ACTIVATE) and planner.ask(**GOOD).success
    planner.spin_until(lambda: int(planner.diagnostics.get("good", "0")) > 0 and planner.diagnostics["waiting"] == "0",
                       "diagnostics")
    assert planner.diagnostics["defects"] == "0"


@pytest.fixture
def searching(monkeypatch):
    """A node in this process, and what its next search does."""
    steps: list[Any] = []
    with Nodes("motion_planner").started({"robot_description_file": str(rbd.sample_path("two_link"))}) as node:
        def search(task, tell, gone):
            steps.pop()()
            if gone():
                return NO_PLAN
            raise rbd.RbdError("nothing found")

        monkeypatch.setattr(node._process, "search", search)

        def response():
            request = MotionRequest(name=["shoulder", "elbow"], start=[0.3, -0.5], goal=[0.1, 0.2], duration=2.0)
            return node._plan(request, srv.PlanMotion.Response(), lambda: False, lambda progress: None)

        yield node, steps, response


def test_a_search_does_not_outlive_a_deactivation(searching):
    node, steps, response = searching

    def restart():
        assert node.trigger_deactivate() == node.trigger_activate() == TransitionCallbackReturn.SUCCESS

    steps.append(restart)
    assert response().message.endswith("was not active all the time")

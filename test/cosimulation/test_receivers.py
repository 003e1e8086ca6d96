"""Turns with a receiver that takes its commands late, and with a simulation that is reset or paused meanwhile."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from nodes.harness import BEST_EFFORT, Peer, rclpy
from rclpy.executors import SingleThreadedExecutor
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbd_interfaces.msg import JointEffort
from rbd_interfaces.srv import Reset, Step

NAMES = ["shoulder", "elbow"]
SECOND = 1_000_000_000


def answer_to(ns):
    return [np.sin(ns * 1e-9), 0.1]


class Plant(Peer):
    """Steps at once, with the torque that its controller has by then. The controller, a node with an executor of its
    own, is given a chance to take messages only once in `slowness` rounds, as in a simulator on a busy machine.
    """

    def __init__(self, slowness=1):
        super().__init__("lockstep")
        self.time, self.torque, self.log = 0, [0.0, 0.0], []
        self.states = self.node.create_publisher(JointState, "joint_states", 10)
        self.answers = self.node.create_publisher(JointEffort, "feedforward/effort", 10)
        self.node.create_service(Step, "plant/step", self.on_step)
        self.node.create_service(Reset, "plant/reset", self.on_reset)
        self.seldom, self.slowness, self.rounds = SingleThreadedExecutor(context=self.context), slowness, 0
        self.load_controller()
        executor = self.executor
        spin_once = executor.spin_once

        def spin(timeout_sec):
            spin_once(timeout_sec=min(timeout_sec, 0.002))
            self.rounds += 1
            if self.slowness and self.rounds % self.slowness == 0:
                self.seldom.spin_once(timeout_sec=0.0)

        executor.spin_once = spin

    def __exit__(self, *error):
        self.seldom.shutdown()
        self.controller.destroy_node()
        super().__exit__(*error)

    def load_controller(self):
        self.controller = rclpy.create_node("effort_controller", context=self.context)
        self.controller.create_subscription(Float64MultiArray, "effort_controller/commands", self.on_command,
                                            BEST_EFFORT)
        self.seldom.add_node(self.controller)

    def unload_controller(self):
        self.seldom.remove_node(self.controller)
        self.controller.destroy_node()

    def on_command(self, message):
        self.torque = list(message.data)

    def on_step(self, request, response):
        self.log.append((self.time, self.torque))
        self.time += request.steps * 1_000_000
        self.show()
        response.success = True
        return response

    def on_reset(self, request, response):
        self.time, self.log = 0, []
        self.show()
        response.success = True
        return response

    def show(self):
        state = JointState(name=NAMES, position=[0.0, 0.0], velocity=[0.0, 0.0], effort=self.torque)
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(self.time, SECOND)
        self.states.publish(state)
        self.answers.publish(JointEffort(header=state.header, name=NAMES, effort=answer_to(self.time)))

    def late(self):
        """Turns that began with another torque than the answer to their state."""
        return [ns for ns, torque in self.log if torque != answer_to(ns)]


LOCKSTEP = {"plant": "plant", "controller": "effort_controller", "steps": 2}
ASKED = {**LOCKSTEP, "receivers": ["effort_controller"]}


@pytest.mark.usefixtures("each_control_loop")
def test_no_step_is_made_before_the_controller_has_the_command(start):
    with Plant(slowness=5) as plant:
        process = start("lockstep", **ASKED)
        plant.spin_until(lambda: len(plant.log) > 25, "25 turns")
        assert not plant.late()
        plant.slowness = 0    # it takes nothing any more
        plant.spin_until(lambda: plant.diagnostics.get("mode") == "sending", "command without a receipt")
        made = len(plant.log)
        begin = plant.rounds
        plant.spin_until(lambda: plant.rounds > begin + 50, "rounds")
        assert len(plant.log) == made
        plant.slowness = 3
        plant.spin_until(lambda: len(plant.log) > made + 10, "further turns")
        assert not plant.late() and plant.diagnostics["late_commands"] == "0"
        assert process.end() == 0


def test_without_the_question_such_a_controller_is_late(start):
    """So the test above finds what it is to find."""
    with Plant(slowness=5) as plant:
        start("lockstep", **LOCKSTEP)
        plant.spin_until(lambda: len(plant.log) > 25, "25 turns")
        assert len(plant.late()) > 5


def test_a_controller_that_does_not_answer_is_named(start):
    with Plant(slowness=1) as plant:
        process = start("lockstep", **ASKED, patience=2.0)
        plant.spin_until(lambda: len(plant.log) > 5, "turns")
        plant.slowness = 0
        plant.spin_until(lambda: "no steps are made" in process.output(), "warning")
        assert "no answer on /effort_controller/get_parameters to what followed" in process.output()
        made = len(plant.log)
        plant.slowness = 1
        plant.spin_until(lambda: len(plant.log) > made + 5, "turns")
        assert not plant.late()


def test_a_controller_that_is_loaded_again_gets_what_follows(start):
    with Plant() as plant:
        process = start("lockstep", **ASKED)
        plant.spin_until(lambda: len(plant.log) > 5, "turns")
        plant.unload_controller()
        plant.spin_until(lambda: "whoever takes the commands is gone" in process.output(), "warning")
        assert not plant.late()
        plant.load_controller()
        plant.log.clear()
        plant.spin_until(lambda: len(plant.log) > 10, "turns")
        assert not plant.late()


def test_after_a_reset_of_the_simulation_turns_begin_anew(start):
    with Plant() as plant:
        process = start("lockstep", **ASKED)
        for count in (30, 20):
            plant.spin_until(lambda count=count: len(plant.log) > count, "turns")
            stamps = [ns for ns, _ in plant.log]
            assert all(after - before == 2_000_000 for before, after in itertools.pairwise(stamps))
            assert not plant.late()
            plant.on_reset(Reset.Request(), Reset.Response())    # by somebody else
        plant.spin_until(lambda: plant.diagnostics.get("resets") == "2", "diagnostics")
        assert process.output().count("to 0.000 s: turns begin anew") == 2


def test_a_reset_without_states_says_once_what_to_do(start):
    """As in Gazebo, which takes out what was spawned."""
    with Peer("lockstep") as peer:
        clock = peer.node.create_publisher(Clock, "/clock", 10)
        states = peer.node.create_publisher(JointState, "joint_states", 10)
        process = start("lockstep", stepper="none", use_sim_time=True)

        def show(ns):
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(ns, SECOND)
            clock.publish(message)

        times = itertools.count(20 * SECOND, 1_000_000)
        peer.spin_until(lambda: clock.get_subscription_count() and states.get_subscription_count()
                        and peer.status == "active", "node", lambda: show(next(times)))
        times = itertools.count(0, 1_000_000)
        peer.spin_until(lambda: "no joint state since" in peer.status, "notice", lambda: show(next(times)))
        assert peer.level == "WARN" and peer.diagnostics["resets"] == "1"
        assert "went back by 2" in process.output()
        assert process.output().count("end gazebo.launch.py and start it again") == 1

        def show_states():
            show(ns := next(times))
            state = JointState(name=NAMES, position=[0.0, 0.0])
            state.header.stamp.nanosec = ns
            states.publish(state)

        peer.spin_until(lambda: peer.status == "active", "end of the notice", show_states)
        assert process.output().count("went back") == 1


def test_a_pause_of_the_simulation_is_logged_when_it_goes_on(start):
    with Peer("lockstep") as peer:
        states = peer.node.create_publisher(JointState, "joint_states", 10)
        process = start("lockstep", stepper="none")

        def show(ns):
            state = JointState(name=NAMES, position=[0.0, 0.0])
            state.header.stamp.sec, state.header.stamp.nanosec = divmod(ns, SECOND)
            states.publish(state)

        times = itertools.count(5 * SECOND, 1_000_000)
        peer.spin_until(lambda: states.get_subscription_count() and peer.status == "active", "node")
        reports = []
        peer.spin_until(lambda: len(reports) > 40, "states", lambda: (show(next(times)), reports.append(0)))
        reports.clear()
        stands = next(times)
        peer.spin_until(lambda: len(reports) > 100, "pause of two seconds", lambda: (show(stands), reports.append(0)))
        assert "stood still" not in process.output()
        peer.spin_until(lambda: "stood still at 5.04" in process.output(), "line", lambda: show(next(times)))
        peer.spin_until(lambda: int(peer.diagnostics["pauses"]) > 0, "diagnostics")

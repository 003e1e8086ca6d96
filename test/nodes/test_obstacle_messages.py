"""Obstacles of visualization_msgs and moveit_msgs over DDS, markers of what is kept apart, and goals that hit refused.

The messages are built from their published definitions where the packages are not installed.
"""
from __future__ import annotations

import pytest
from built_messages import OF_SCENES, OF_TRAJECTORIES, built
from geometry_msgs.msg import Point
from harness import LATCHED, RELIABLE, Peer
from rclpy.action import ActionClient, ActionServer
from support.arm import NAMES, shaped_arm_urdf
from test_obstacles_topic import REQUEST, from_ball, shaped_arm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbd_interfaces import srv
from rbd_interfaces.msg import MotionRequest

pytestmark = pytest.mark.thorough    # the packages take a minute to build


@pytest.fixture(scope="module", autouse=True)
def packages():
    pytest.importorskip("coal")
    with built((*OF_SCENES, *OF_TRAJECTORIES)):
        yield


def marker(kind=2, xyz=(0.72, 0.0, 0.0), size=0.1, frame="base", **fields):
    from visualization_msgs.msg import Marker
    message = Marker(type=kind, ns="ball", **fields)
    message.header.frame_id = frame
    message.pose.position.x, message.pose.position.y, message.pose.position.z = xyz
    message.scale.x = message.scale.y = message.scale.z = size
    return message


class Planner:
    def __init__(self, peer):
        self.peer = peer
        peer.spin_until(lambda: peer.status == "active", "active node")

    def reports(self, **values):
        self.peer.spin_until(lambda: all(self.peer.diagnostics.get(key) == value for key, value in values.items()),
                             f"{values}")

    def ask(self, **fields):
        return self.peer.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(
            motion=MotionRequest(**REQUEST | fields)))

    def nearest(self):
        return from_ball(self.ask())


def test_motions_go_around_markers_and_markers_show_what_hits(start_node, tmp_path, private_domain):
    from visualization_msgs.msg import Marker, MarkerArray
    start_node("motion_planner", robot_description_file=shaped_arm(tmp_path), time_limit=60.0,
               collisions__marker_topic="/camera/things", collisions__show=True)
    shown: list = []
    with Peer("motion_planner") as peer:
        planner = Planner(peer)
        publisher = peer.node.create_publisher(MarkerArray, "/camera/things", RELIABLE)
        peer.node.create_subscription(MarkerArray, "motion_planner/collision_markers", shown.append, LATCHED)
        peer.spin_until(lambda: shown and publisher.get_subscription_count(), "markers")
        # a capsule on each link: a cylinder and two balls in the frame of the link
        assert [(each.header.frame_id, each.type, each.action) for each in shown[0].markers[1:]] == [
            (link, kind, 0) for link in ("upper", "lower") for kind in (3, 2, 2)]
        first = shown[0].markers[1]
        assert (first.scale.x, first.scale.z, first.pose.position.x) == pytest.approx((0.06, 0.3, 0.2))
        assert shown[0].markers[0].action == Marker.DELETEALL and first.frame_locked
        assert planner.nearest() < -0.05

        publisher.publish(MarkerArray(markers=[marker()]))
        planner.reports(obstacles="1", collision_pairs="2")
        assert 0.01 - 1e-6 <= planner.nearest() < 0.1
        peer.spin_until(lambda: len(shown[-1].markers) == 8, "marker of the ball")
        ball = shown[-1].markers[-1]
        assert (ball.type, ball.header.frame_id, ball.ns, ball.pose.position.x) == (2, "base", "obstacles", 0.72)
        assert not any(red(each) for each in shown[-1].markers)
        # red where it hits
        answer = planner.ask(goal=[0.0, 0.0])
        assert not answer.success and "goal: 'lower' and 'ball/0' overlap by 0.08 m" in answer.message
        peer.spin_until(lambda: sum(map(red, shown[-1].markers)) == 4, "red markers")
        assert {each.header.frame_id for each in shown[-1].markers if red(each)} == {"lower", "base"}
        assert planner.ask().success
        peer.spin_until(lambda: not any(map(red, shown[-1].markers)), "no red markers")

        # what a stranger sends
        hostile = [marker(frame="camera_link"), marker(xyz=(float("nan"), 0.0, 0.0)), marker(size=float("inf")),
                   marker(kind=0), marker(kind=10, mesh_resource="file:///etc/passwd"),
                   marker(kind=6, points=[Point()] * 300), marker(kind=11, points=[Point()] * 3)]
        for number, each in enumerate(hostile, 1):
            publisher.publish(MarkerArray(markers=[marker(id=7, xyz=(5.0, 0.0, 0.0)), each]))
            planner.reports(rejected_total=str(number), obstacles="1")
        publisher.publish(MarkerArray(markers=[marker(kind=6, points=[Point()] * 3000)]))    # beyond 64 KiB
        planner.reports(rejected_total=str(len(hostile) + 1), obstacles="1")
        publisher.publish(MarkerArray(markers=[marker(action=Marker.DELETEALL)]))
        planner.reports(obstacles="0", collision_pairs="0")


def red(marker):
    return marker.color.r > 0.8 and marker.color.g < 0.2


def test_goals_that_hit_what_moveit_knows_are_refused(start_node, tmp_path, private_domain):
    """The worked example of docs/collision.md: a planning scene, and goals as MoveIt sends them."""
    from control_msgs.action import FollowJointTrajectory
    from moveit_msgs.msg import AllowedCollisionEntry, AttachedCollisionObject, CollisionObject, PlanningScene
    from shape_msgs.msg import SolidPrimitive
    process = start_node(
        "effort_annotator", robot_description_file=shaped_arm(tmp_path), action__controller="/arm",
        collisions__reject=True, collisions__scene_topic="/monitored_planning_scene", collisions__frame="world")
    received: list = []
    with Peer("effort_annotator") as peer:
        def arrived(goal):
            received.append(goal.request)
            goal.succeed()
            return FollowJointTrajectory.Result()

        server = ActionServer(peer.node, FollowJointTrajectory, "/arm/follow_joint_trajectory", arrived)
        client = ActionClient(peer.node, FollowJointTrajectory, "effort_annotator/follow_joint_trajectory")
        publisher = peer.node.create_publisher(PlanningScene, "/monitored_planning_scene", RELIABLE)
        peer.spin_until(lambda: peer.status == "active" and client.server_is_ready() and
                        publisher.get_subscription_count(), "active node")

        def stage(things=(), held=(), **fields):
            message = PlanningScene(is_diff=True, **fields)
            message.robot_state.is_diff = True
            message.world.collision_objects, message.robot_state.attached_collision_objects = list(things), list(held)
            publisher.publish(message)
            return message

        def reports(**values):
            peer.spin_until(lambda: all(peer.diagnostics.get(key) == value for key, value in values.items()),
                            f"{values}")

        def send(*positions):
            trajectory = JointTrajectory(joint_names=NAMES)
            for k, q in enumerate(positions):
                point = JointTrajectoryPoint(positions=q, velocities=[0.0, 0.0])
                point.time_from_start.sec = k
                trajectory.points.append(point)
            answer = client.send_goal_async(FollowJointTrajectory.Goal(trajectory=trajectory))
            peer.spin_until(answer.done, "answer to the goal")
            return answer.result().accepted

        def thing(frame, x, radius=0.05, name="ball"):
            item = CollisionObject(id=name, primitives=[SolidPrimitive(type=SolidPrimitive.SPHERE,
                                                                       dimensions=[radius])])
            item.header.frame_id = frame
            item.pose.position.x = x
            item.primitive_poses = [type(item.pose)()]
            return item

        across = [-0.5, 0.0], [0.5, 0.0]
        peer.spin_until(lambda: send(*across), "goal that passes: the controller is seen")
        peer.spin_until(lambda: received, "goal at the controller")
        assert len(received[-1].trajectory.points[0].effort) == 2
        stage([thing("world", 0.72)])
        reports(obstacles="1", collision_pairs="2")
        count = len(received)
        assert not send(*across)
        reports(hitting="1", rejected_hitting="1")
        assert "goal rejected: 'lower' and 'ball' overlap by 0.0" in process.output()
        assert peer.diagnostics["last_hit"].startswith("'lower' and 'ball' overlap by 0.0")
        assert send([-0.5, 0.0], [-0.4, 0.0])    # which stays away
        # a matrix of allowed collisions, as MoveIt sends one before it grasps
        scene = PlanningScene(is_diff=True)
        scene.robot_state.is_diff = True
        scene.allowed_collision_matrix.entry_names = ["ball", "lower"]
        scene.allowed_collision_matrix.entry_values = [AllowedCollisionEntry(enabled=row) for row in (
            [False, True], [True, False])]
        publisher.publish(scene)
        reports(collision_pairs="1")
        assert send(*across)
        peer.spin_until(lambda: len(received) == count + 2, "goals at the controller")
        # grasped: it moves with the link, and hits what stands beside
        held = AttachedCollisionObject(link_name="lower", object=thing("lower", 0.45, 0.04), touch_links=["lower"])
        stage([thing("base", 0.85, 0.02, "cup")], [held])
        reports(obstacles="2")
        assert not send(*across)
        reports(rejected_hitting="2")
        assert "'cup' and 'ball' overlap" in process.output() or "'ball' and 'cup' overlap" in process.output()
        # what a stranger sends
        for number, wrong in enumerate((thing("camera", 1.0), thing("world", float("nan")),
                                        thing("world", 1.0, -1.0), thing("world", 1.0, name="x" * 100)), 3):
            stage([wrong])
            reports(rejected_total=str(number), obstacles="2")
        server.destroy()
        assert process.end() == 0 and "Traceback" not in process.output()


def test_without_the_packages_the_configuration_names_them(start_node, tmp_path, private_domain, monkeypatch):
    """Not asked for, they are not needed; the description is that of an arm with shapes."""
    monkeypatch.setenv("PYTHONPATH", ":".join(part for part in __import__("os").environ.get("PYTHONPATH", "").split(":")
                                              if "_msgs" not in part))
    assert "<collision>" in shaped_arm_urdf()
    process = start_node("motion_planner", robot_description_file=shaped_arm(tmp_path),
                         collisions__scene_topic="/monitored_planning_scene")
    with Peer("motion_planner") as peer:
        peer.spin_until(lambda: "parameter 'collisions.scene_topic' needs moveit_msgs/PlanningScene, but there is no "
                        "package 'moveit_msgs' here" in peer.status or peer.status == "active", "status")
        if peer.status == "active":
            pytest.skip("moveit_msgs is installed")
        assert process.end() == 0

"""The pictures of docs/view.md, from a real browser: `scripts/run python docs/images/view.py [NAME…]`.

Needs Chromium with its chromedriver, and the robots of example-robot-data (`scripts/setup --peers`).
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "test"))
from support.browser import browser, check, open_tab, visit  # noqa: E402
from support.robots import urdf_paths  # noqa: E402

import rbd_ros as rbd  # noqa: E402
from rbd_ros.cli.view import view as command  # noqa: E402
from rbd_ros.core.lie import se3  # noqa: E402
from rbd_ros.core.model.files.packages import package_folders  # noqa: E402
from rbd_ros.view.drawing import place_camera  # noqa: E402
from rbd_ros.view.serving import end, open_server  # noqa: E402

PANDA = "panda_description/panda"
BENT = {"panda_joint2": 0.5, "panda_joint4": -1.6, "panda_joint6": 2.2}
SETTLE = 6.0    # s for the browser to draw, without a graphics card


def made(*words: str) -> Any:
    """The view that these arguments of `rbd view` make."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.make(parser.parse_args([*words, "--port", "0"]))


def pose(view: Any, **joints: float) -> None:
    """Joints to these positions."""
    q = view.q.copy()
    for name, value in joints.items():
        q[view.model.joint(name).idx_q] = value
    view.set_sliders(q)
    view.move(q)


def shoot(driver: Any, name: str) -> None:
    """Write the picture."""
    time.sleep(SETTLE)
    path = HERE / f"{name}.png"
    driver.save_screenshot(str(path))
    from PIL import Image
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} kB")


def arm(driver: Any) -> None:
    view = made(str(urdf_paths()[PANDA]))
    pose(view, **BENT)
    visit(driver, view.server)
    shoot(driver, "view_arm")
    end(view.server)


def inertia(driver: Any) -> None:
    view = made(str(urdf_paths()[PANDA]))
    pose(view, **BENT)
    visit(driver, view.server)
    open_tab(driver, "Show")
    check(driver, "boxes of inertia", "centres of mass")
    shoot(driver, "view_inertia")
    end(view.server)


def findings(driver: Any) -> None:
    view = made("iiwa")
    pose(view, joint_2=0.8, joint_4=-1.2, joint_6=0.7)
    visit(driver, view.server)
    open_tab(driver, "Findings")
    shoot(driver, "view_findings")
    end(view.server)


def loops(driver: Any) -> None:
    view = made("delta", "--actuated", "motor_1", "motor_2", "motor_3")
    visit(driver, view.server)
    shoot(driver, "view_loops")
    end(view.server)


def motion(driver: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "swing.csv")
        model = rbd.sample("iiwa")
        t = np.linspace(0.0, 1.1, 401)
        wave = np.array([0.6, 0.9, 0.3, 1.1, 0.4, 0.6, 0.8])
        rate = 2.0 * np.pi / 1.1
        q = wave * (1.0 - np.cos(rate * t))[:, None]
        v, a = wave * rate * np.sin(rate * t)[:, None], wave * rate**2 * np.cos(rate * t)[:, None]
        tau = rbd.inverse_dynamics(model, q, v, a) * 3.3    # it carries what the model does not know
        names = [f"{kind}_{joint}" for kind in ("q", "v", "a", "tau") for joint in model.joint_names]
        np.savetxt(file, np.hstack([t[:, None], q, v, a, tau]), delimiter=",", header="t," + ",".join(names),
                   comments="")
        view = made("iiwa", "--play", str(file))
    view.player.seek(0.5)
    visit(driver, view.server)
    open_tab(driver, "Motion")
    shoot(driver, "view_motion")
    end(view.server)


def swing(listener: Any, q: Any, space: str) -> None:
    """Send the simulated arm a slow motion."""
    from builtin_interfaces.msg import Duration
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    message = JointTrajectory(joint_names=[f"joint_{i}" for i in range(1, 8)])
    message.points = [JointTrajectoryPoint(positions=[-0.5, 1.1, 0.2, -0.6, 0.3, 0.6, 0.0],
                                           velocities=[0.0] * 7, time_from_start=Duration(sec=60))]
    publisher = listener._own.create_publisher(JointTrajectory, f"{space}/feedforward/joint_trajectory", 1)
    time.sleep(2.0)
    publisher.publish(message)


def live(driver: Any) -> None:
    from rbd_ros.cli.processes import NodeProcesses
    from rbd_ros.nodes.watching.view_listener import ViewListener
    from rbd_ros.runtime.observed_robot import ObservedRobot
    from rbd_ros.view.live import LiveView

    space = f"/pictures_{os.getpid()}"
    common = {"robot_description_file": str(rbd.sample_path("iiwa"))}
    gains = {"gains.kp": [300.0, 600.0, 50.0, 200.0, 4.0, 5.0, 1.0], "gains.kd": [30.0, 60.0, 5.0, 20.0, 0.4, 0.5, 0.1]}
    with tempfile.TemporaryDirectory() as folder, NodeProcesses(Path(folder), space) as processes:
        processes.start("simulator", common | {"initial_position": [0.3, 0.7, 0.2, -1.1, 0.3, 0.6, 0.0],
                                               "publish_rate": 250.0, "wait_for_command": 0.5})
        processes.start("feedforward", common | gains | {
            "adapters": ["joint_state"], "joint_state.topic": f"{space}/simulator/effort_commands",
            "feedback.max_age": float("inf"), "state_timeout": 1.0})
        listener = ViewListener(f"{space}/feedforward")
        view = made("iiwa", "--live")
        shown = LiveView(view, listener, ObservedRobot(view.model, f"{space}/feedforward", view.q))
        visit(driver, view.server)
        swing(listener, view.q, space)
        until = time.monotonic() + 9.0
        while time.monotonic() < until:
            shown.step()
            time.sleep(0.03)
        shoot(driver, "view_live")
        end(view.server)
        listener.close()


def demo(driver: Any) -> None:
    from rbd_ros.cli.demo_tracking import MODES
    from rbd_ros.cli.view.demo_view import run_of
    from rbd_ros.view.scene import load_scene
    from rbd_ros.view.side_by_side import SideBySide

    folder = Path("output", "demo")    # of `scripts/demo`
    scene = load_scene(rbd.sample_path("iiwa"))
    server = open_server(port=0, title="rbd demo")
    runs = SideBySide(server, scene, {title: run_of(folder / f"{key}.npz", scene.model, title)
                                      for key, (title, _) in MODES.items()})
    runs.player.seek(1.2)
    visit(driver, server)
    shoot(driver, "view_demo")
    end(server)


def boxes(**sizes: tuple[list[float], list[float]]) -> str:
    """YAML text of boxes: sizes and positions by name."""
    return "obstacles:\n" + "".join(f"- {{name: {name}, shape: box, size: {size}, frame: {place}}}\n"
                                    for name, (size, place) in sizes.items())


TABLE = boxes(table=([0.9, 1.4, 0.05], [0.6, 0.0, 0.0]), crate=([0.25, 0.2, 0.18], [0.55, 0.3, 0.115]))
SHELF = boxes(**{f"board_{k}": ([0.35, 0.9, 0.03], [0.68, 0.0, z]) for k, z in enumerate((0.1, 0.45, 0.8))},
              left=([0.35, 0.03, 0.73], [0.68, 0.45, 0.45]), right=([0.35, 0.03, 0.73], [0.68, -0.45, 0.45]),
              back=([0.02, 0.93, 0.73], [0.865, 0.0, 0.45]))


def beside(text: str, folder: Path) -> Path:
    """Two arms of a description in one, 0.9 m apart, facing each other."""
    tree = ElementTree.fromstring(text)
    both = ElementTree.Element("robot", name="cell")
    ElementTree.SubElement(both, "link", name="cell")
    for side, y, yaw in (("left", 0.45, -0.9), ("right", -0.45, 0.9)):
        arm = ElementTree.fromstring(ElementTree.tostring(tree))
        for element in arm.iter():
            for key in ("name", "link", "joint"):
                if key in element.attrib and element.tag in ("link", "joint", "parent", "child", "mimic"):
                    element.set(key, f"{side}_{element.get(key)}")
        both.extend(element for element in arm if element.tag in ("link", "joint"))
        root = next(iter({link.get("name") for link in arm.findall("link")} -
                         {joint.find("child").get("link") for joint in arm.findall("joint")}))
        mount = ElementTree.SubElement(both, "joint", name=f"{side}_mount", type="fixed")
        ElementTree.SubElement(mount, "parent", link="cell")
        ElementTree.SubElement(mount, "child", link=root)
        ElementTree.SubElement(mount, "origin", xyz=f"0 {y} 0", rpy=f"0 0 {yaw}")
    path = folder / "cell.urdf"
    path.write_bytes(ElementTree.tostring(both))
    return path


def surrounded(driver: Any, name: str, description: str, cell: str, tab: str, bent: dict[str, float],
               hands: dict[str, tuple[list[float], list[float]]], look: tuple[float, float, float]) -> None:
    """A picture of a robot and what stands around it. bent: positions of joints; hands: from there, positions and roll,
    pitch, yaw of links. look: from where, relative to the size of the scene.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cell.yaml")
        file.write_text(cell)
        view = made(description, "--obstacles", str(file))
    pose(view, **bent, **{name: 0.03 for name in view.model.joint_names if "finger" in name})
    q = view.q
    for body, (xyz, rpy) in hands.items():
        q = rbd.inverse_kinematics(view.model, body, se3.pose(xyz, rpy), q).q
    view.set_sliders(q)
    view.move(q)
    place_camera(view.server.initial_camera, *view.scene.bounds(q), look)
    visit(driver, view.server)
    if tab == "Show":
        open_tab(driver, "Show")
        check(driver, "collision shapes")
    open_tab(driver, tab)
    shoot(driver, name)
    end(view.server)


DOWN, AHEAD = [np.pi, 0.0, -np.pi / 4.0], [0.0, np.pi / 2.0, 0.0]


def table(driver: Any) -> None:
    surrounded(driver, "collision_table", str(urdf_paths()[PANDA]), TABLE, "Obstacles", BENT,
               {"panda_hand": ([0.55, 0.17, 0.25], DOWN)}, (0.7, -0.9, 0.5))


def shelf(driver: Any) -> None:
    surrounded(driver, "collision_shelf", str(urdf_paths()[PANDA]), SHELF, "Show", BENT,
               {"panda_hand": ([0.62, 0.1, 0.62], AHEAD)}, (-0.7, -1.4, 0.5))


def two_arms(driver: Any) -> None:
    path = urdf_paths()[PANDA]
    with tempfile.TemporaryDirectory() as folder, package_folders([str(path.parents[3])]):
        surrounded(driver, "collision_two_arms", str(beside(path.read_text(), Path(folder))),
                   boxes(table=([0.9, 0.8, 0.05], [0.75, 0.0, 0.0])), "Obstacles",
                   {f"{side}_{joint}": value for side in ("left", "right") for joint, value in BENT.items()},
                   {"left_panda_hand": ([0.6, 0.08, 0.3], DOWN), "right_panda_hand": ([0.6, -0.02, 0.36], DOWN)},
                   (1.2, -0.6, 0.5))


PICTURES = {"table": table, "shelf": shelf, "two_arms": two_arms, "arm": arm, "inertia": inertia, "findings": findings,
            "loops": loops, "motion": motion, "live": live, "demo": demo}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        with browser() as found:
            PICTURES[wanted](found)

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

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "test"))
from support.browser import browser, check, open_tab, visit  # noqa: E402
from support.robots import urdf_paths  # noqa: E402

import rbd_ros as rbd  # noqa: E402
from rbd_ros.cli.view import view as command  # noqa: E402
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


PICTURES = {"arm": arm, "inertia": inertia, "findings": findings, "loops": loops, "motion": motion, "live": live,
            "demo": demo}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        with browser() as found:
            PICTURES[wanted](found)

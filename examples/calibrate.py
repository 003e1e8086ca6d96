"""The commands of docs/calibration.md, one by one, with a simulated arm in place of the robot.

    python3 examples/calibrate.py ur|franka|mit [FOLDER]

What a robot would record is computed: torques of a model that differs from its description, friction, noise, encoders,
unknown gains. Everything else is as on an arm: the commands, the bags, the files in FOLDER (calibration_ARM). Needs the
package rosbags. The arms are those of example-robot-data; without that package, the iiwa stands in for each.
Exit code 0: the float test fails before and passes after the calibration.
"""
import shlex
import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

import rbd_ros as rbd

RATE = 100.0               # joint states per second
ENCODER = 2e-5             # rad, resolution
NOISE = 0.005              # of efforts, over the largest of each joint
RUBBING = 0.02, 0.02       # Coulomb and viscous friction over the effort limit: N m, N m s/rad
COMMANDS = {
    "ur": """\
rbd excite my_arm.urdf --acceleration 5 --velocity 0.5 --seconds 15 -o fast.yaml
rbd excite my_arm.urdf --poses 8 --speed 0.6 -o slow.yaml
ros2 bag record -o unloaded_bag /joint_states
python3 examples/play_motion.py fast.yaml /my_controller/joint_trajectory
ros2 bag record -o slow_bag /joint_states
python3 examples/play_motion.py slow.yaml /my_controller/joint_trajectory
ros2 bag record -o loaded_bag /joint_states    # with the load at the flange
python3 examples/play_motion.py fast.yaml /my_controller/joint_trajectory
rbd float my_arm.urdf slow_bag
rbd identify my_arm.urdf unloaded_bag --known-load load.yaml --loaded loaded_bag --write-gains gains.yaml \\
    --drives -o new.urdf --parameters nodes.yaml --report report.html
rbd float new.urdf slow_bag --gains gains.yaml --report float.html
""",
    "franka": """\
rbd excite my_arm.urdf --lock panda_finger_joint1 --acceleration 5 --velocity 0.5 --seconds 15 -o fast.yaml
rbd excite my_arm.urdf --lock panda_finger_joint1 --poses 8 --speed 0.6 -o slow.yaml
ros2 bag record -o fast_bag /joint_states
python3 examples/play_motion.py fast.yaml /my_controller/joint_trajectory
ros2 bag record -o slow_bag /joint_states
python3 examples/play_motion.py slow.yaml /my_controller/joint_trajectory
rbd float my_arm.urdf slow_bag --lock panda_finger_joint1 --slowest 0 --body panda_hand
rbd identify my_arm.urdf fast_bag --lock panda_finger_joint1 --slowest 0 --prior 1 \\
    -o new.urdf --parameters nodes.yaml --report report.html
rbd float new.urdf slow_bag --lock panda_finger_joint1 --slowest 0 --report float.html
""",
    "mit": """\
rbd excite my_arm.urdf --lock jointGripper --poses 20 --speed 0.6 -o poses.yaml
rbd excite my_arm.urdf --lock jointGripper --poses 8 --speed 0.6 -o slow.yaml
ros2 bag record -o unloaded_bag /joint_states
python3 examples/play_motion.py poses.yaml /my_controller/joint_trajectory
ros2 bag record -o slow_bag /joint_states
python3 examples/play_motion.py slow.yaml /my_controller/joint_trajectory
ros2 bag record -o loaded_bag /joint_states    # with the load at the gripper
python3 examples/play_motion.py poses.yaml /my_controller/joint_trajectory
rbd float my_arm.urdf slow_bag --lock jointGripper
rbd identify my_arm.urdf unloaded_bag --known-load load.yaml --loaded loaded_bag --write-gains gains.yaml \\
    --lock jointGripper -o new.urdf --parameters nodes.yaml --report report.html
rbd float new.urdf slow_bag --lock jointGripper --gains gains.yaml --report float.html
"""}


class Arm(NamedTuple):
    """The true arm. source: of its description; body: that carries the load; locked: joint; heavier: than described, a
    factor; rotor: kg m²; gains: true over recorded effort, of as many joints as are given, else 1; load_friction: share
    of what a gear carries; load: kg; mounted: kg at the body that the description lacks.
    """

    source: str
    body: str
    locked: str
    heavier: float
    rotor: float
    gains: tuple[float, ...]
    load_friction: float
    load: float
    mounted: float


ARMS = {"ur": Arm("ur5_robot.urdf", "tool0", "", 1.15, 0.1, (11.0, 11.5, 11.2, 8.1, 8.3, 8.0), 0.05, 3.0, 0.0),
        "franka": Arm("panda.urdf", "panda_hand", "panda_finger_joint1", 1.0, 0.1, (), 0.0, 0.0, 0.5),
        "mit": Arm("z1.urdf", "gripperStator", "jointGripper", 1.1, 0.01, (1.0, 1.3, 1.3), 0.0, 1.0, 0.0)}
PACKAGE = "example-robot-data"
STAND_IN = "link_7"    # body of the iiwa


def description(name: str) -> Path | None:
    """A file of example-robot-data; None where it is not installed."""
    try:
        return next(Path(str(file.locate())) for file in files(PACKAGE) or () if file.name == name)
    except (PackageNotFoundError, StopIteration):
        return None


class Robot:
    """The arm that is simulated, with its bags in a folder."""

    def __init__(self, arm: Arm, urdf: Path, folder: Path) -> None:
        self.arm, self.folder = arm, folder
        model = rbd.load_urdf(urdf, locked={arm.locked: 0.0} if arm.locked else {})
        self.joints, self.gains = model.joint_names, np.ones(model.nv)
        self.gains[:len(arm.gains)] = arm.gains
        self.rubs = {"armature": arm.rotor, "friction": RUBBING[0] * model.effort_limit,
                     "damping": RUBBING[1] * model.effort_limit}
        self.bare = self.carrying(model.with_scaled_masses(arm.heavier), arm.mounted)

    def carrying(self, model: rbd.RobotModel, mass: float) -> rbd.RobotModel:
        if mass:
            model = model.with_payload(self.arm.body, rbd.Inertia(mass, [0.03, 0.02, 0.04], 0.001 * mass * np.eye(3)))
        return model.with_(**self.rubs)

    def play(self, motion: str, bag: str) -> None:
        """Write what the drives report while the motion is played, with the load if the bag says so."""
        from scipy.interpolate import make_interp_spline

        points = yaml.load((self.folder / motion).read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["points"]
        times = [point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"] for point in points]
        spline = make_interp_spline(times, [point["positions"] for point in points], k=5)
        t = np.arange(0.0, times[-1], 1.0 / RATE)
        q, v, a = (spline(t, nu=order) for order in range(3))
        model = self.carrying(self.bare, self.arm.load) if bag.startswith("loaded") else self.bare
        carried = rbd.inverse_dynamics(model, q, v, a)
        effort = carried + rbd.friction_effort(model, v) + self.arm.load_friction * np.abs(carried) * np.tanh(v / 0.01)
        effort /= self.gains
        effort += NOISE * np.abs(effort).max(axis=0) * np.random.default_rng(len(bag)).normal(size=effort.shape)
        write_bag(self.folder / bag, t, ENCODER * np.round(q / ENCODER), effort, list(self.joints))


def write_bag(path: Path, t: np.ndarray, q: np.ndarray, effort: np.ndarray, joints: list[str]) -> None:
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    State, Header, Time = (store.types[name] for name in (
        "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
    with Writer(path, version=9) as writer:
        connection = writer.add_connection("/joint_states", State.__msgtype__, typestore=store)
        for time, position, value in zip(t, q, effort, strict=True):
            stamp = round(1e9 * time) + 10**18
            message = State(Header(Time(*divmod(stamp, 10**9)), ""), joints, position, np.zeros(0), value)
            writer.write(connection, stamp, store.serialize_cdr(message, State.__msgtype__))


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ARMS:
        raise SystemExit(__doc__)
    kind = sys.argv[1]
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else f"calibration_{kind}")
    if folder.exists():
        raise SystemExit(f"{folder} is there already: name a new folder")
    warnings.simplefilter("ignore", rbd.RbdWarning)
    arm, commands, source = ARMS[kind], COMMANDS[kind], description(ARMS[kind].source)
    if source is None:
        commands = commands.replace(f" --lock {arm.locked}", "").replace(arm.body, STAND_IN)
        arm, source = arm._replace(body=STAND_IN, locked=""), rbd.sample_path("iiwa")
    folder.mkdir(parents=True)
    urdf = folder / "my_arm.urdf"
    package = next((path for path in source.parents if path.name == PACKAGE), source.parent)
    text = source.read_text(encoding="utf-8").replace(f"package://{PACKAGE}", package.as_uri())
    urdf.write_text(text, encoding="utf-8")
    if arm.load:
        (folder / "load.yaml").write_text(f"body: {arm.body}\nmass: {arm.load}\n", encoding="utf-8")
    robot, bag, verdicts = Robot(arm, urdf, folder), "", []
    print(f"a SIMULATED arm in place of a robot: {source.name}; files in {folder}")
    for command in commands.replace(" \\\n   ", "").splitlines():
        print(f"\n$ {command}", flush=True)
        program, *words = shlex.split(command, comments=True)
        if program == "ros2":
            bag = words[words.index("-o") + 1]
        elif program == "python3":
            robot.play(words[1], bag)
            print(f"(simulated) {bag}")
        else:
            status = subprocess.run([sys.executable, "-m", "rbd_ros.cli.main", *words], cwd=folder).returncode
            if words[0] == "float":
                verdicts.append(status == 0)
            elif status:
                raise SystemExit(f"rbd {words[0]} ended with {status}")
    before, after = ("pass" if passed else "fail" for passed in verdicts)
    print(f"\nfloat test of the simulated arm: before {before}, after {after}")
    return 0 if verdicts == [False, True] else 1


if __name__ == "__main__":
    sys.exit(main())

"""docs/mit_arms.md: its classes for the drivers of YAM and Piper, against stand-ins of these drivers.

The stand-ins code their messages as the drivers' sources do: Damiao's, which clips and truncates, and Piper's with 8
bits for the torque, which wraps.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.damiao import decoded

import rbd_ros as rbd

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/mit_arms.md").read_text(encoding="utf-8"), re.DOTALL)
sys.path.insert(0, str(ROOT / "examples"))
import mit_arm  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning"), pytest.mark.closed_loop]
LIMITS = np.array([28.0, 28.0, 28.0, 10.0, 10.0, 10.0])
KP, KD = [80.0, 80.0, 80.0, 10.0, 10.0, 10.0], [5.0, 5.0, 5.0, 1.5, 1.5, 1.5]
START = np.array([0.0, 0.5, 0.0, -0.8, 0.0, 0.5])
REACH = np.array([0.3, 0.3, 0.2, 0.3, 0.2, 0.2])


def arm():
    """Six joints of the iiwa, 3 kg."""
    return rbd.load_urdf(rbd.sample_path("iiwa"), locked={"joint_7": 0.0}).with_scaled_masses(0.1).with_(
        effort_limit=LIMITS)


def coded(x, most, bits):
    """As drivers of Damiao motors do: clipped, truncated."""
    return int((np.clip(x, -most, most) + most) / (2.0 * most) * (2**bits - 1))


class Bench:
    """An arm that is 5 % heavier than `arm()`, its torque, and the time of the example."""

    def __init__(self):
        self.plant = rbd.Simulator(arm().with_(armature=0.05).with_scaled_masses(1.05), q=START)
        self.torque, self.places, self.fastest = np.zeros(6), [], 0.0

    def clock(self):
        return self.plant.time

    def wait(self, seconds):
        for _ in range(max(round(seconds * 1e3), 1)):
            self.plant.step(self.torque)
        self.places.append(self.plant.q.copy())
        self.fastest = max(self.fastest, np.abs(self.plant.v).max())
        self.happens(self.plant.time)

    def happens(self, t):
        """What a test does at time t."""


class Damiao:
    """DMSingleMotorCanInterface of i2rt: `set_control` waits for the answer, which comes from before the command."""

    bench: Bench
    silent: set[int]

    def __init__(self, control_mode="MIT", channel="PCAN_USBBUS1", bustype="socketcan"):
        assert channel == "can7" and control_mode == "MIT" and bustype == "socketcan"
        self.on = {}

    def motor_on(self, motor_id, motor_type):
        self.on[motor_id] = motor_type

    def set_control(self, motor_id, motor_type, pos, vel, kp, kd, torque):
        if motor_id in self.silent:
            raise AssertionError(f"fail to communicate with the motor {motor_id}")
        assert self.on[motor_id] == motor_type and kp == kd == pos == vel == 0.0
        speed, most = {"DM4340": (10.0, 28.0), "DM4310": (30.0, 10.0)}[motor_type]
        i, plant = motor_id - 1, self.bench.plant
        self.bench.torque[i] = decoded(coded(torque, most, 12), most, 12)
        return SimpleNamespace(position=decoded(coded(plant.q[i], 12.5, 16), 12.5, 16),
                               velocity=decoded(coded(plant.v[i], speed, 12), speed, 12), torque=self.bench.torque[i])


class Sdk:
    """C_PiperInterface_V2 of piper_sdk with firmware 1.8-2: joints 1 to 3 apply four times what they are sent."""

    bench: Bench
    still: bool

    def __init__(self, can_name="can0"):
        assert can_name == "can7"
        self.connected, self.enabled, self.mode, self.stamp = False, 0, None, 0.0

    def ConnectPort(self):
        self.connected = True

    def EnablePiper(self):
        self.enabled += 1
        return self.connected and self.enabled > 1

    def MotionCtrl_2(self, *words):
        self.mode = words

    def JointMitCtrl(self, motor_num, pos_ref, vel_ref, kp, kd, t_ref):
        assert self.mode == (0x01, 0x04, 0, 0xAD) and pos_ref == vel_ref == kp == kd == 0.0
        number = int((t_ref + 8.0) * 255.0 / 16.0) & 0xFF
        self.bench.torque[motor_num - 1] = decoded(number, 8.0, 8) * (4.0 if motor_num <= 3 else 1.0)

    @property
    def time_stamp(self):
        self.stamp = self.stamp if self.still else self.bench.plant.time + 1.0
        return self.stamp

    def GetArmJointMsgs(self):
        return SimpleNamespace(time_stamp=self.time_stamp, joint_state=SimpleNamespace(**{
            f"joint_{i + 1}": int(np.degrees(q) * 1e3) for i, q in enumerate(self.bench.plant.q)}))

    def GetArmHighSpdInfoMsgs(self):
        told = self.bench.torque / [4.0, 4.0, 4.0, 1.0, 1.0, 1.0]
        return SimpleNamespace(time_stamp=self.time_stamp, **{f"motor_{i + 1}": SimpleNamespace(
            motor_speed=int(v * 1e3), effort=told[i] * 1e3) for i, v in enumerate(self.bench.plant.v)})


@pytest.fixture(params=["Yam", "Piper"])
def both(request, monkeypatch):
    """(the arm by the class of the page, its stand-in, the bench)"""
    bench = Bench()
    for name, module, kind in (("Yam", "i2rt.motor_drivers.dm_driver", "DMSingleMotorCanInterface"),
                               ("Piper", "piper_sdk", "C_PiperInterface_V2")):
        stand_in = Damiao if name == "Yam" else Sdk
        for part in [module.rsplit(".", k)[0] for k in range(module.count(".") + 1)]:
            monkeypatch.setitem(sys.modules, part, ModuleType(part))
        setattr(sys.modules[module], kind, stand_in)
        stand_in.bench, stand_in.silent, stand_in.still = bench, set(), False
    names: dict = {}
    exec(next(code for code in BLOCKS if f"class {request.param}:" in code), names)
    return names[request.param]("can7"), Damiao if request.param == "Yam" else Sdk, bench


def go(motors, bench):
    controller = rbd.TorqueController(arm().with_(armature=0.05), gains={"kp": KP, "kd": KD})
    return mit_arm.run(motors, controller, REACH, bench.clock, bench.wait), controller


def test_the_arm_goes_there_and_back(both, capsys):
    motors, _, bench = both
    done, controller = go(motors, bench)
    far = min(bench.places, key=lambda q: np.abs(q - START - REACH).max())
    assert done and np.abs(far - START - REACH).max() < 0.05 and np.abs(bench.places[-1] - START).max() < 0.1
    assert bench.fastest < 0.6 and controller.report()["rejected_total"] == 0
    assert "letting go" in capsys.readouterr().out


def test_a_driver_without_new_states_does_not_throw_the_arm(both):
    motors, stand_in, bench = both

    def happens(t):
        stand_in.silent, stand_in.still = ({2} if 2.0 < t < 2.2 else set()), 2.0 < t < 2.2

    bench.happens = happens
    done, controller = go(motors, bench)
    assert done and controller.report()["timeouts"] == 1 and bench.fastest < 1.5


def test_states_are_in_the_units_of_the_model(both):
    motors, _, bench = both
    bench.plant = rbd.Simulator(arm(), q=START, v=[0.1, -0.2, 0.3, -0.4, 0.5, -0.6])
    effort = np.array([3.0, -3.0, 2.0, -2.0, 1.0, -1.0])
    q, v, told = motors.exchange(effort)
    np.testing.assert_allclose(q, bench.plant.q, rtol=0, atol=5e-4)
    np.testing.assert_allclose(v, bench.plant.v, rtol=0, atol=0.02)
    np.testing.assert_allclose(bench.torque, effort, rtol=0, atol=0.26)    # steps of Piper's first three joints
    np.testing.assert_allclose(told, bench.torque, rtol=0, atol=1e-6)


def test_too_large_a_torque_keeps_its_sign(both):
    motors, _, bench = both
    motors.exchange(np.array([100.0, -100.0, 33.0, 8.3, 9.0, -18.0]))
    assert (np.sign(bench.torque) == [1, -1, 1, 1, 1, -1]).all() and (np.abs(bench.torque) > 7.5).all()


def test_a_driver_that_has_heard_nothing_gives_no_state(both):
    motors, stand_in, _ = both
    if stand_in is Damiao:
        stand_in.silent = {1}
    stand_in.still = True
    assert motors.exchange(np.zeros(6)) == ()

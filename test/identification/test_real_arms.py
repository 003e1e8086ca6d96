"""Recordings of real arms, where someone has them: nothing of them is part of this repository.

RBD_REAL_RECORDINGS names a folder with `dynamic_calibration`, a checkout of github.com/shamilmamedov's repository of
this name (UR10e, motor currents), `figaroh-plus`, one of github.com/thanhndv212's (Stäubli TX40), and
`FrankaEmikaPandaDynModel`, one of github.com/marcocognetti's (Panda, joint torques).
"""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent

FOLDER = Path(os.environ.get("RBD_REAL_RECORDINGS", "/nowhere"))
UR, TX, PANDA = (FOLDER / name for name in ("dynamic_calibration", "figaroh-plus", "FrankaEmikaPandaDynModel"))
UR_GAINS = [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]    # N m / A, in the repository's main.m
FIT, JUDGE = "identification_data/ur-20_02_10-30sec_12harm.csv", "validation_data/ur-20_01_17-ptp_10_points.csv"
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


def ur10e():
    """The model, and a reader of recordings, from the first to the last row in motion, as their authors cut them."""
    model = rbd.load_urdf(UR / "URe" / "urdf" / "ur10e.urdf")

    def read(name, first=1, last=None):
        found = rbd.Recording.from_csv(UR / "dataset_ur10e" / name, {"t": 0, "q": 1, "v": 7, "tau": 13},
                                       model.joint_names)
        return found.part(slice(first - 1, last))

    return model, read


@pytest.mark.skipif(not UR.is_dir(), reason="RBD_REAL_RECORDINGS has no dynamic_calibration")
def test_ur10e_on_another_motion():
    model, read = ur10e()
    judge = read(JUDGE, 700, 4200)
    found = rbd.identify(model, read(FIT, 635, 3510), validation=judge, gains=UR_GAINS)
    print(found, np.round(100.0 * found.residual.after, 1))
    assert found.residual.overall < 0.045 and found.residual.overall < 0.2 * found.residual.overall_before
    every = rbd.identify(model, read(FIT, 635, 3510), validation=judge, gains=UR_GAINS, slowest=0.0)
    assert every.residual.overall < 0.050    # joints that stand counted, too
    assert all(is_consistent(body) for body in found.model.inertial_parameters.reshape(-1, 10) if body[0] > 0.0)
    assert found.residual.overall <= found.residual.overall_unconstrained + 0.003


@pytest.mark.skipif(not UR.is_dir(), reason="RBD_REAL_RECORDINGS has no dynamic_calibration")
def test_ur10e_gains_from_a_known_load():
    """Pairs of two days agree within their intervals, and explain another motion better than the published gains."""
    model, read = ur10e()
    folder, load = "identification_data/ur-20_0", rbd.Inertia(2.805, np.zeros(3), np.zeros((3, 3)))
    days = [rbd.drive_gains(model, read(f"{folder}{a}.csv", *rows), read(f"{folder}{b}.csv", *more), "tool0", load,
                            known="mass") for a, rows, b, more in
            (("2_19_14harm50sec", (195, 4966), "2_19_14harm50secLoad", (308, 5071)),
             ("1_31-unload", (300, 2400), "1_31-load", (300, 2600)))]
    first, second = days
    print(first, second)
    assert not first.missing and not second.missing and first.residual.max() < 0.06
    assert (np.abs(first.gains - second.gains) < np.ptp(first.interval, axis=1) / 2.0
            + np.ptp(second.interval, axis=1) / 2.0).all()
    found = rbd.identify(model, read(FIT, 635, 3510), validation=read(JUDGE, 700, 4200), gains=first.gains)
    assert found.residual.overall < 0.038


@pytest.mark.skipif(not UR.is_dir(), reason="RBD_REAL_RECORDINGS has no dynamic_calibration")
def test_ur10e_friction_near_rest():
    """One joint moves at a time: where friction by load and direction is kept, it pays on motion that is not fitted."""
    model, read = ur10e()
    base = rbd.identify(model, read(FIT, 635, 3510), gains=UR_GAINS).model
    slow = np.zeros((2, 6))
    for j in range(6):
        recording = read(f"jointwise_motion/ur-20_01_22-joint_{j + 1}.csv")
        part = len(recording.t) * 6 // 10
        found = [rbd.identify(base, recording.part(slice(0, part)), validation=recording.part(slice(part, None)),
                              mode="friction", gains=UR_GAINS, drives=drives) for drives in (False, True)]
        slow[:, j] = [result.validation.by_speed.rms[j, 1] for result in found]
        kept = np.abs(np.array(found[1].drives)[:, j]) > 0.0
        assert kept.any() == (j in (1, 2)) and (kept.any() or slow[0, j] == slow[1, j])
    print(slow)
    assert slow[1, 1] < 0.25 * slow[0, 1]
    assert np.linalg.norm(slow[1]) < 0.5 * np.linalg.norm(slow[0])


@pytest.mark.skipif(not UR.is_dir(), reason="RBD_REAL_RECORDINGS has no dynamic_calibration")
def test_ur10e_feels_every_push_and_nothing_else():
    """Thresholds from motions without contact; held at rest it is pushed four and six times, as its currents show."""
    model, read = ur10e()
    found = rbd.identify(model, read(FIT, 635, 3510), validation=read(JUDGE, 700, 4200), gains=UR_GAINS)

    def in_newton_metres(name, only_motion=False):
        one = read(name)
        rows = np.flatnonzero((np.abs(one.v) > 0.02).any(axis=1)) if only_motion else np.array([0, len(one.t) - 1])
        one = one.part(slice(rows[0], rows[-1]))
        return rbd.Recording(one.t, one.q, one.v, tau=one.tau * UR_GAINS, joints=model.joint_names)

    free = [in_newton_metres(f"identification_data/ur-20_02_{name}.csv", only_motion=True) for name in (
        "05-20sec_12harm", "05-20sec_8harm", "06-20sec_5harm", "06-20sec_10harm", "10-20sec_7harm", "10-30sec_12harm",
        "12-40sec_12harm", "12-50sec_12harm", "19_14harm50sec", "19_15harm50sec")]
    limits = rbd.contact_thresholds(found.model, free, gain=25.0, friction=found.friction)
    print(limits)

    def contacts(name):
        """Begin (s) and bodies that were named, of each."""
        one, events, before = in_newton_metres(name), [], None
        observer = rbd.MomentumObserver(found.model, 25.0, found.friction)
        observer.reset(one.q[0], one.v[0])
        for k in range(1, len(one.t)):
            external = observer.update(float(one.t[k] - one.t[k - 1]), one.q[k], one.v[k],
                                       0.5 * (one.tau[k - 1] + one.tau[k]))
            touched = rbd.touched_body(found.model, external, limits.threshold, observer.friction_uncertainty)
            if touched and not before:
                events.append((round(float(one.t[k] - one.t[0]), 2), {touched}))
            elif touched:
                events[-1][1].add(touched)
            before = touched
        print(name, events)
        return events

    pushed = [contacts(f"collision/ur-20_01_22-push_pose_{k}.csv") for k in (1, 2)]
    assert [len(events) for events in pushed] == [4, 6]
    for name in (JUDGE, *(f"validation_data/ur-20_01_17-p{k}.csv" for k in range(1, 11))):
        assert not contacts(name)


@pytest.mark.skipif(not TX.is_dir(), reason="RBD_REAL_RECORDINGS has no figaroh-plus")
def test_tx40_with_its_coupled_wrist():
    """FIGAROH's own example, filtered below 20 Hz as it does, leaves 5.14 % of the efforts where |v| > 0.05 rad/s."""
    model = rbd.load_urdf(TX / "models" / "staubli_tx40_description" / "urdf" / "tx40_mdh_modified.urdf")
    position, torque = (np.loadtxt(TX / "examples" / "staubli_TX40" / "data" / name, delimiter=",", skiprows=1)
                        for name in ("pos_read_data.csv", "curr_data.csv"))
    wrist = rbd.Transmission({"joint_1": 32.0, "joint_2": 32.0, "joint_3": 45.0, "joint_4": -48.0, "joint_5": 45.0,
                              "joint_6": {"joint_5": 32.0, "joint_6": 32.0}})
    motors = rbd.Recording(2e-4 * np.arange(len(position)), position, tau=torque)
    recording = wrist.joint_recording(motors, zero={"joint_2": -np.pi / 2, "joint_3": np.pi / 2})
    found = rbd.identify(model, recording, transmission=wrist, holdout=0.0, cutoff=20.0, slowest=0.05)
    print(found, np.round(100.0 * found.residual.after, 1), found.transmission.rotor)
    assert found.residual.overall < 0.0514
    assert found.residual.overall <= found.residual.overall_unconstrained + 0.003
    np.testing.assert_allclose(found.transmission.viscous[-1], 0.6163, rtol=0.05)    # FIGAROH's fvm6 and fsm6
    np.testing.assert_allclose(found.transmission.coulomb[-1], 1.956, rtol=0.05)


@pytest.mark.skipif(not PANDA.is_dir(), reason="RBD_REAL_RECORDINGS has no FrankaEmikaPandaDynModel")
def test_panda_on_motion_that_was_not_fitted():
    """The model that the recording's authors published leaves 2.5 % of the same efforts."""
    path = urdf_paths().get("panda_description/panda") or pytest.skip("example-robot-data is not installed")
    model = rbd.load_urdf(path, locked={"panda_finger_joint1": 0.0})
    t, q, v, tau = (np.loadtxt(PANDA / "matlab" / "data" / "Exciting_Traj" / "Trajectory_1" / "rbt_log" /
                               f"exciting_traj_{name}.txt") for name in ("time", "positions", "velocity", "torques"))
    recording = rbd.Recording(t, *(x.reshape(-1, 7) for x in (q, v)), tau=tau.reshape(-1, 7))
    found = rbd.identify(model, recording, holdout=0.4)
    print(found, np.round(100.0 * found.residual.after, 1))
    assert found.residual.overall < 0.012
    assert found.residual.overall <= found.residual.overall_unconstrained + 0.003

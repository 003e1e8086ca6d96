"""Recordings of real arms, where someone has them: nothing of them is part of this repository.

RBD_REAL_RECORDINGS names a folder with `dynamic_calibration`, a checkout of github.com/shamilmamedov's repository of
this name (UR10e, motor currents), and `figaroh-plus`, one of github.com/thanhndv212's (Stäubli TX40).
"""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent

FOLDER = Path(os.environ.get("RBD_REAL_RECORDINGS", "/nowhere"))
UR, TX = FOLDER / "dynamic_calibration", FOLDER / "figaroh-plus"
UR_GAINS = [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]    # N m / A, estimated with a known load by the authors
FIT, JUDGE = "identification_data/ur-20_02_10-30sec_12harm.csv", "validation_data/ur-20_01_17-ptp_10_points.csv"
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.mark.skipif(not UR.is_dir(), reason="RBD_REAL_RECORDINGS has no dynamic_calibration")
def test_ur10e_on_another_motion():
    model = rbd.load_urdf(UR / "URe" / "urdf" / "ur10e.urdf")

    def read(name, first, last):    # the rows in motion, as the authors cut them
        found = rbd.Recording.from_csv(UR / "dataset_ur10e" / name, {"t": 0, "q": 1, "v": 7, "tau": 13},
                                       model.joint_names)
        return found.part(slice(first - 1, last))

    judge = read(JUDGE, 700, 4200)
    found = rbd.identify(model, read(FIT, 635, 3510), validation=judge, gains=UR_GAINS)
    print(found, np.round(100.0 * found.residual.after, 1))
    assert found.residual.overall < 0.060 and found.residual.overall < 0.2 * found.residual.overall_before
    assert all(is_consistent(body) for body in found.model.inertial_parameters.reshape(-1, 10) if body[0] > 0.0)
    assert found.residual.overall <= found.residual.overall_unconstrained + 0.003


@pytest.mark.skipif(not TX.is_dir(), reason="RBD_REAL_RECORDINGS has no figaroh-plus")
def test_tx40_with_its_coupled_wrist():
    """Joints 5 and 6 are coupled by more than rigid bodies, which the fit does not know: not asked of them."""
    model = rbd.load_urdf(TX / "models" / "staubli_tx40_description" / "urdf" / "tx40_mdh_modified.urdf")
    read = [np.loadtxt(TX / "examples" / "staubli_TX40" / "data" / name, delimiter=",", skiprows=1)
            for name in ("pos_read_data.csv", "curr_data.csv")]
    ratio = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    coupled = np.diag(ratio)
    coupled[5, 4] = ratio[5]
    q = read[0] @ np.linalg.inv(coupled).T + [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]
    torque = np.diag(ratio)
    torque[4, 5] = ratio[5]
    found = rbd.identify(model, rbd.Recording(2e-4 * np.arange(len(q)), q, tau=read[1] @ torque.T), holdout=0.0)
    print(found, np.round(100.0 * found.residual.after, 1))
    assert (found.residual.after[:4] < 0.20).all()

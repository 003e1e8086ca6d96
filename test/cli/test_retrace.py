"""`rbd retrace`: a taught path as a trajectory within the limits, and what it says of other files."""
from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import yaml

import rbd_ros as rbd
from rbd_ros.cli.main import main

MODEL = rbd.sample("two_link")
WAY = np.column_stack([np.linspace(0.0, 1.0, 300), 0.4 * np.sin(np.linspace(0.0, 6.0, 300))])


def written(path, positions=WAY, names=MODEL.joint_names):
    with path.open("wb") as file:
        np.savez(file, joints=np.array(names), positions=positions)
    return str(path)


def claims(path, shape, full=True):
    """A file that says it has positions of this shape; full: whether the archive's directory says so, too."""
    names, header = io.BytesIO(), io.BytesIO()
    np.save(names, np.array(MODEL.joint_names))
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("joints.npy", names.getvalue())
        file.writestr("positions.npy", header.getvalue() + bytes(8 * shape[0] * shape[1] if full else 0))


def encrypted(path):
    written(path)
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.find(signature) + flags] |= 1
    path.write_bytes(data)


def retraced(path, *arguments):
    output = path.parent / "motion.yaml"
    assert main(["retrace", "two_link", str(path), "-o", str(output), *arguments]) == 0
    points = yaml.safe_load(output.read_text())["points"]
    return {name: np.array([point[name] for point in points])
            for name in ("positions", "velocities", "accelerations", "effort")}


def test_it_keeps_the_limits_and_the_path(tmp_path, capsys):
    path = tmp_path / "taught.npz"
    written(path)
    motion = retraced(path, "--tolerance", "0.005")
    assert "300 taught positions" in capsys.readouterr().out
    for q in motion["positions"]:
        assert np.abs(WAY - q).max(axis=1).min() < 0.01
    np.testing.assert_allclose(motion["positions"][[0, -1]], WAY[[0, -1]], atol=1e-6)
    assert not motion["velocities"][[0, -1]].any()
    assert np.all(np.abs(motion["velocities"]) <= 0.5 * MODEL.velocity_limit + 1e-9)
    assert np.abs(motion["accelerations"]).max() <= 2.5 + 1e-6
    assert np.all(np.abs(motion["effort"]) <= 0.8 * MODEL.effort_limit + 1e-9)


def test_backward_and_names_in_another_order(tmp_path):
    path = tmp_path / "taught.npz"
    written(path, WAY[:, ::-1], MODEL.joint_names[::-1])
    motion = retraced(path, "--backward")
    np.testing.assert_allclose(motion["positions"][[-1, 0]], WAY[[0, -1]], atol=1e-6)


@pytest.mark.parametrize(("make", "word"), [
    (lambda path: None, "cannot read"), (lambda path: path.write_text("positions"), "cannot read"),
    (lambda path: written(path, names=("shoulder", "wrist")), "elbow"),
    (lambda path: written(path, WAY[:, :1]), "shape"), (lambda path: written(path, WAY[:1]), "at least 2"),
    (lambda path: written(path, np.full((5, 2), np.nan)), "finite"),
    (lambda path: written(path, np.array([["a", "b"]] * 5)), "cannot read"),
    (lambda path: written(path, 1j * WAY), "cannot read"), (lambda path: written(path, 1e200 * WAY), "up to"),
    (lambda path: written(path, WAY[:, :1] + np.zeros((1, 14)), "shoulder elbow"), "cannot read"),
    (lambda path: written(path, names=[MODEL.joint_names]), "cannot read"),
    (lambda path: claims(path, (10**7, 2)), "more than"), (encrypted, "cannot read"),
    (lambda path: claims(path, (10**13, 2), False), "cannot read"),
    (lambda path: claims(path, (10**30, 2), False), "cannot read"),
    (lambda path: np.savez(path, joints=np.array(MODEL.joint_names, dtype=object), positions=WAY), "cannot read")])
def test_other_files(tmp_path, capsys, make, word):
    make(tmp_path / "taught.npz")
    assert main(["retrace", "two_link", str(tmp_path / "taught.npz"), "-o", str(tmp_path / "motion.yaml")]) == 1
    assert word in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["-o", "motion.txt"], ["-o", "m.yaml", "--sample-period", "0"],
                                       ["-o", "m.yaml", "--tolerance", "0"]])
def test_other_arguments(tmp_path, capsys, arguments, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["retrace", "two_link", written(tmp_path / "taught.npz"), *arguments]) == 1
    said = capsys.readouterr().err
    assert "expected" in said or "positive" in said

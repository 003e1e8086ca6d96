"""`rbd generate`, and the page about specialised models."""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.compiled.kernel import COMPILED

PAGE = Path(__file__).parents[2] / "docs" / "specialize.md"


def test_it_writes_what_compiles(tmp_path, capsys):
    folder = tmp_path / "c"
    functions = ["inverse_dynamics", "jacobian:link_7:world"]
    assert main(["generate", "iiwa", "--functions", *functions, "-o", str(folder)]) == 0
    said = capsys.readouterr().out
    assert all(str(folder / name) in said for name in ("iiwa.c", "iiwa.h", "CMakeLists.txt", "test_iiwa.c"))
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    for command in (["cmake", "-S", folder, "-B", folder / "build"], ["cmake", "--build", folder / "build"],
                    ["ctest", "--test-dir", folder / "build"]):
        subprocess.run(command, check=True, capture_output=True)


def test_it_writes_cuda(tmp_path, capsys):
    assert main(["generate", "two_link", "--target", "cuda", "--precision", "float", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(str(tmp_path / name) in said for name in ("two_link.cu", "test_two_link.cu", "CMakeLists.txt"))
    assert (tmp_path / "two_link.cu").read_text() == rbd.c_source(rbd.sample("two_link"), precision="float",
                                                                  target="cuda")


@pytest.mark.parametrize(("arguments", "what"), [
    (["no.urdf"], "no.urdf"), (["iiwa", "--name", "7 arm"], "identifier of C"),
    (["iiwa", "--functions", "inverse"], "unknown function 'inverse'"),
    (["iiwa", "-o", "{file}"], "file")])
def test_what_is_wrong_is_said(arguments, what, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    given = [each.format(file=tmp_path / "file") for each in arguments]
    assert main(["generate", *given]) == 1
    said = capsys.readouterr().err
    assert what in said and "Traceback" not in said


@pytest.mark.skipif(not COMPILED, reason="needs numba")
def test_the_example_of_the_page(capsys):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile(code[1], str(PAGE), "exec"), {})
    assert capsys.readouterr().out == "(10000, 7) True\n"

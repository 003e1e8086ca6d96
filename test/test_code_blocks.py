"""Every block of Python and of shell commands in the pages is run by a test, or says why not and is checked as text.

A block that cannot be run has `<!-- not run: REASON -->` on the line before it. Its commands must exist all the same:
executables, options, parameters with their values, launch arguments, files.
"""
from __future__ import annotations

import pytest
from support.commands import check, commands
from support.pages import PAGES, ROOT, blocks, run

import rbd_ros as rbd

# Page → the test that runs all its Python, with checks of its own.
OWN = {"README.md": "test_readme.py", "docs/batch.md": "batch/test_batch.py",
       "docs/closed_form.md": "dynamics/test_closed_form_page.py",
       "docs/collision.md": "motion/test_collision_page.py", "docs/contact.md": "contact/test_contact_page.py",
       "docs/elastic_joints.md": "actuation/test_elastic_docs.py",
       "docs/identification.md": "identification/test_identification_docs.py",
       "docs/mit_arms.md": "control/test_mit_arms_page.py",
       "docs/motion.md": "motion/test_motion_docs.py", "docs/specialize.md": "specialize/test_generate.py",
       "docs/theory.md": "constrained/test_nonholonomic.py",
       "docs/theory_derivatives.md": "derivatives/test_directional_bodies.py"}
# … and that which runs its commands, as they are there.
OWN_COMMANDS = {f"docs/{page}.md": "nodes/test_service_docs.py" for page in ("services", "tutorial_five_bar")}
# Beginnings of a command that is run here.
RBD = (["rbd"], ["scripts/run", "rbd"], ["ros2", "run", "rbd_ros", "rbd"])
PYTHON = blocks("python")
SHELL = blocks("bash", "console", "sh", "shell")
ROBOT = """<robot name="my_robot"><link name="base_link"/>
<link name="upper"><inertial><mass value="2"/><origin xyz="0 0 0.1"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link><link name="flange"/>
<joint name="shoulder" type="revolute"><parent link="base_link"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
<joint name="mount" type="fixed"><parent link="upper"/><child link="flange"/><origin xyz="0 0 0.3"/></joint></robot>"""


def test_there_are_blocks():
    assert len(PAGES) > 20 and len(PYTHON) > 20 and len(SHELL) > 20


@pytest.mark.parametrize("page", sorted({block.page for block in PYTHON} - set(OWN)))
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_the_python_of_a_page_runs_and_gives_what_it_shows(page, tmp_path, monkeypatch):
    """One after the other, in one process and an empty folder, which has a my_robot.urdf."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_robot.urdf").write_text(ROBOT)
    names: dict = {}
    compared = sum(run(block.code, names, str(block)) for block in PYTHON if block.page == page and not block.reason)
    if page == "docs/tutorial_five_bar.md":
        assert compared >= 23


@pytest.mark.parametrize("page", OWN)
def test_a_page_with_a_test_of_its_own_is_run_there(page):
    text = (ROOT / "test" / OWN[page]).read_text(encoding="utf-8")
    assert page.split("/")[-1] in text and "```python" in text, f"{OWN[page]} does not run {page}"
    if "findall(r\"```python" not in text or ")[0], " in text:    # only the first one
        assert sum(block.page == page and not block.reason for block in PYTHON) == 1, (
            f"{OWN[page]} runs only the first block of {page}")


@pytest.mark.parametrize("block", [block for block in SHELL if block.page not in OWN_COMMANDS], ids=str)
def test_commands_that_are_not_run_say_why_and_exist(block, tmp_path, monkeypatch, capsys):
    if block.reason:
        assert len(block.reason.split()) > 2
        for command in commands(block.code):
            check(command)
        return
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_robot.urdf").write_text(rbd.sample_path("iiwa").read_text())
    for command in commands(block.code):
        start = next((start for start in RBD if command[:len(start)] == start), None)
        assert start is not None, (
            f"{block}: run it in a test, or write <!-- not run: REASON --> on the line before it: {command}")
        words = command[len(start):]
        patience = ["--time-limit", "200"] if words[0] == "plan" else []    # kernels may have to be compiled first
        from rbd_ros.cli.main import main
        assert main(words + patience) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", OWN_COMMANDS)
def test_commands_of_pages_that_are_run_elsewhere_exist(page):
    assert page.split("/")[-1] in (ROOT / "test" / OWN_COMMANDS[page]).read_text(encoding="utf-8")
    for block in SHELL:
        if block.page == page:
            for command in commands(block.code):
                check(command)

"""What is read from Gazebo's world files, and where they are found."""
from pathlib import Path

import pytest

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.gazebo_world import read_world

CONFIG = Path(__file__).parents[2] / "config"
EMPTY = """<?xml version="1.0" ?><!-- gz service \\
--reqtype gz.msgs.Empty --><sdf version="1.6"><world name="empty">
<physics name="1ms" type="ignored"><max_step_size>0.002</max_step_size></physics></world></sdf>"""    # as Gazebo's is


def test_ours_has_the_gravity_of_the_nodes():
    world = read_world(str(CONFIG / "gazebo_world.sdf"))
    assert (world.name, world.step) == ("rbd", 0.001)
    assert world.gravity == tuple(rbd.sample("iiwa").gravity)


@pytest.mark.parametrize(("variable", "folder"), [
    ("GZ_SIM_RESOURCE_PATH", "."), ("AMENT_PREFIX_PATH", "share/gz/gz-sim8/worlds"),
    ("AMENT_PREFIX_PATH", "opt/gz_sim_vendor/share/gz/gz-sim8/worlds")])
def test_files_are_found_where_gazebo_finds_them(tmp_path, variable, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "empty.sdf").write_text(EMPTY)
    world = read_world("empty.sdf", {variable: f"/nowhere:{tmp_path}"})
    assert (world.name, world.step, world.gravity) == ("empty", 0.002, (0.0, 0.0, -9.8))    # SDFormat's default
    assert world.path == (tmp_path / folder / "empty.sdf").absolute()


def test_the_default_physics_counts(tmp_path):
    (tmp_path / "w.sdf").write_text("""<sdf version="1.10"><world name="w"><gravity>0 0 -1.62</gravity>
        <physics name="a"><max_step_size>0.004</max_step_size></physics>
        <physics name="b" default="true"><max_step_size>0.0005</max_step_size></physics></world></sdf>""")
    world = read_world(str(tmp_path / "w.sdf"))
    assert (world.step, world.gravity) == (0.0005, (0.0, 0.0, -1.62))


@pytest.mark.parametrize(("text", "message"), [
    (None, "there is no world file '.*w.sdf', neither here nor in"), ("<sdf><model name='a'/></sdf>", "has no <world"),
    ("<sdf><world/></sdf>", "has no <world"), ("<sdf>", "w.sdf"),
    ("<sdf><world name='a'><gravity>0 0</gravity></world></sdf>", "<gravity> .* is no vector of three"),
    ("<sdf><world name='a'><physics><max_step_size>0</max_step_size></physics></world></sdf>", "no positive number")])
def test_what_is_no_world_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "w.sdf").write_text(text)
    with pytest.raises(rbd.RbdError, match=message):
        read_world(str(tmp_path / "w.sdf"), {})

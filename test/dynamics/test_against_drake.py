"""Joint wrenches against Drake's joint reactions, where pydrake is (`pip install drake`, which nothing else needs)."""

import re

import numpy as np
import pytest
from support.robots import random_state, urdf_paths

import rbd_ros as rbd

ROBOTS = ["ur_description/ur5_robot", "kinova_description/kinova", "solo_description/solo12", "a1_description/a1",
          "talos_data/talos_reduced"]
# of meshes there are no files here; Drake damps joints, adds rotors, and lets fixed joints follow none
LEFT_OUT = [r"<!--.*?-->", r"<(dynamics|mimic)\b[^>]*/>",
            r"<(visual|collision|transmission|gazebo)\b(?:[^>]*/>|.*?</\1>)"]


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
@pytest.mark.parametrize("name", ROBOTS)
def test_joint_wrenches_are_drakes_reactions(name):
    """Of all joints, fixed ones too, at 20 states, which Drake finds from the efforts."""
    pytest.importorskip("pydrake", reason="Drake is not installed")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    text = urdf_paths()[name].read_text(encoding="utf-8")
    for pattern in LEFT_OUT:
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    model = rbd.load_urdf(text)
    plant = MultibodyPlant(0.0)
    (robot,) = Parser(plant).AddModelsFromString(text, "urdf")
    (root,) = {joint.parent for joint in model.description.joints} - {joint.child for joint in model.description.joints}
    if root != "world":
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(root, robot))
    plant.Finalize()
    assert plant.num_positions() == plant.num_velocities() == model.nv
    context = plant.CreateDefaultContext()
    order = {int(index): i for i, index in enumerate(plant.GetJointIndices())}
    for seed in range(20):
        given = *random_state(model, seed), np.zeros(model.nv)
        given[3][:] = rbd.inverse_dynamics(model, *given[:3])
        q, v, efforts = np.zeros((3, model.nv))
        for joint in model.joints:
            peer = plant.GetJointByName(joint.name, robot)
            q[peer.position_start()] = given[0][joint.idx_q]
            v[peer.velocity_start()], efforts[peer.velocity_start()] = given[1][joint.idx_v], given[3][joint.idx_v]
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)
        plant.get_applied_generalized_force_input_port().FixValue(context, efforts)
        reactions = plant.get_reaction_forces_output_port().Eval(context)
        carried = rbd.joint_wrenches(model, *given[:3])
        for spec in model.description.joints:
            reaction = reactions[order[int(plant.GetJointByName(spec.name, robot).index())]]
            np.testing.assert_allclose(
                np.concatenate([reaction.rotational(), reaction.translational()]),
                carried[model.body_index(spec.child)], rtol=0.0, atol=1e-12 * np.abs(carried).max(), err_msg=spec.name)

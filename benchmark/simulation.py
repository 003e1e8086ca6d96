"""Simulation: time of a step, MuJoCo as peer, in turns in one run; both take many steps in one call."""
from __future__ import annotations

import time
from collections.abc import Callable
from importlib import metadata
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

import rbd_ros as rbd
from rbd_ros.runtime.cosimulation.mujoco_model import mujoco_model

from .timing import interleaved, table

STEPS = 1000
LOOP_STEPS = 1000    # of the five-bar: a reset projects, which 200 steps would show
STEP = 1e-3    # s
PEERS = {"semi_implicit": "Euler", "rk4": "RK4", "variational": "Euler"}
SIDE, MOMENT = 0.2, 0.2**2 / 6.0    # of boxes of 1 kg: m, kg m²
FEET, FOOT = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"), 0.016    # of Solo12: links, radius in m
START = np.array([0.1, 0.3, 0.1, -1.0, 0.1, 0.5, 0.1])


def run(quick: bool = False) -> dict[str, Any]:
    """Steps of the sample iiwa, free and with damping, friction and stops, and many of its simulations."""
    found: dict[str, Any] = {}
    arm = rbd.sample("iiwa")
    arm = arm.with_(damping=0.0 * arm.damping, friction=0.0 * arm.friction)
    rubs = arm.with_(damping=0.5 + 0.0 * arm.damping, friction=0.01 * arm.effort_limit)
    rows = []
    own = ("semi_implicit", "rk4")    # specialised code is for these
    for kind, model, limits, names in (
            ("free", arm, False, tuple(PEERS)), ("free, specialised", rbd.specialize(arm), False, own),
            ("friction and stops", rubs, True, tuple(PEERS)),
            ("friction and stops, specialised", rbd.specialize(rubs), True, own)):
        functions = {name: _ours(model, name, limits) for name in names}
        functions |= {f"MuJoCo {name}": _mujoco(model, name, limits) for name in ("Euler", "RK4")}
        seconds = interleaved(functions, 9 if quick else 49)
        for name in names:
            peer = PEERS[name]
            ours, other = (1e6 * seconds[each] / STEPS for each in (name, f"MuJoCo {peer}"))
            found[f"{kind}, {name}"] = ours / other
            rows.append([kind, name, f"{ours:.2f}", f"{peer} {other:.2f}", f"{ours / other:.2f}"])
    table("Simulation: sample iiwa, 1 ms, µs per step", ["joints", "integrator", "ours", "MuJoCo", "ratio"], rows)
    found |= _contacts(9 if quick else 25)
    found |= _standing(9 if quick else 25)
    found |= _five_bar(9 if quick else 25)
    return found | _many(arm, 500 if quick else 10_000)


def _many(arm: rbd.RobotModel, count: int) -> dict[str, float]:
    """Simulations of 1 s under a PD law, of an arm with rotors and of the same, specialised: wall and processor time.
    """
    arm = arm.with_(armature=0.1)
    q = START + 0.1 * np.random.default_rng(1).standard_normal((count, arm.nq))
    law = rbd.PDLaw(100.0, 10.0, START, effort=rbd.gravity_effort(arm, START))
    found, rows = {}, []
    for kind, model in (("ordinary", arm), ("specialised", rbd.specialize(arm))):
        rbd.simulate(model, q[:1], efforts=law, integrator="semi_implicit", limits=False)    # kernels
        for threads in (1, 2):
            wall, processor = time.perf_counter(), time.process_time()
            rbd.simulate(model, q, efforts=law, step=STEP, n=1000, integrator="semi_implicit", limits=False,
                         threads=threads)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            found[f"{count} simulations of 1 s, {kind}, threads: {threads}"] = wall
            rows.append([kind, str(threads), f"{wall:.2f}", f"{processor:.2f}"])
    table(f"{count} simulations of 1 s, semi_implicit, PD law: s", ["model", "threads", "wall", "processor"], rows)
    return found


def _contacts(rounds: int) -> dict[str, float]:
    """Boxes on a plane: at rest, sliding, bouncing without loss, and ten on one another."""
    found, rows = {}, []
    for kind, count, v, friction, restitution in (
            ("at rest", 1, 0.0, 0.5, 0.0), ("sliding", 1, 3.0, 0.1, 0.0), ("bouncing", 1, 0.0, 0.0, 1.0),
            ("stacked", 10, 0.0, 0.5, 0.0)):
        steps = 200 if count > 1 else 500
        functions = {name: _boxes(name, count, v, friction, restitution, steps) for name in ("semi_implicit", "rk4")}
        functions |= {f"MuJoCo {name}": _mujoco_boxes(name, count, v, friction, steps) for name in ("Euler", "RK4")}
        seconds = interleaved(functions, rounds)
        for name in ("semi_implicit", "rk4"):
            ours, other = (1e6 * seconds[each] / steps for each in (name, f"MuJoCo {PEERS[name]}"))
            found[f"box {kind}, {name}"] = ours / other
            rows.append([kind, name, f"{ours:.1f}", f"{PEERS[name]} {other:.1f}", f"{ours / other:.2f}"])
    table("Boxes of 0.2 m, eight points each, on a plane, 1 ms, µs per step",
          ["motion", "integrator", "ours", "MuJoCo", "ratio"], rows)
    return found


def _standing(rounds: int) -> dict[str, float]:
    """Solo12 on four feet, held by constant efforts; MuJoCo's feet sink in a little."""
    path = next(str(file.locate()) for file in metadata.files("example_robot_data") or ()
                if file.name == "solo12.urdf")
    model = rbd.load_urdf(path, root="floating").with_(damping=0.0, friction=0.0, armature=0.0)
    q, effort = _on_four_feet(model)
    contacts = [rbd.UnilateralContact(rbd.Plane("world"), rbd.Sphere(foot, FOOT), friction=0.6) for foot in FEET]
    functions = {}
    for name in ("semi_implicit", "rk4"):
        functions[name] = _standing_steps(rbd.Simulator(model, step=STEP, integrator=name, contacts=contacts, q=q,
                                                        limits=False), q, effort)
        functions[f"MuJoCo {PEERS[name]}"] = _mujoco_standing(path, PEERS[name], q, effort)
    seconds = interleaved(functions, rounds)
    found, rows = {}, []
    for name in ("semi_implicit", "rk4"):
        ours, other = (1e6 * seconds[each] / 200 for each in (name, f"MuJoCo {PEERS[name]}"))
        found[f"solo12 standing, {name}"] = ours / other
        rows.append([name, f"{ours:.1f}", f"{PEERS[name]} {other:.1f}", f"{ours / other:.2f}"])
    table("Solo12 on four feet, 1 ms, µs per step", ["integrator", "ours", "MuJoCo", "ratio"], rows)
    return found


def _five_bar(rounds: int) -> dict[str, float]:
    """The sample five-bar, which swings for 1 s from rest; MuJoCo closes it by a weld."""
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    functions = {}
    for name in PEERS:
        functions[name] = _loop_steps(rbd.Simulator(model, step=STEP, integrator=name, constraints=constraints))
        functions[f"MuJoCo {PEERS[name]}"] = _mujoco_five_bar(PEERS[name])
    seconds = interleaved(functions, rounds)
    found, rows = {}, []
    for name in PEERS:
        ours, other = (1e6 * seconds[each] / LOOP_STEPS for each in (name, f"MuJoCo {PEERS[name]}"))
        found[f"five-bar, {name}"] = ours / other
        rows.append([name, f"{ours:.1f}", f"{PEERS[name]} {other:.1f}", f"{ours / other:.2f}"])
    table("Five-bar, a closed loop, 1 ms, µs per step", ["integrator", "ours", "MuJoCo", "ratio"], rows)
    return found


def _loop_steps(simulator: rbd.Simulator) -> Callable[[], object]:
    q = simulator.q.copy()

    def run() -> None:
        simulator.reset(q)
        simulator.step(n=LOOP_STEPS)

    return run


def _mujoco_five_bar(integrator: str) -> Callable[[], object]:
    root = ElementTree.parse(rbd.sample_path("five_bar")).getroot()
    ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler", fusestatic="false")
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    spec.add_equality(type=mujoco.mjtEq.mjEQ_WELD, name1="right_lower", name2="tool", objtype=mujoco.mjtObj.mjOBJ_BODY,
                      solref=[2.0 * STEP, 1.0])
    spec.option.timestep = STEP
    spec.option.integrator = {"Euler": mujoco.mjtIntegrator.mjINT_EULER, "RK4": mujoco.mjtIntegrator.mjINT_RK4}[
        integrator]
    peer = spec.compile()
    data = mujoco.MjData(peer)

    def run() -> None:
        mujoco.mj_resetData(peer, data)
        mujoco.mj_step(peer, data, LOOP_STEPS)

    return run


def _on_four_feet(model: rbd.RobotModel) -> tuple[Any, Any]:
    """q with all feet on the ground, and the efforts that hold it there."""
    q = model.neutral()
    q[7:] = [0.0, 0.8, -1.6, 0.0, 0.8, -1.6, 0.0, -0.8, 1.6, 0.0, -0.8, 1.6]
    poses = rbd.forward_kinematics(model, q)
    q[2] = FOOT - min(poses[model.body_index(foot)][2, 3] for foot in FEET)
    gravity = rbd.gravity_effort(model, q)
    J = np.concatenate([rbd.jacobian(model, q, foot)[3:] for foot in FEET])
    effort = gravity - J.T @ np.linalg.lstsq(J[:, :6].T, gravity[:6], rcond=None)[0]
    effort[:6] = 0.0
    return q, effort


def _standing_steps(simulator: rbd.Simulator, q: Any, effort: Any) -> Callable[[], object]:
    def run() -> None:
        simulator.reset(q)
        simulator.step(effort, 200)

    return run


def _mujoco_standing(path: str, integrator: str, q: Any, effort: Any) -> Callable[[], object]:
    root = ElementTree.parse(path).getroot()
    for link in root.iter("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler", fusestatic="false")
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
    spec.worldbody.first_body().add_freejoint()
    friction = [0.6, 0.005, 1e-4]
    for foot in FEET:
        spec.body(foot).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[FOOT, 0.0, 0.0], friction=friction, mass=0.0)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], friction=friction)
    spec.option.timestep, spec.option.cone = STEP, mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = {"Euler": mujoco.mjtIntegrator.mjINT_EULER, "RK4": mujoco.mjtIntegrator.mjINT_RK4}[
        integrator]
    peer = spec.compile()
    peer.dof_damping[:], peer.dof_frictionloss[:], peer.dof_armature[:] = 0.0, 0.0, 0.0
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(peer)

    def run() -> None:
        mujoco.mj_resetData(peer, data)
        data.qpos[:] = [*q[:3], q[6], *q[3:6], *q[7:]]
        data.qfrc_applied[:] = effort
        mujoco.mj_step(peer, data, 200)

    return run


def _boxes(integrator: str, count: int, v: float, friction: float, restitution: float,
           steps: int) -> Callable[[], object]:
    size, laws = (SIDE,) * 3, {"friction": friction, "restitution": restitution}
    contacts = list(rbd.box_contacts(rbd.Plane("world"), "box_0", size, **laws))
    for i in range(1, count):
        top, bottom = (rbd.Plane(f"box_{k}", frame, size=size[:2]) for k, frame in (
            (i - 1, [0, 0, 0.5 * SIDE]), (i, [[0, 0, -0.5 * SIDE], [np.pi, 0, 0]])))
        contacts += rbd.box_contacts(top, f"box_{i}", size, **laws)
        contacts += rbd.box_contacts(bottom, f"box_{i - 1}", size, **laws, name=f"under_{i}")
    links = "".join(f'''<link name="box_{i}"><inertial><mass value="1"/><inertia ixx="{MOMENT}" iyy="{MOMENT}"
        izz="{MOMENT}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="free_{i}" type="floating">
        <parent link="world"/><child link="box_{i}"/></joint>''' for i in range(count))
    model = rbd.load_urdf(f'<robot name="boxes"><link name="world"/>{links}</robot>')
    height = 0.5 * SIDE + (0.2 if restitution else 0.0)
    q = np.concatenate([[0.0, 0.0, height + SIDE * i, 0.0, 0.0, 0.0, 1.0] for i in range(count)])
    rates = np.zeros(model.nv)
    rates[3] = v
    simulator = rbd.Simulator(model, step=STEP, integrator=integrator, contacts=contacts, q=q)

    def run() -> None:
        simulator.reset(q, rates)
        simulator.step(n=steps)

    return run


def _mujoco_boxes(integrator: str, count: int, v: float, friction: float, steps: int) -> Callable[[], object]:
    bodies = "".join(f'''<body pos="0 0 {0.5 * SIDE + SIDE * i}"><freejoint/><geom type="box" mass="1"
        size="{0.5 * SIDE} {0.5 * SIDE} {0.5 * SIDE}" friction="{friction}"/></body>''' for i in range(count))
    peer = mujoco.MjModel.from_xml_string(f'''<mujoco><option timestep="{STEP}" integrator="{integrator}"
        cone="elliptic"/><worldbody><geom type="plane" size="0 0 1" friction="{friction}"/>{bodies}</worldbody>
        </mujoco>''')
    data = mujoco.MjData(peer)

    def run() -> None:
        mujoco.mj_resetData(peer, data)
        data.qvel[0] = v
        mujoco.mj_step(peer, data, steps)

    return run


def _ours(model: rbd.RobotModel, integrator: str, limits: bool) -> Callable[[], object]:
    simulator = rbd.Simulator(model, step=STEP, integrator=integrator, limits=limits)
    effort = rbd.gravity_effort(model, START) + 1.0

    def steps() -> None:
        simulator.reset(START, np.zeros(model.nv))
        simulator.step(effort, STEPS)

    return steps


def _mujoco(model: rbd.RobotModel, integrator: str, limits: bool) -> Callable[[], object]:
    peer = mujoco_model(model, str(rbd.sample_path("iiwa")), STEP)
    peer.opt.integrator = {"Euler": mujoco.mjtIntegrator.mjINT_EULER, "RK4": mujoco.mjtIntegrator.mjINT_RK4}[integrator]
    if not limits:
        peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(peer)
    effort = rbd.gravity_effort(model, START) + 1.0

    def steps() -> None:
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = START, 0.0, 0.0
        data.qfrc_applied[:] = effort
        mujoco.mj_step(peer, data, STEPS)

    return steps

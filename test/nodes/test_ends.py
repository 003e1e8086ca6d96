"""Every executable ends as promised, whenever signals come: exit code 0 or a clear one, and no traceback."""
from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import harness
import pytest

import rbd_executables
import rbd_ros as rbd
from rbd_interfaces.srv import Reset, Step

ROOT = Path(__file__).parents[2]
URDF = str(rbd.sample_path("two_link"))
NODES = [name for name, value in vars(rbd_executables).items() if callable(value) and name.islower()
         and not name.startswith("_") and name != "rbd"]
HANDLED = 1 << (signal.SIGTERM - 1)    # in the masks of /proc


def start(*arguments, **options):
    """An executable that has come to its first line; before that, signals are the interpreter's."""
    process = subprocess.Popen([sys.executable, "-m", "rbd_executables", *arguments], cwd=ROOT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None and not int(status.read_text().split("SigCgt:")[1].split()[0], 16) & HANDLED:
        pass
    return process


def ended(process, patience=harness.PATIENCE):
    """Exit code and standard error; a process that hangs is a failure."""
    try:
        _, errors = process.communicate(timeout=patience)
    finally:
        process.kill()
    return process.returncode, errors


def signals_after(process, delays, kinds):
    """Send signals that long after each other, as far as there is still somebody to hear them."""
    for delay, kind in zip(delays, kinds, strict=True):
        try:
            process.wait(delay)
            return
        except subprocess.TimeoutExpired:
            process.send_signal(kind)


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("seed", range(int(os.environ.get("RBD_TEST_WALKS", "3"))))
def test_a_node_ends_well_whenever_signals_come(name, seed):
    rng = random.Random(f"{name} {seed}")
    process = start(name, "--ros-args", "-p", f"robot_description_file:={URDF}", "-p", "ramp_out:=0.2")
    count = rng.randint(1, 3)
    first = rng.uniform(0.0, 3.0 if seed % 2 else 1.0)    # s: a node takes one or two to start
    signals_after(process, [first, *(rng.uniform(0.0, 0.3) for _ in range(count - 1))],
                  rng.choices([signal.SIGTERM, signal.SIGINT], k=count))
    code, errors = ended(process)
    assert code == 0 and "Traceback" not in errors, errors


LEFT = """
import importlib, os, sys
importlib.import_module("rbd_ros.nodes.base.spin").LONGEST_IDLE = 60.0    # s: one that still configures ends itself
importlib.import_module(f"rbd_ros.nodes.{sys.argv[1]}").main(sys.argv[2:])
names = []
for thread in os.listdir("/proc/self/task"):
    try:
        names.append(open(f"/proc/self/task/{thread}/comm").read().strip())
    except OSError:    # has ended meanwhile
        pass
print("left:", [name for name in names if name.startswith("dds") and not name.endswith("wdog")])
"""


@pytest.mark.parametrize("name", ["feedforward", "simulator", "dynamics_server", "lockstep", "residual",
                                  "motion_planner"])
def test_the_middleware_is_gone_before_the_process_ends(name):
    """Fast DDS may hang or crash in a process that exits with a participant."""
    process = subprocess.Popen([sys.executable, "-c", LEFT, name, "--ros-args", "-p",
                                f"robot_description_file:={URDF}"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    while not any(_text(thread).startswith("dds") for thread in Path(f"/proc/{process.pid}/task").glob("*/comm")):
        assert process.poll() is None, process.communicate()
    signals_after(process, [2.0], [signal.SIGINT])
    try:
        shown, errors = process.communicate(timeout=harness.PATIENCE)
    finally:
        process.kill()
    assert shown.strip().endswith("left: []"), shown + errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_many_signals_to_the_very_end(number):
    process = start("feedforward", "--ros-args", "-p", f"robot_description_file:={URDF}")
    while process.poll() is None:
        process.send_signal(number)
    code, errors = ended(process)
    assert code == 0 and not errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", [["doctor", URDF], ["compile", "--quiet"]], ids=lambda command: command[0])
@pytest.mark.parametrize("seed", range(2))
def test_rbd_ends_with_the_code_of_the_signal(command, number, seed):
    process = start("rbd", *command)
    signals_after(process, [random.Random(seed).uniform(0.0, 1.0)], [number])
    code, errors = ended(process)
    assert code in (0, 128 + number) and "Traceback" not in errors, errors


IN_A_STRING = """
import signal, sys
from rbd_ros.cli import compile, main
def compile_all(report):
    exec(f"signal.raise_signal({number})")
number, compile.compile_all = int(sys.argv[1]), compile_all
sys.exit(main.main(["compile", "--quiet"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_so_it_does_where_the_signal_comes_in_code_made_of_a_string(number, tmp_path):
    (tmp_path / "interrupted.py").write_text(IN_A_STRING)
    found = subprocess.run([sys.executable, "-m", "interrupted", str(int(number))], cwd=tmp_path, check=False,
                           text=True, stderr=subprocess.PIPE, timeout=harness.PATIENCE,
                           env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert (found.returncode, found.stderr) == (128 + number, "\nrbd compile: interrupted\n")


def children(parent):
    """Numbers of the processes that a process started and that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _text(path).rpartition(")")[2].split()
        if fields and int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one core nobody helps")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(2))
def test_helpers_end_at_once_with_the_one_that_compiles(number, seed, tmp_path):
    # nobody waits for what they do: a first job takes seconds, and is only done where the machine pauses as long
    assert any(_nothing_done(tmp_path / str(attempt), number, seed) for attempt in range(3))


def _nothing_done(folder, number, seed):
    """Whether helpers that were interrupted have compiled nothing."""
    folder.mkdir()
    process = start("rbd", "compile", "--quiet", env=os.environ | {"RBD_CACHE_DIR": str(folder)})
    while not (helpers := children(process.pid)):
        assert process.poll() is None
    signals_after(process, [random.Random(seed).uniform(0.0, 0.5)], [number])
    helpers += [child for child in children(process.pid) if child not in helpers]
    code, errors = ended(process)
    assert code == (-number if number == signal.SIGKILL else 128 + number) and "Traceback" not in errors, errors
    until = time.monotonic() + harness.PATIENCE
    while any(_text(Path(f"/proc/{helper}/cmdline")) for helper in helpers):
        assert time.monotonic() < until
    return not [*folder.rglob("*.o"), *folder.rglob("*.nbc")]


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)], ids=["one", "two"])
def test_the_demo_takes_its_nodes_along(numbers, tmp_path):
    process = start("rbd", "demo", "--duration", "60", "--output", str(tmp_path))
    log = tmp_path / "logs" / "pd" / "feedforward.log"
    while not (log.is_file() and "active" in log.read_text()):
        assert process.poll() is None, process.stderr.read()
    for number in numbers:
        process.send_signal(number)
    code, errors = ended(process)
    assert code == 128 + numbers[0] and "Traceback" not in errors, errors
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in _text(path)]


def _text(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def test_the_executables_are_those_of_the_package():
    lines = (ROOT / "setup.py").read_text().split('"console_scripts": [')[1].split("]")[0].split(",")
    scripts = dict(line.strip().strip('"').split(" = ") for line in lines if line.strip())
    assert list(scripts) == sorted(scripts, key=lambda name: (name != "rbd", name)) and {*NODES, "rbd"} == set(scripts)
    for name, value in scripts.items():
        assert EntryPoint(name, value, "console_scripts").load() is getattr(rbd_executables, name)


@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OMP_NUM_THREADS": "4"}, "4")])
def test_a_node_has_one_thread_of_blas_unless_another_number_is_asked_for(given, expected):
    """From before the first import: many small products would wait for threads that other threads keep from running."""
    code = ("import os, sys, types; import rbd_executables; assert 'numpy' not in sys.modules\n"
            "node = types.ModuleType('node'); node.main = lambda: print(os.environ['OMP_NUM_THREADS'])\n"
            "sys.modules.update({name: node for name in ('rbd_ros', 'rbd_ros.nodes', 'rbd_ros.nodes.feedforward')})\n"
            "rbd_executables.feedforward()")
    clean = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, check=True, stdout=subprocess.PIPE,
                           env=clean | given)
    assert found.stdout.strip() == expected


def test_nothing_heavy_is_imported_before_signals_are_handled():
    code = "import sys; before = set(sys.modules); import rbd_executables; print(*set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, check=True, stdout=subprocess.PIPE)
    assert not {name.split(".")[0] for name in found.stdout.split()} - sys.stdlib_module_names - {"rbd_executables"}


IGNORED = """
import ctypes, os, signal, sys, threading, time
from rbd_ros.signals import Interrupted, interruptible
class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
def imported():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException as error:
        raise ImportError("initialization failed") from error
def swallowed():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        pass
class Started(threading.Thread):    # the second of two signals comes while the first one is ignored
    def start(self):
        os.kill(os.getpid(), signal.SIGTERM)
        super().start()
threading.Thread = Started
for way in (ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM)), Finalized, imported, swallowed):
    for seconds in (0.0, 0.0, 600.0 * (way is not swallowed)):
        try:
            with interruptible():
                way()
                if seconds:
                    time.sleep(seconds)
        except Interrupted as interrupted:
            print(*interrupted.args)
    with interruptible():
        pass
"""


def test_a_signal_is_not_lost_where_exceptions_are_ignored():
    """As in functions that C calls, and in finalizers; nor where another one is made of them, or they are swallowed."""
    found = subprocess.run([sys.executable, "-c", IGNORED], cwd=ROOT, text=True, check=False, capture_output=True,
                           timeout=300.0)    # the sleep is interrupted
    assert (found.returncode, found.stdout.split(), found.stderr) == (0, [str(int(signal.SIGTERM))] * 12, "")


@pytest.mark.parametrize("node", ["feedforward", "flatness", "simulator", "dynamics_server", "motion_planner"])
def test_a_node_ends_before_ros2_launch_loses_patience(private_domain, start_node, node):
    """After 5 s; where the machine takes most of them for other things, the next one has to."""
    def duration():
        process = start_node(node, robot_description_file=URDF)
        with harness.Peer(node) as peer:
            peer.spin_until(lambda: peer.status.startswith("active"), "active node")
            begin = time.monotonic()
            assert process.end() == 0
            return time.monotonic() - begin

    assert any(duration() < 4.0 for _ in range(3))


@pytest.mark.parametrize("node", ["simulator", "mujoco_plant"])
def test_endless_steps_end_with_the_node(private_domain, start_node, node):
    if node == "mujoco_plant":
        pytest.importorskip("mujoco")
    process = start_node(node, robot_description_file=URDF, paused=True, publish_rate=1e-2, step=1e-5)
    with harness.Peer(node) as peer:
        client = peer.node.create_client(Step, f"{node}/step")
        peer.call(Reset, f"{node}/reset", Reset.Request())
        peer.spin_until(client.service_is_ready, "service")
        asked = []

        def ask():    # again: a request that comes while both sides still find each other may be lost
            if not asked or time.monotonic() > asked[-1][0] + 3.0:
                asked.append((time.monotonic(), client.call_async(Step.Request(steps=2**32 - 1))))

        peer.spin_until(lambda: peer.node.count_publishers("joint_states"), "publisher")
        begin = process.processor_time()
        peer.spin_until(lambda: process.processor_time() > begin + 0.5, "that it steps", ask)
        assert process.end(signal.SIGTERM) == 0    # within the patience of a test, not after 4e9 steps
        assert "Traceback" not in process.output()
        def answers():
            return [future.result() for _, future in asked if future.done()]

        peer.spin_until(lambda: any("of 4294967295 steps" in answer.message for answer in answers()), "answer",
                        patience=5.0)
        assert not any(answer.success for answer in answers())

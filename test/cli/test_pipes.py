"""`rbd` whose reader goes away, as `head` does, or whose output cannot be written: quiet, or one line."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rbd_ros as rbd

ROOT = Path(__file__).parents[2]
COMMANDS = [["doctor", str(rbd.sample_path("iiwa"))], ["doctor", "--json", str(rbd.sample_path("biped"))],
            ["compile"], ["demo", "sea", "--duration", "0.2"]]


def start(command, output, tmp_path, **options):
    arguments = [*command, "--output", str(tmp_path)] if command[0] == "demo" else command
    return subprocess.Popen([sys.executable, "-m", "rbd_executables", "rbd", *arguments], cwd=ROOT, text=True,
                            stdout=output, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_reader_that_goes_away_is_no_fault(command, tmp_path):
    read, write = os.pipe()
    os.close(read)    # before the first word: the pipe would take them all
    process = start(command, write, tmp_path)
    os.close(write)
    assert process.stderr.read() == "" and process.wait(120.0) == 141


@pytest.mark.parametrize("command", COMMANDS[:2], ids=" ".join)
def test_a_full_disk_is_one_line(command, tmp_path):
    with open("/dev/full", "w") as full:
        process = start(command, full, tmp_path)
    errors = process.stderr.read()
    assert process.wait(60.0) == 1 and errors.startswith("rbd: ") and errors.count("\n") == 1


def test_without_any_output_it_works_as_well(tmp_path):
    command = f'exec "{sys.executable}" -m rbd_executables rbd doctor "{rbd.sample_path("iiwa")}" >&-'
    process = subprocess.run(["bash", "-c", command], cwd=ROOT, text=True, stderr=subprocess.PIPE)
    assert process.returncode == 0 and process.stderr == ""

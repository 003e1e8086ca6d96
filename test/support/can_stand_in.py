"""A CAN bus with a `DamiaoArm` in MuJoCo, for programs that open SocketCAN: python3 -m support.can_stand_in SOCKET BUS

BUS: path of Unix sockets that programs with `can_socket.c` open in place of SocketCAN, or the name of a virtual CAN
interface of the kernel. SOCKET: path where they ask for time to pass (a double, s; the answer: the time). Frames that
were sent before are heard before it passes; so a run is the same, whatever the load of the machine is.
"""
from __future__ import annotations

import select
import socket
import struct
import sys

from support.arm import arm, arm_urdf
from support.damiao import STEP, DamiaoArm

from rbd_ros.runtime.cosimulation.mujoco_robot import MujocoRobot

KINDS = ["8009", "4310"]
START = [0.4, -0.8]
ROTORS = [0.1, 0.02]          # kg m^2
HEADER = struct.Struct("=IBxxx")
HEAVIER = 1.05


def frames(data):
    """(identifier, data) of a frame as SocketCAN has it, classic or FD."""
    identifier, length = HEADER.unpack_from(data)
    return identifier, data[HEADER.size:HEADER.size + length]


def framed(identifier, data, size):
    """The same in `size` bytes."""
    return (HEADER.pack(identifier, len(data)) + data).ljust(size, b"\0")


def heavier_arm():
    """The arm of `support.arm` in MuJoCo, with friction and rotors, and 5 % heavier than its model."""
    model = arm().with_(armature=ROTORS)
    plant = MujocoRobot(model, arm_urdf(), q=START, step=STEP)
    plant.mj.body_mass[:] *= HEAVIER
    plant.mj.body_inertia[:] *= HEAVIER
    return plant


def listening(path):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    server.listen()
    return server


def answered(motors, line):
    """Hear a frame and answer it; whether the line is still open."""
    try:
        data = line.recv(72)
        for answer in motors.hear(*frames(data)) if data else ():
            line.send(framed(*answer, len(data)))
    except OSError:    # closed without waiting for the answer
        return False
    return bool(data)


def serve(asked, bus):
    motors, time = DamiaoArm(heavier_arm(), KINDS), 0.0
    clock, servers, lines, clocks = listening(asked), [], [], []
    if "/" in bus:
        servers.append(listening(bus))
    else:
        line = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
        line.bind((bus,))
        lines.append(line)
    print("ready", flush=True)
    while True:
        ready = select.select([clock, *servers, *lines, *clocks], [], [])[0]
        for each in ready:
            if each in (clock, *servers):
                (clocks if each is clock else lines).append(each.accept()[0])
        while heard := select.select(lines, [], [], 0.0)[0]:    # all frames before the time
            for line in heard:
                if not answered(motors, line):
                    lines.remove(line)
        for each in ready:
            if each in clocks:
                data = each.recv(8)
                if not data:
                    return
                for _ in range(max(round(struct.unpack("d", data)[0] / STEP), 0)):
                    motors.step()
                    time += STEP
                each.send(struct.pack("d", time))


if __name__ == "__main__":
    serve(*sys.argv[1:3])

"""Runs an example in the time of `can_stand_in`: python3 -m support.on_can SOCKET EXAMPLE ARGUMENTS…"""
from __future__ import annotations

import importlib
import socket
import struct
import sys


class Clock:
    def __init__(self, path):
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(path)

    def __call__(self):
        return self.wait(0.0)

    def wait(self, seconds):
        self._line.send(struct.pack("d", seconds))
        return struct.unpack("d", self._line.recv(8))[0]


if __name__ == "__main__":
    clock = Clock(sys.argv[1])
    sys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3:], clock=clock, wait=clock.wait))

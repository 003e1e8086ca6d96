"""One client process of `service_load`: asks with random states, and checks every answer with the library."""
from __future__ import annotations

import os
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

import rbd_ros as rbd
from rbd_interfaces.msg import RobotState
from rbd_interfaces.srv import DynamicsTerms, ForwardDynamics, InverseDynamics

PATIENCE = 10.0    # s for one answer
LATE = 1e-9        # of the largest number: an answer that is further off is that of another request
ROBOT = "iiwa"
SERVICES = {InverseDynamics: "inverse_dynamics", ForwardDynamics: "forward_dynamics", DynamicsTerms: "dynamics_terms"}

# The middleware sends the answers of a service to all its clients, each of which picks out its own. With the default
# depth of 10, a client that the machine leaves waiting while ten others are answered has lost its own answer.
CLIENT = QoSProfile(depth=1000)


class Load:
    """One client: a request at a time, of three services in turns."""

    def __init__(self, seed: int) -> None:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self.model = rbd.sample(ROBOT)
        self.rng = np.random.default_rng(seed)
        self.order = self.rng.permutation(self.model.nv)
        self.names = [self.model.joint_names[i] for i in self.order]
        self.node = rclpy.create_node(f"load_{seed}")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.clients = {kind: self.node.create_client(kind, f"dynamics_server/{name}", qos_profile=CLIENT)
                        for kind, name in SERVICES.items()}
        self.latencies: list[float] = []
        self.lost = self.crossed = self.refused = 0

    def wait(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while not all(client.service_is_ready() for client in self.clients.values()):
            if time.monotonic() > deadline:
                raise SystemExit("no server")
            self.executor.spin_once(timeout_sec=0.05)
        while not self.exchange(InverseDynamics):    # until it is active
            if time.monotonic() > deadline:
                raise SystemExit("the server is not active")
        self.latencies, self.lost, self.crossed, self.refused = [], 0, 0, 0

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for kind in self.clients:
                self.exchange(kind)

    def exchange(self, kind: Any) -> bool:
        """One request; True if its answer came and was right."""
        model, order = self.model, self.order
        q, v, u = model.random_configuration(self.rng), *self.rng.normal(size=(2, model.nv))
        request = kind.Request(state=RobotState(name=self.names, position=q[order].tolist(),
                                                velocity=v[order].tolist()))
        if kind is InverseDynamics:
            request.name, request.acceleration = self.names, u[order].tolist()
            expected, field = rbd.inverse_dynamics(model, q, v, u), "effort"
        elif kind is ForwardDynamics:
            request.name, request.effort = self.names, u[order].tolist()
            expected, field = rbd.forward_dynamics(model, q, v, u), "acceleration"
        else:
            expected, field = rbd.mass_matrix(model, q).ravel(), "mass_matrix"
        begin = time.perf_counter()
        future = self.clients[kind].call_async(request)
        self.executor.spin_until_future_complete(future, PATIENCE)
        self.latencies.append(time.perf_counter() - begin)
        if not future.done():
            self.clients[kind].remove_pending_request(future)
            self.lost += 1
            return False
        answer = future.result()
        if not answer.success:
            self.refused += 1
            return False
        actual = np.array(getattr(answer, field))
        right = actual.shape == expected.shape and np.abs(actual - expected).max() <= LATE * np.abs(expected).max()
        self.crossed += not right
        return bool(right)


def client(seed: int, seconds: float, parent: Connection) -> None:
    """One process: says it is ready, waits for an answer, runs, says what it found.

    It ends at once: the middleware can spin for ever in the destruction of a client for which answers arrive, as those
    to all other clients do.
    """
    try:
        load = Load(seed)
        load.wait(120.0)
        parent.send("ready")
        parent.recv()
        load.run(seconds)
        parent.send({"latencies": load.latencies, "lost": load.lost, "crossed": load.crossed, "refused": load.refused})
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

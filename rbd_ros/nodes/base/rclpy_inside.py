"""Uses of rclpy internals without a public interface: each with its reason and its fallback.

Verified with the sources of rclpy 7.1.5 (Jazzy) and 9.1.2 (Kilted); other versions have to be checked.

| here | in rclpy | without it |
|---|---|---|
| `take` | `Subscription.handle.take_message(type, raw)` | a node that is busy with a callback, such as a ramp-out, answers no joint state and handles no emergency stop meanwhile |
| the same of `bounded` subscriptions, `BoundedExecutor` | `rcl_take_serialized_message` of the C library rcl, with `Subscription.handle.pointer`; `Executor._take_subscription` | a message of 16 MB is copied twice while no other thread of Python runs, 40 ms, before it can be refused |
| `take_answer` | `Client.handle.take_response(type)`, `get_pending_request` | a controller switch cannot be awaited within a callback |
| `guard_service` | `Service.callback` is read at every request | impossible transitions and parameters of unknown types end the process, and with it the torque |
| `overrides` | `Node._parameter_overrides` | misspelt parameters are not named |
| `OneThreadGroup`, `GroupExecutor` | executors ask `can_execute` of groups and of themselves, and `get_nodes` | joint states wait for all other entities of the node: some 0.1 ms each |
| `Waiting`, `ThreadlessGroup` | `rclpy.impl.implementation_singleton.rclpy_implementation.WaitSet`, as `rclpy.wait_for_message` uses it; executors ask `can_execute` of groups | `control_loop: executor`: a joint state is answered some 0.1 ms later |
| the same around services | executors take requests with `Service.handle.service_take_request(type)` | `control_loop: executor`: a simulator needs twice the processor time |
| `Stop` | `spin_until_future_complete` adds a callback to its future at every spin | memory grows for ever, by some hundred callbacks a second |
| `let_go` | `LifecycleNode._state_machine` holds the node after `destroy_node`, and with it the middleware's participant | the process ends with a live participant, and Fast DDS may hang or crash at its end |
| `make_executor` | `rclpy.experimental.events_executor` | no parameter `executor: events` |
"""    # noqa: E501
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.task import Future

MULTI_THREADED = "multi_threaded"
THREADS = 16    # more than concurrent callbacks: while a callback waits for a thread, this executor spins busily


class Unread:
    """Placeholder of a message longer than its subscription allows, with only its length."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def bounded(node: Node, kind: type, topic: str, callback: Callable[[Any, Any], None], qos: Any, most: int,
            **options: Any) -> Any:
    """A subscription whose callback takes serialized messages and their info. A message of more than `most` bytes is
    not read: the callback gets an `Unread`, or, with an executor other than by `make_executor`, all bytes.
    """
    made: Any = node.create_subscription(kind, topic, callback, qos, raw=True, **options)    # type: ignore[arg-type]
    made.most = most
    return made


class _Allocator(ctypes.Structure):    # rcutils_allocator_t
    _fields_ = [(name, ctypes.c_void_p) for name in ("allocate", "deallocate", "reallocate", "zero_allocate", "state")]


class _Bytes(ctypes.Structure):    # rcutils_uint8_array_t
    _fields_ = [("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t), ("capacity", ctypes.c_size_t),
                ("allocator", _Allocator)]

    def __del__(self) -> None:
        if self.buffer and _rcl is not None:
            _rcl[1].rcutils_uint8_array_fini(ctypes.byref(self))


class _Info(ctypes.Structure):    # first fields of rmw_message_info_t, with ample room for the others
    _fields_ = [("source_timestamp", ctypes.c_int64), ("received_timestamp", ctypes.c_int64),
                ("rest", ctypes.c_char * 240)]


class _Room(threading.local):
    """Receive buffer of a thread, reused because allocation costs more than copying."""

    def __init__(self) -> None:
        self.bytes, self.info = _Bytes(), _Info()
        self.addresses = ctypes.addressof(self.bytes), ctypes.addressof(self.info)
        if _rcl is not None:
            _rcl[1].rcutils_uint8_array_init(ctypes.byref(self.bytes), ctypes.c_size_t(FIRST_ROOM),
                                             ctypes.byref(_rcl[1].rcutils_get_default_allocator()))

    def shrink(self) -> None:
        """Release an unusually large buffer."""
        if self.bytes.capacity > MOST_ROOM:
            self.__init__()    # type: ignore[misc]


FIRST_ROOM, MOST_ROOM = 4096, 2**25    # bytes
NOTHING_TAKEN = 401                    # RCL_RET_SUBSCRIPTION_TAKE_FAILED


def _load() -> tuple[Any, Any] | None:
    """The function of rcl, called without the interpreter's lock, and library rcutils; None if missing."""
    try:
        take_bytes = ctypes.CDLL("librcl.so").rcl_take_serialized_message
        rcutils = ctypes.CDLL("librcutils.so")
        rcutils.rcutils_get_default_allocator.restype = _Allocator
    except (OSError, AttributeError):
        return None
    take_bytes.argtypes, take_bytes.restype = [ctypes.c_void_p] * 4, ctypes.c_int
    return take_bytes, rcutils


_rcl = _load()
_room = _Room()


def take(subscription: Any) -> Any:
    """(message, info) of the oldest waiting message of a subscription, in the caller's thread; None without messages.
    """
    with subscription.handle:
        return _taken(subscription)


def _taken(subscription: Any) -> Any:
    """`take` within a `with` of the subscription's handle."""
    most = getattr(subscription, "most", None)
    if most is None or _rcl is None:
        return subscription.handle.take_message(subscription.msg_type, subscription.raw)
    room = _room
    code = _rcl[0](subscription.handle.pointer, *room.addresses, None)
    if code == NOTHING_TAKEN:
        return None
    if code:
        _rcl[1].rcutils_reset_error()
        raise RuntimeError(f"rcl_take_serialized_message: error {code}")
    info = {"source_timestamp": room.info.source_timestamp, "received_timestamp": room.info.received_timestamp}
    length = room.bytes.length
    if length <= most:
        return ctypes.string_at(room.bytes.buffer, length), info
    room.shrink()
    return Unread(length), info


def take_answer(client: Any, pending: Any) -> Any:
    """The answer of a service to the request `pending`, None if not yet there; other answers are dropped."""
    with client.handle:
        header, answer = client.handle.take_response(client.srv_type.Response)
    if header is None:
        return None
    try:
        answered = client.get_pending_request(header.request_id.sequence_number)
    except KeyError:
        return None
    return answer if answered is pending else None


def guard_service(node: Node, kinds: tuple[type, ...],
                  guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Wrap the callbacks of rclpy's built-in services of a node, selected by type."""
    for service in node.services:
        if service.srv_type in kinds:
            service.callback = guard(service.callback)


def overrides(node: Node) -> dict[str, Any]:
    """The parameter overrides of the node, declared or not."""
    values: dict[str, Any] = getattr(node, "_parameter_overrides", {})
    return values


class Stop(Future):
    """Future that ends the executor waiting for it. For one call of `spin_until_future_complete` only.

    rclpy adds the same callback, which wakes the executor, at every spin: hundreds per second, which all run when the
    future is done. This class keeps one.
    """

    _woken = False

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if not self._woken:
            self._woken = True
            super().add_done_callback(callback)


class OneThreadGroup(ReentrantCallbackGroup):
    """Callback group whose entities are executed by one thread only."""

    thread: int | None = None

    def can_execute(self, entity: Any) -> bool:
        return threading.get_ident() == self.thread


class LentGroup(OneThreadGroup):
    """`OneThreadGroup` that any executor serves while there is no such thread."""

    def can_execute(self, entity: Any) -> bool:
        return self.thread is None or super().can_execute(entity)


class BoundedExecutor(SingleThreadedExecutor):
    """Executor that takes messages of `bounded` subscriptions by `take`."""

    def _take_subscription(self, sub: Any) -> Any:
        if not hasattr(sub, "most"):
            return super()._take_subscription(sub)
        with suppress(rclpy_implementation.InvalidHandle):    # destroyed concurrently
            taken = take(sub)
            if taken is not None:
                return partial(_call, sub.callback, taken)
        return None


async def _call(callback: Callable[[Any, Any], None], taken: tuple[Any, Any]) -> None:
    callback(*taken)


class GroupExecutor(BoundedExecutor):
    """Executes the entities of a node that belong to some groups. The node stays with its main executor."""

    def __init__(self, node: Node, groups: Sequence[OneThreadGroup]) -> None:
        super().__init__(context=node.context)
        self._node, self._groups = node, groups

    def get_nodes(self) -> list[Node]:
        return [self._node]

    def can_execute(self, entity: Any) -> bool:
        return entity.callback_group in self._groups and super().can_execute(entity)


class ThreadlessGroup(ReentrantCallbackGroup):
    """Callback group ignored by all executors, including the QoS events of its subscriptions: an executor would wake
    for each of their messages.
    """

    def can_execute(self, entity: Any) -> bool:
        return False


class Waiting:
    """Wait set of some subscriptions, services and clients, for one thread, used in a `with` statement.

    Call `events` occasionally to execute pending QoS events: waiting for them would cost some µs per message. wakes:
    whether `wake`, from any thread, ends a wait.
    """

    def __init__(self, context: Any, subscriptions: Sequence[Any], services: Sequence[Any] = (),
                 clients: Sequence[Any] = (), wakes: bool = False) -> None:
        self.subscriptions, self.services, self.clients = tuple(subscriptions), tuple(services), tuple(clients)
        self._context = context
        self._events = [handler for each in self.subscriptions for handler in each.event_handlers]
        with context.handle:
            self._guard = rclpy_implementation.GuardCondition(context.handle) if wakes else None
            self._set = rclpy_implementation.WaitSet(
                len(self.subscriptions), int(wakes), 0, len(self.clients), len(self.services), 0, context.handle)
            self._event_set = rclpy_implementation.WaitSet(0, 0, 0, 0, 0, len(self._events), context.handle)
        self._stack = ExitStack()
        self._handles: list[Any] = []
        self._service_handles: list[Any] = []
        self._client_handles: list[Any] = []

    def __enter__(self) -> Waiting:
        for each in (self._context, *self.subscriptions, *self.services, *self.clients):
            self._stack.enter_context(each.handle)    # keeps the entities alive
        for event in self._events:
            self._stack.enter_context(event)
        if self._guard is not None:
            self._stack.enter_context(self._guard)
        self._handles = [each.handle for each in self.subscriptions]
        self._service_handles = [each.handle for each in self.services]
        self._client_handles = [each.handle for each in self.clients]
        return self

    def __exit__(self, *error: Any) -> None:
        self._handles, self._service_handles, self._client_handles = [], [], []
        self._stack.close()

    def wait(self, timeout: float) -> None:
        """Wait for a message, a request or an answer, for at most `timeout` s."""
        waiting = self._set
        waiting.clear_entities()
        for handle in self._handles:
            waiting.add_subscription(handle)
        for handle in self._service_handles:
            waiting.add_service(handle)
        for handle in self._client_handles:
            waiting.add_client(handle)
        if self._guard is not None:
            waiting.add_guard_condition(self._guard)
        waiting.wait(int(timeout * 1e9))

    def wake(self) -> None:
        """End the present wait, or the next one."""
        if self._guard is not None:
            self._guard.trigger_guard_condition()

    def events(self) -> None:
        """Execute the callbacks of pending QoS events."""
        if not self._events:
            return
        self._event_set.clear_entities()
        for event in self._events:
            event.add_to_wait_set(self._event_set)
        self._event_set.wait(0)
        for event in [each for each in self._events if each.is_ready(self._event_set)]:
            with suppress(StopIteration):
                event.execute(event.take_data()).send(None)    # a coroutine without awaits

    def take(self, subscription: Any) -> Any:
        """(message, info) of the oldest waiting message of a subscription, None without messages."""
        return _taken(subscription)

    def serve(self, service: Any) -> bool:
        """Answer the oldest waiting request of a service; returns whether there was one."""
        request, header = service.handle.service_take_request(service.srv_type.Request)
        if header is not None:
            service.send_response(service.callback(request, service.srv_type.Response()), header)
        return header is not None

    def hear(self, client: Any) -> bool:
        """Complete the future of the oldest waiting answer of a client; returns whether there was one."""
        header, answer = client.handle.take_response(client.srv_type.Response)
        if header is None:
            return False
        with suppress(KeyError):    # the request was abandoned
            client.get_pending_request(header.request_id.sequence_number).set_result(answer)
        return True


def let_go(node: Node) -> None:
    """Release the middleware of a lifecycle node after `destroy_node`."""
    if hasattr(node, "_state_machine"):
        node._state_machine = None


def make_executor(name: str) -> Any:
    """The executor of this name: `events` if supported by rclpy, `multi_threaded`, else single-threaded."""
    if name == "events":
        from rclpy.experimental.events_executor import EventsExecutor
        return EventsExecutor()
    if name == MULTI_THREADED:
        return MultiThreadedExecutor(THREADS)
    return BoundedExecutor()

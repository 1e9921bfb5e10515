"""Calls to retryd that nobody waits for, but `close`."""

import threading
from collections.abc import Callable

import grpc
from google.protobuf.message import Message

# More than a healthy retryd ever needs; `close` waits no longer.
TIMEOUT_SECONDS = 1.0


class Background:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending = 0

    def send(
        self,
        method: grpc.UnaryUnaryMultiCallable,
        request: Message,
        then: Callable[[grpc.Future], object] = lambda _: None,
    ) -> None:
        try:
            future = method.future(request, timeout=TIMEOUT_SECONDS)
        except ValueError:
            # The client has been closed meanwhile.
            return
        with self._changed:
            self._pending += 1
        future.add_done_callback(lambda done: self._ended(done, then))

    def wait(self) -> None:
        """Until all have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0, timeout=2 * TIMEOUT_SECONDS)

    def _ended(self, future: grpc.Future, then: Callable[[grpc.Future], object]) -> None:
        try:
            then(future)
        finally:
            with self._changed:
                self._pending -= 1
                self._changed.notify_all()


def answer(future: grpc.Future) -> Message | None:
    """None after any other end."""
    try:
        return future.result()
    except (grpc.RpcError, grpc.FutureCancelledError):
        return None

"""What `future` of a multi-callable returns: all the attempts of one call, as one call of grpcio."""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import grpc

from .advisor import Advisor
from .calls import Call
from .grpc_failure import cancelled, failed
from .retry import Retry
from .timer import Entry, Timer

log = logging.getLogger(__name__)


class RetriedFuture(grpc.Call, grpc.Future):
    """Ends as its last attempt does. Nothing here blocks but what grpcio documents to do so.

    Metadata is that of the last attempt, and so there when the call has ended.
    """

    def __init__(
        self, attempt: grpc.Call, send: Callable[[], grpc.Call], call: Call, advisor: Advisor, timer: Timer
    ) -> None:
        self._send = send
        self._call = call
        self._advisor = advisor
        self._timer = timer
        self._changed = threading.Condition()
        self._attempt = attempt
        self._waiting: tuple[Entry, Retry] | None = None
        self._given_up = False
        self._done = False
        self._callbacks: list[Callable[[], object]] = []
        attempt.add_done_callback(self._attempt_ended)

    def _attempt_ended(self, attempt: grpc.Call) -> None:
        try:
            if attempt.code() is grpc.StatusCode.OK:
                self._advisor.succeeded(self._call)
            elif self.cancelled():
                self._advisor.tell(self._call, cancelled())
            else:
                self._advisor.ask(self._call, failed(attempt, self._call)).when_there(self._answered)
                return
        except Exception:
            log.exception("retryd: the end of an attempt could not be told")
        self._end()

    def _answered(self, retry: Retry | None) -> None:
        if retry is not None and self._wait(retry):
            return
        if retry is not None:
            retry.give_back()
        self._end()

    def _wait(self, retry: Retry) -> bool:
        remaining = self._call.remaining()
        with self._changed:
            if self._given_up or (remaining is not None and remaining <= retry.delay):
                return False
            entry = self._timer.after(retry.delay, self._next_attempt, at_close=self._end_wait)
            self._waiting = None if entry is None else (entry, retry)
            return entry is not None

    def _next_attempt(self) -> None:
        waiting = self._take_wait()
        if waiting is None:
            return
        _, retry = waiting
        remaining = self._call.remaining()
        if self.cancelled() or (remaining is not None and remaining <= 0):
            self._answered_too_late(retry)
            return
        try:
            attempt = self._send()
        except Exception:
            # The channel was closed: the failure at hand stands.
            self._answered_too_late(retry)
            return
        with self._changed:
            self._attempt = attempt
            given_up = self._given_up
        if given_up:
            attempt.cancel()
        attempt.add_done_callback(self._attempt_ended)

    def _answered_too_late(self, retry: Retry) -> None:
        retry.give_back()
        self._end()

    def _end_wait(self) -> None:
        waiting = self._take_wait()
        if waiting is not None:
            entry, retry = waiting
            self._timer.cancel(entry)
            self._answered_too_late(retry)

    def _take_wait(self) -> tuple[Entry, Retry] | None:
        """Only one of those who may end a wait gets it."""
        with self._changed:
            waiting, self._waiting = self._waiting, None
        return waiting

    def _end(self) -> None:
        with self._changed:
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                log.exception("retryd: a callback of a call failed")

    def _on_end(self, callback: Callable[[], object]) -> bool:
        """False if the call has ended already."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
            return not self._done

    def _last(self, timeout: float | None = None) -> grpc.Call:
        """The attempt after which there is no further one."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._done, timeout):
                raise grpc.FutureTimeoutError
            return self._attempt

    def _outcome(self, timeout: float | None) -> grpc.Future:
        last = self._last(timeout)
        if self.cancelled():
            raise grpc.FutureCancelledError
        return last

    # grpc.Future

    def cancel(self) -> bool:
        with self._changed:
            if self._done:
                return False
            self._given_up = True
            attempt = self._attempt
        if not attempt.cancel():
            # It has ended, and what it waits for now is an answer or a delay.
            self._end_wait()
            self._end()
        return True

    def cancelled(self) -> bool:
        with self._changed:
            return self._given_up

    def running(self) -> bool:
        return not self.done()

    def done(self) -> bool:
        with self._changed:
            return self._done

    def result(self, timeout: float | None = None) -> Any:
        return self._outcome(timeout).result()

    def exception(self, timeout: float | None = None) -> Exception | None:
        return self._outcome(timeout).exception()

    def traceback(self, timeout: float | None = None) -> TracebackType | None:
        return self._outcome(timeout).traceback()

    def add_done_callback(self, fn: Callable[[grpc.Future], None]) -> None:
        if not self._on_end(lambda: fn(self)):
            fn(self)

    # grpc.Call

    def is_active(self) -> bool:
        return not self.done()

    def time_remaining(self) -> float | None:
        remaining = self._call.remaining()
        return None if remaining is None else max(0.0, remaining)

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return self._on_end(callback)

    def initial_metadata(self) -> Any:
        return self._last().initial_metadata()

    def trailing_metadata(self) -> Any:
        return self._last().trailing_metadata()

    def code(self) -> grpc.StatusCode:
        last = self._last()
        return grpc.StatusCode.CANCELLED if self.cancelled() else last.code()

    def details(self) -> str:
        last = self._last()
        return "cancelled by the caller" if self.cancelled() else last.details()

"""Unary calls of grpcio."""

import copy
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from .advisor import Advisor
from .calls import Call
from .grpc_failure import failed
from .grpc_future import RetriedFuture
from .retry import wait
from .throttle import Throttle
from .timer import Timer

Fields = namedtuple("Fields", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"))


class Details(Fields, grpc.ClientCallDetails):
    """What grpcio says about a call, with a time of our own."""


class RetryInterceptor(grpc.UnaryUnaryClientInterceptor):
    def __init__(self, advisor: Advisor, timer: Timer) -> None:
        self._advisor = advisor
        self._timer = timer
        self._throttle = Throttle()

    def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.ClientCallDetails, Any], grpc.Call],
        client_call_details: grpc.ClientCallDetails,
        request: Any,
    ) -> grpc.Call:
        details = Details(*(getattr(client_call_details, name, None) for name in Details._fields))
        # Every attempt sends what was there at first, whatever becomes of a caller's list.
        details = details._replace(metadata=tuple(details.metadata or ()))
        call = self._advisor.begin(
            operation_of(details.method),
            (name for name, _ in details.metadata),
            self._throttle,
            timeout=details.timeout,
        )

        def send() -> grpc.Call:
            return continuation(details._replace(timeout=call.begin_attempt()), request)

        attempt = send()
        if is_future(attempt):
            # Its caller goes on, and may change the message that grpcio has sent.
            request = copied(request, call)
            return RetriedFuture(attempt, send, call, self._advisor, self._timer)
        return self._repeat(attempt, send, call)

    def _repeat(self, attempt: grpc.Call, send: Callable[[], grpc.Call], call: Call) -> grpc.Call:
        """For a caller that waits."""
        while True:
            error = attempt.exception()
            if error is None:
                self._advisor.succeeded(call)
                return attempt
            if not isinstance(error, grpc.RpcError):
                # Raised beneath us before there was a call.
                return attempt
            retry = self._advisor.ask(call, failed(attempt, call)).wait()
            if retry is None or not wait(retry, call):
                return attempt
            attempt = send()


def copied(request: Any, call: Call) -> Any:
    try:
        return copy.deepcopy(request)
    except Exception:
        call.body_replayable = False
        return request


def is_future(attempt: grpc.Call) -> bool:
    """A caller that waits is handed a call that has ended, a plain record; what `future` returns can be iterated."""
    if not attempt.done():
        return True
    return isinstance(attempt.exception(), grpc.RpcError) and isinstance(attempt, Iterator)


def operation_of(method: str | bytes) -> str:
    text = method.decode() if isinstance(method, bytes) else method
    return text.removeprefix("/")

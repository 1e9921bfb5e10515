"""One call of the application, from its first attempt to its last."""

import contextlib
import contextvars
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from .failure import Failed
from .settings import Operation
from .throttle import Throttle
from .usage import Key
from .v1 import retryd_pb2 as pb

# Of google.protobuf.Duration.
DURATION_SECONDS_MAX = 315_576_000_000


@dataclass(frozen=True)
class Overrides:
    tenant: str | None = None
    operation: str | None = None
    deadline: float | None = None


NONE = Overrides()

_overrides: contextvars.ContextVar[Overrides] = contextvars.ContextVar("retryd_call", default=NONE)


@contextlib.contextmanager
def call(*, tenant: str | None = None, operation: str | None = None, timeout: float | None = None) -> Iterator[None]:
    """Says more about the calls within: whose budget pays, what is called, and in how many seconds all must be over.

    The timeout of `requests` is one for each attempt; this one is for all of them. What is left out is as around it.
    """
    outer = _overrides.get()
    deadline = outer.deadline if timeout is None else earlier(outer.deadline, time.monotonic() + timeout)
    token = _overrides.set(Overrides(tenant or outer.tenant, operation or outer.operation, deadline))
    try:
        yield
    finally:
        _overrides.reset(token)


def overrides() -> Overrides:
    return _overrides.get()


def earlier(one: float | None, other: float | None) -> float | None:
    return min((it for it in (one, other) if it is not None), default=None)


class Call:
    """What is known of a call before its attempts fail, and what has become of it so far."""

    def __init__(
        self,
        key: Key,
        idempotency: pb.Idempotency,
        throttle: Throttle,
        *,
        deadline: float | None,
        attempt_timeout: float | None,
        body_replayable: bool = True,
    ) -> None:
        self.key = key
        self.throttle = throttle
        self.body_replayable = body_replayable
        self.attempts_made = 0
        self.failure_class = pb.FAILURE_CLASS_UNSPECIFIED
        self._idempotency = idempotency
        self._call_id = str(uuid.uuid4())
        self._deadline = deadline
        self._attempt_timeout = attempt_timeout
        self._attempt_ends: float | None = None

    def remaining(self) -> float | None:
        """Seconds until the caller's deadline; None without one."""
        return None if self._deadline is None else self._deadline - time.monotonic()

    def remaining_deadline(self) -> Duration | None:
        if (seconds := self.remaining()) is None:
            return None
        remaining = Duration()
        remaining.FromMilliseconds(int(min(max(0.0, seconds), DURATION_SECONDS_MAX) * 1000))
        return remaining

    def begin_attempt(self) -> float | None:
        """Seconds that the next attempt may take."""
        self.attempts_made += 1
        limit = earlier(self.remaining(), self._attempt_timeout)
        if limit is not None:
            limit = max(0.0, limit)
            self._attempt_ends = time.monotonic() + limit
        return limit

    def attempt_timed_out(self) -> bool:
        """The attempt has used up its time, and the call has some left."""
        now = time.monotonic()
        ended = self._attempt_ends is not None and self._attempt_ends <= now
        return ended and (self._deadline is None or now < self._deadline)

    def context(self, failed: Failed, *, draining: bool) -> pb.RetryContext:
        return pb.RetryContext(
            tenant=self.key.tenant,
            operation=self.key.operation,
            attempts_made=self.attempts_made,
            remaining_deadline=self.remaining_deadline(),
            body_replayable=self.body_replayable,
            runtime_draining=draining,
            idempotency=self._idempotency,
            failure=failed.failure,
            evidence=failed.evidence,
            hint=failed.hint,
            call_id=self._call_id,
        )

    def grant(self) -> pb.ReleaseRetriesRequest:
        """Names what the last question was granted, to give it back."""
        decided = pb.DecidedAttempt(call_id=self._call_id, attempts_made=self.attempts_made)
        return pb.ReleaseRetriesRequest(tenant=self.key.tenant, operation=self.key.operation, unused=1, decided=decided)


def idempotency(operation: Operation, header_names: Iterable[str]) -> pb.Idempotency:
    """`header_names`: of what every attempt sends."""
    key = operation.key_header.lower() if operation.key_header else None
    sent = key is not None and any(name.lower() == key for name in header_names)
    return pb.Idempotency(declared=operation.declared, key_registered=key is not None, key_sent=sent)

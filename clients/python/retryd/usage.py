"""What was done since the last report, by tenant and operation."""

import math
import threading
import time
from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration

from .settings import name_violations
from .v1 import retryd_pb2 as pb

NAMES_MAX = 10_000
COUNT_MAX = 1_000_000_000

RETRIED_BY_CLASS = {
    pb.FAILURE_CLASS_TRANSIENT: "retried_transient",
    pb.FAILURE_CLASS_THROTTLING: "retried_throttling",
    pb.FAILURE_CLASS_TIMEOUT: "retried_timeout",
}


class Key(NamedTuple):
    tenant: str
    operation: str


@dataclass
class Counted:
    """Counts of one name, and when the counting began."""

    key: Key
    usage: pb.Usage
    since: float

    def message(self) -> pb.Usage:
        """The counts, with the time that they were gathered in: whole milliseconds, rounded up."""
        period = Duration()
        period.FromMilliseconds(max(1, math.ceil((time.monotonic() - self.since) * 1000)))
        return pb.Usage(**{field.name: count for field, count in self.usage.ListFields()}, period=period)

    def add(self, usage: pb.Usage) -> None:
        for field, count in usage.ListFields():
            setattr(self.usage, field.name, min(COUNT_MAX, getattr(self.usage, field.name) + count))


class Ledger:
    """Counts are taken out to be sent, and put back if they were certainly not counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: dict[Key, Counted] = {}

    def started(self, key: Key) -> None:
        self._add(key, pb.Usage(requests=1), time.monotonic())

    def succeeded(self, key: Key, attempts_made: int, failure_class: "pb.FailureClass") -> None:
        """`failure_class` is that of the last Decision of the call."""
        usage = pb.Usage(first_try_successes=1) if attempts_made == 1 else pb.Usage(retried_successes=1)
        if attempts_made > 1 and failure_class in RETRIED_BY_CLASS:
            setattr(usage, RETRIED_BY_CLASS[failure_class], 1)
        self._add(key, usage, time.monotonic())

    def take(self, key: Key) -> Counted | None:
        with self._lock:
            return self._counted.pop(key, None)

    def take_all(self) -> list[Counted]:
        with self._lock:
            taken, self._counted = list(self._counted.values()), {}
        return taken

    def put_back(self, counted: Counted) -> None:
        self._add(counted.key, counted.usage, counted.since)

    def _add(self, key: Key, usage: pb.Usage, since: float) -> None:
        with self._lock:
            counted = self._counted.get(key)
            if counted is None:
                if len(self._counted) >= NAMES_MAX or is_refused(key):
                    return
                counted = self._counted[key] = Counted(key, pb.Usage(), since)
            counted.add(usage)
            counted.since = min(counted.since, since)


def is_refused(key: Key) -> bool:
    """Such a name would come back with every report, and one that is too large brings a whole report back."""
    return bool(name_violations("tenant", key.tenant) or name_violations("operation", key.operation))

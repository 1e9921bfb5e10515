"""Retries that are taken ahead, so that the first one needs no question."""

import functools
import threading
import time
from dataclasses import dataclass

import grpc

from .background import Background, answer
from .usage import NAMES_MAX, Key
from .v1 import retryd_pb2 as pb
from .v1.retryd_pb2_grpc import BudgetServiceStub

ACQUIRE_PAUSE_SECONDS = 1.0


@dataclass
class Lease:
    """What is left of one, and until when; and when the last was asked for."""

    name: str = ""
    left: int = 0
    ends: float = 0.0
    asked: float | None = None

    def is_usable(self) -> bool:
        return self.left > 0 and time.monotonic() < self.ends


class Leases:
    def __init__(self, budgets: BudgetServiceStub, background: Background) -> None:
        self._budgets = budgets
        self._background = background
        self._lock = threading.Lock()
        self._leases: dict[Key, Lease] = {}

    def available(self, key: Key) -> int:
        with self._lock:
            lease = self._leases.get(key)
            return lease.left if lease is not None and lease.is_usable() else 0

    def refill(self, key: Key, wanted: int) -> None:
        """In the background, if nothing is left, and at most once a second."""
        now = time.monotonic()
        with self._lock:
            if key not in self._leases and len(self._leases) >= NAMES_MAX:
                return
            lease = self._leases.setdefault(key, Lease())
            if lease.is_usable() or (lease.asked is not None and now < lease.asked + ACQUIRE_PAUSE_SECONDS):
                return
            lease.asked = now
        request = pb.AcquireRetriesRequest(tenant=key.tenant, operation=key.operation, wanted=wanted)
        self._background.send(self._budgets.AcquireRetries, request, functools.partial(self._acquired, key, now))

    def spend(self, key: Key) -> str | None:
        """Takes one retry, and names the lease that it came from."""
        with self._lock:
            lease = self._leases.get(key)
            if lease is None or not lease.is_usable():
                return None
            lease.left -= 1
            return lease.name

    def put_back(self, key: Key, name: str) -> None:
        """One that was not sent after all. If its lease is no longer here, retryd takes it back."""
        with self._lock:
            lease = self._leases.get(key)
            if lease is not None and lease.name == name:
                lease.left += 1
                return
        self._release(key, name, 1)

    def release(self) -> None:
        with self._lock:
            leases, self._leases = self._leases, {}
        for key, lease in leases.items():
            if lease.is_usable():
                self._release(key, lease.name, lease.left)

    def _release(self, key: Key, name: str, unused: int) -> None:
        request = pb.ReleaseRetriesRequest(tenant=key.tenant, operation=key.operation, unused=unused, lease=name)
        self._background.send(self._budgets.ReleaseRetries, request)

    def _acquired(self, key: Key, sent: float, future: grpc.Future) -> None:
        granted = answer(future)
        # What comes from the copy of a shadow policy's budgets pays for nothing.
        if granted is None or not granted.granted or granted.shadow:
            return
        ends = sent + granted.valid_for.ToNanoseconds() / 1e9
        with self._lock:
            self._leases[key] = Lease(granted.lease, granted.granted, ends, sent)

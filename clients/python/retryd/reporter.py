"""Reports the usage that no question has taken along."""

import functools
import logging
import threading
import uuid

import grpc

from .background import Background
from .details import is_retryds_own
from .timer import Timer
from .usage import Counted, Ledger
from .v1 import retryd_pb2 as pb
from .v1.retryd_pb2_grpc import BudgetServiceStub

log = logging.getLogger(__name__)

ENTRIES_MAX = 1000


class Reporter:
    def __init__(
        self, ledger: Ledger, budgets: BudgetServiceStub, background: Background, timer: Timer, every: float
    ) -> None:
        self._ledger = ledger
        self._budgets = budgets
        self._background = background
        self._timer = timer
        self._every = every
        self._starting = threading.Lock()
        self._started = False

    def start(self) -> None:
        """With the first call, so that a client that is not used has no thread."""
        with self._starting:
            first, self._started = not self._started, True
        if first:
            self._timer.after(self._every, self._tick)

    def report(self) -> None:
        taken = self._ledger.take_all()
        for start in range(0, len(taken), ENTRIES_MAX):
            self._send(taken[start : start + ENTRIES_MAX])

    def _tick(self) -> None:
        try:
            self.report()
        finally:
            self._timer.after(self._every, self._tick)

    def _send(self, taken: list[Counted]) -> None:
        entries = [pb.TenantUsage(tenant=it.key.tenant, operation=it.key.operation, usage=it.message()) for it in taken]
        request = pb.ReportUsageRequest(usage=entries, report_id=str(uuid.uuid4()))
        self._background.send(self._budgets.ReportUsage, request, functools.partial(self._settle, taken))

    def _settle(self, taken: list[Counted], future: grpc.Future) -> None:
        try:
            results = future.result().results
        except grpc.RpcError as error:
            # After any other end nobody knows whether it was counted, and counted twice it would open the budget.
            if is_retryds_own(error):
                for counted in taken:
                    self._ledger.put_back(counted)
            return
        for counted, result in zip(taken, results, strict=True):
            if not result.HasField("refusal"):
                continue
            if result.refusal.grpc_code == grpc.StatusCode.UNAVAILABLE.value[0]:
                self._ledger.put_back(counted)
            else:
                log.warning("retryd: usage of %r refused: grpc %d", counted.key.operation, result.refusal.grpc_code)

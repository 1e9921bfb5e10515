"""A retryd that answers as a test says, and keeps what it was asked."""

from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from retryd.v1 import retryd_pb2 as pb
from retryd.v1.retryd_pb2_grpc import (
    BudgetServiceServicer,
    RetryServiceServicer,
    add_BudgetServiceServicer_to_server,
    add_RetryServiceServicer_to_server,
)


class FakeRetryd(RetryServiceServicer, BudgetServiceServicer):
    def __init__(self, address: str = "127.0.0.1:0") -> None:
        self.decision: Callable[[pb.RetryContext, grpc.ServicerContext], pb.Decision] = lambda *_: stop()
        self.report: Callable[[pb.ReportUsageRequest, grpc.ServicerContext], pb.ReportUsageResponse] = all_counted
        self.lease = pb.AcquireRetriesResponse(granted=2, lease="one", valid_for=Duration(seconds=10))
        self.questions: list[pb.RetryContext] = []
        self.time_left: list[float] = []
        self.reports: list[pb.ReportUsageRequest] = []
        self.acquired: list[pb.AcquireRetriesRequest] = []
        self.released: list[pb.ReleaseRetriesRequest] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        add_RetryServiceServicer_to_server(self, self._server)
        add_BudgetServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()

    def reported(self) -> dict[str, pb.Usage]:
        """The sum over questions and reports, by operation; without periods."""
        sums: dict[str, pb.Usage] = {}
        told = [(it.operation, it.usage) for it in self.questions]
        told += [(entry.operation, entry.usage) for it in self.reports for entry in it.usage]
        for operation, usage in told:
            total = sums.setdefault(operation, pb.Usage())
            for field, count in usage.ListFields():
                if field.name != "period":
                    setattr(total, field.name, getattr(total, field.name) + count)
        return sums

    def Decide(self, request: pb.RetryContext, context: grpc.ServicerContext) -> pb.Decision:  # noqa: N802
        self.questions.append(request)
        self.time_left.append(context.time_remaining())
        return self.decision(request, context)

    def ReportUsage(self, request: pb.ReportUsageRequest, context: grpc.ServicerContext) -> pb.ReportUsageResponse:  # noqa: N802
        self.reports.append(request)
        return self.report(request, context)

    def AcquireRetries(self, request: pb.AcquireRetriesRequest, _: object) -> pb.AcquireRetriesResponse:  # noqa: N802
        self.acquired.append(request)
        return self.lease

    def ReleaseRetries(self, request: pb.ReleaseRetriesRequest, _: object) -> pb.ReleaseRetriesResponse:  # noqa: N802
        self.released.append(request)
        return pb.ReleaseRetriesResponse(released=request.unused)


def all_counted(request: pb.ReportUsageRequest, _context: object) -> pb.ReportUsageResponse:
    return pb.ReportUsageResponse(results=[pb.UsageResult(budget=pb.BudgetState()) for _ in request.usage])


def stop() -> pb.Decision:
    return pb.Decision(verdict=pb.VERDICT_DO_NOT_RETRY, failure_class=pb.FAILURE_CLASS_TRANSIENT)


def retry(delay_ms: int, failure_class: pb.FailureClass = pb.FAILURE_CLASS_TRANSIENT) -> pb.Decision:
    delay = Duration()
    delay.FromMilliseconds(delay_ms)
    return pb.Decision(verdict=pb.VERDICT_RETRY, delay=delay, failure_class=failure_class)


def refuse(code: grpc.StatusCode, domain: str = "retryd") -> Callable[[object, grpc.ServicerContext], None]:
    """An error with an ErrorInfo of this domain."""
    detail = Any()
    detail.Pack(ErrorInfo(domain=domain, reason="OVERLOADED"))
    status = Status(code=code.value[0], details=[detail]).SerializeToString()

    def answer(_request: object, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", status),))
        context.abort(code, "a test says so")

    return answer


@pytest.fixture
def fake() -> Iterator[FakeRetryd]:
    fake = FakeRetryd()
    yield fake
    fake.stop()

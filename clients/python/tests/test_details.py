"""What is read from the trailers of a gRPC error."""

from types import SimpleNamespace

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from retryd.details import hint, is_retryds_own
from retryd.v1 import retryd_pb2 as pb

DETAILS = "grpc-status-details-bin"
LATER = RetryInfo(retry_delay=Duration(seconds=2))
BROKEN = Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=b"\xff")


def later(seconds: int, nanos: int) -> RetryInfo:
    return RetryInfo(retry_delay=Duration(seconds=seconds, nanos=nanos))


def error(*metadata: tuple[str, str | bytes]) -> grpc.Call:
    return SimpleNamespace(trailing_metadata=lambda: metadata)


def status(*details: Message) -> tuple[str, bytes]:
    packed = [detail if isinstance(detail, Any) else pack(detail) for detail in details]
    return DETAILS, Status(code=14, details=packed).SerializeToString()


def pack(detail: Message) -> Any:
    packed = Any()
    packed.Pack(detail)
    return packed


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (error(), None),
        (error(("other", "1")), None),
        (error(("grpc-retry-pushback-ms", "")), pb.ServerHint(grpc_retry_pushback_ms="")),
        (
            error(("grpc-retry-pushback-ms", "1"), ("grpc-retry-pushback-ms", "2")),
            pb.ServerHint(grpc_retry_pushback_ms="1,2"),
        ),
        (error(status(ErrorInfo(domain="shop"), LATER)), pb.ServerHint(retry_after=Duration(seconds=2))),
        (error(status(RetryInfo())), pb.ServerHint(retry_after=Duration())),
        (error(status(later(-1, -5))), pb.ServerHint(retry_after=Duration())),
        (error(status(later(2**62, 5))), pb.ServerHint(retry_after=Duration(seconds=315_576_000_000, nanos=5))),
        (error(status(later(1, -5))), pb.ServerHint(retry_after=Duration(seconds=1))),
        (error(status(later(1, 2**31 - 1))), pb.ServerHint(retry_after=Duration(seconds=1, nanos=999_999_999))),
        (error((DETAILS, b"\xff")), None),
        (error(status(BROKEN)), None),
    ],
)
def test_hint(failed: grpc.Call, expected: pb.ServerHint | None) -> None:
    assert hint(failed) == expected


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (error(status(LATER, ErrorInfo(domain="retryd"))), True),
        (error(status(ErrorInfo(domain="a proxy"))), False),
        (error(status()), False),
        (error(), False),
        (error((DETAILS, b"\xff")), False),
    ],
)
def test_is_retryds_own(failed: grpc.Call, expected: bool) -> None:
    assert is_retryds_own(failed) == expected

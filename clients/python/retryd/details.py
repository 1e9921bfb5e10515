"""What a gRPC error says beyond its code."""

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from .v1 import retryd_pb2 as pb

DOMAIN = "retryd"
DETAILS = "grpc-status-details-bin"
PUSHBACK = "grpc-retry-pushback-ms"


def is_retryds_own(error: grpc.Call) -> bool:
    """retryd itself has made this error, and nothing was counted or charged."""
    info = ErrorInfo()
    return any(detail.Unpack(info) and info.domain == DOMAIN for detail in details(error))


def hint(error: grpc.Call) -> pb.ServerHint | None:
    """When to come back, as the answer's trailers say it."""
    said = pb.ServerHint()
    if pushbacks := values(error, PUSHBACK):
        said.grpc_retry_pushback_ms = ",".join(pushbacks)
    info = RetryInfo()
    if any(detail.Unpack(info) for detail in details(error)):
        said.retry_after.CopyFrom(info.retry_delay)
    return said if said.ListFields() else None


def details(error: grpc.Call) -> list:
    try:
        return [detail for value in values(error, DETAILS) for detail in Status.FromString(value).details]
    except DecodeError:
        return []


def values(error: grpc.Call, key: str) -> list:
    return [value for name, value in error.trailing_metadata() or () if name == key]

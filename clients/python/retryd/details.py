"""What a gRPC error says beyond its code."""

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from .calls import DURATION_SECONDS_MAX
from .v1 import retryd_pb2 as pb

DOMAIN = "retryd"
DETAILS = "grpc-status-details-bin"
NANOS_MAX = 999_999_999
PUSHBACK = "grpc-retry-pushback-ms"


def is_retryds_own(error: grpc.Call) -> bool:
    """retryd itself has made this error, and nothing was counted or charged."""
    info = ErrorInfo()
    return unpack(error, info) and info.domain == DOMAIN


def hint(error: grpc.Call) -> pb.ServerHint | None:
    """When to come back, as the answer's trailers say it."""
    said = pb.ServerHint()
    if pushbacks := values(error, PUSHBACK):
        said.grpc_retry_pushback_ms = ",".join(pushbacks)
    info = RetryInfo()
    if unpack(error, info):
        seconds, nanos = info.retry_delay.seconds, info.retry_delay.nanos
        # What is no Duration, as a server may send it, would make the question malformed.
        said.retry_after.seconds = min(max(0, seconds), DURATION_SECONDS_MAX)
        said.retry_after.nanos = 0 if seconds < 0 else min(max(0, nanos), NANOS_MAX)
    return said if said.ListFields() else None


def unpack(error: grpc.Call, message: Message) -> bool:
    """Whether there is a detail of this kind, and can be read: a server may send anything."""
    try:
        statuses = [Status.FromString(value) for value in values(error, DETAILS)]
        return any(detail.Unpack(message) for status in statuses for detail in status.details)
    except DecodeError:
        return False


def values(error: grpc.Call, key: str) -> list:
    return [value for name, value in error.trailing_metadata() or () if name == key]

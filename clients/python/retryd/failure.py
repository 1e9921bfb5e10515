"""A failed attempt, as far as a library knows it."""

import re
from dataclasses import dataclass

from .v1 import retryd_pb2 as pb

# The default `retry_on` of a policy.
RETRIED_HTTP = frozenset({408, 421, 425, 429, 500, 502, 503, 504})
RETRIED_CATEGORIES = frozenset(
    {
        pb.FAILURE_CATEGORY_NAME_RESOLUTION,
        pb.FAILURE_CATEGORY_CONNECT,
        pb.FAILURE_CATEGORY_TLS_HANDSHAKE,
        pb.FAILURE_CATEGORY_STREAM_REFUSED,
        pb.FAILURE_CATEGORY_CONNECTION_RESET,
        pb.FAILURE_CATEGORY_ATTEMPT_TIMEOUT,
    }
)
GRPC_RESOURCE_EXHAUSTED = 8
GRPC_UNAVAILABLE = 14

PUSHBACK_MS_MAX = 2**31 - 1


@dataclass(frozen=True)
class Failed:
    """Evidence and hint are left out where nothing is proven and nothing was said."""

    failure: pb.Failure
    evidence: pb.Evidence = pb.EVIDENCE_UNSPECIFIED
    hint: pb.ServerHint | None = None


def counts_in_throttle(failure: pb.Failure, hint: pb.ServerHint) -> bool:
    """Whether the local throttle takes a token for it."""
    if forbids(hint):
        return True
    if failure.category not in (pb.FAILURE_CATEGORY_UNSPECIFIED, pb.FAILURE_CATEGORY_STATUS):
        return failure.category in RETRIED_CATEGORIES
    if failure.HasField("http_status"):
        return failure.http_status in RETRIED_HTTP
    if failure.grpc_code == GRPC_RESOURCE_EXHAUSTED:
        return is_present(hint)
    return failure.grpc_code == GRPC_UNAVAILABLE


def forbids(hint: pb.ServerHint) -> bool:
    """A pushback that is negative or unreadable."""
    return hint.HasField("grpc_retry_pushback_ms") and pushback_ms(hint) is None


def is_present(hint: pb.ServerHint) -> bool:
    """Only gRPC asks this, which knows no Retry-After."""
    return hint.HasField("retry_after") or pushback_ms(hint) is not None


def pushback_ms(hint: pb.ServerHint) -> int | None:
    """None without one, or if it is none: digits, and no zero before them."""
    text = hint.grpc_retry_pushback_ms
    if not re.fullmatch("0|[1-9][0-9]{0,9}", text):
        return None
    return delay if (delay := int(text)) <= PUSHBACK_MS_MAX else None

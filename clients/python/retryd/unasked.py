"""The one retry that needs no retryd."""

import random
import re

import grpc

from .failure import forbids, pushback_ms
from .throttle import Throttle
from .v1 import retryd_pb2 as pb

NEVER_PROCESSED = frozenset(
    {
        pb.FAILURE_CATEGORY_NAME_RESOLUTION,
        pb.FAILURE_CATEGORY_CONNECT,
        pb.FAILURE_CATEGORY_STREAM_REFUSED,
    }
)
BACKOFF_MS_MAX = 100
ATTEMPT_MS_MIN = 50


def after_silence(context: pb.RetryContext, ended: grpc.StatusCode, throttle: Throttle) -> float | None:
    """Seconds until the retry of a call whose question ended like this; None if it must not be repeated."""
    if ended not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return None
    return first_retry(context, throttle)


def first_retry(context: pb.RetryContext, throttle: Throttle) -> float | None:
    """Seconds until a first retry that is safe whatever a policy says; None if this one is not."""
    if (
        context.attempts_made != 1
        or not context.body_replayable
        or context.first_byte_delivered
        or context.runtime_draining
        or context.failure.category not in NEVER_PROCESSED
        or forbids(context.hint)
        or not throttle.grants()
    ):
        return None
    hinted_ms = hint_ms(context.hint)
    if hinted_ms is None:
        return None
    wait_ms = max(hinted_ms, random.randint(1, BACKOFF_MS_MAX))
    if context.HasField("remaining_deadline"):
        remaining_ms = context.remaining_deadline.ToNanoseconds() // 1_000_000
        if wait_ms + ATTEMPT_MS_MIN >= remaining_ms:
            return None
    return wait_ms / 1000


def hint_ms(hint: pb.ServerHint) -> int | None:
    """The longest wait that the server asked for, 0 without one; None if only retryd can read it."""
    after_ms = -(-hint.retry_after.ToNanoseconds() // 1_000_000)
    header = hint.retry_after_header.strip(" \t")
    if header and not re.fullmatch("[0-9]{1,18}", header):
        # A date, nonsense, or longer than anybody waits.
        return None
    return max(after_ms, pushback_ms(hint) or 0, int(header or 0) * 1000)

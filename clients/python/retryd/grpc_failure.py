"""What grpcio knows about a failed attempt: little.

It makes no difference between a status that the peer sent and one of its own making. A server that passes the error
of its own upstream on, "failed to connect to all addresses", is told apart by no field of the error; nor does grpcio
say whether a stream was opened, or refused. So a status is told as it is, and retryd reads it as "may have been
processed", which is always safe. Only what this kit does itself, by its clock or for its caller, is told as more.
"""

import grpc

from .calls import Call
from .details import hint
from .failure import Failed
from .v1 import retryd_pb2 as pb


def failed(attempt: grpc.Call, call: Call) -> Failed:
    code = attempt.code()
    category = pb.FAILURE_CATEGORY_STATUS
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and call.attempt_timed_out():
        category = pb.FAILURE_CATEGORY_ATTEMPT_TIMEOUT
    failure = pb.Failure(category=category, grpc_code=code.value[0])
    return Failed(failure, hint=hint(attempt))


def cancelled() -> Failed:
    """By the caller, through the kit."""
    code = grpc.StatusCode.CANCELLED.value[0]
    return Failed(pb.Failure(category=pb.FAILURE_CATEGORY_CANCELLED, grpc_code=code))

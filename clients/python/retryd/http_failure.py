"""What requests and urllib3 know about a failed attempt, by the types of their errors."""

import http.client
import ssl

import requests
from urllib3 import exceptions as urllib3

from .failure import Failed
from .v1 import retryd_pb2 as pb

STATUS_MAX = 599


def no_answer(error: requests.RequestException) -> Failed | None:
    """None if this is no failed attempt: the request itself was wrong, and was not tried."""
    if not isinstance(error, requests.ConnectionError | requests.Timeout):
        return None
    cause = error.args[0] if error.args else None
    return by_cause(cause.reason if isinstance(cause, urllib3.MaxRetryError) else cause)


def by_cause(cause: object) -> Failed:
    """urllib3 raises the first three only before there is a connection to send anything on."""
    match cause:
        case urllib3.NameResolutionError():
            return failed(pb.FAILURE_CATEGORY_NAME_RESOLUTION, pb.EVIDENCE_NOT_SENT)
        case urllib3.NewConnectionError() | urllib3.ConnectTimeoutError():
            return failed(pb.FAILURE_CATEGORY_CONNECT, pb.EVIDENCE_NOT_SENT)
        case urllib3.SSLError(args=(ssl.SSLCertVerificationError(), *_)):
            return failed(pb.FAILURE_CATEGORY_CERTIFICATE_REJECTED, pb.EVIDENCE_NOT_SENT)
        case urllib3.ProxyError():
            return by_cause(cause.original_error)
        case urllib3.SSLError():
            # With TLS 1.3 a server may end the handshake when the request is already on its way.
            return failed(pb.FAILURE_CATEGORY_TLS_HANDSHAKE, pb.EVIDENCE_MAYBE_PROCESSED)
        case urllib3.ReadTimeoutError():
            return failed(pb.FAILURE_CATEGORY_ATTEMPT_TIMEOUT, pb.EVIDENCE_MAYBE_PROCESSED)
        # The end of a connection instead of an answer is a ConnectionError, too.
        case urllib3.ProtocolError(args=(_, http.client.HTTPException() as inner)) if not isinstance(inner, OSError):
            return failed(pb.FAILURE_CATEGORY_PROTOCOL_VIOLATION, pb.EVIDENCE_MAYBE_PROCESSED)
        case _:
            return failed(pb.FAILURE_CATEGORY_CONNECTION_RESET, pb.EVIDENCE_MAYBE_PROCESSED)


def failed(category: pb.FailureCategory, evidence: pb.Evidence) -> Failed:
    return Failed(pb.Failure(category=category), evidence)


def refused(response: requests.Response) -> Failed:
    """An answer with a status of 400 or more."""
    if response.status_code > STATUS_MAX:
        return failed(pb.FAILURE_CATEGORY_PROTOCOL_VIOLATION, pb.EVIDENCE_MAYBE_PROCESSED)
    failure = pb.Failure(category=pb.FAILURE_CATEGORY_STATUS, http_status=response.status_code)
    after = response.headers.get("Retry-After")
    if after is None:
        return Failed(failure)
    date = response.headers.get("Date", "")
    return Failed(failure, hint=pb.ServerHint(retry_after_header=after, date_header=date))

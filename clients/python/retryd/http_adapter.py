"""Requests of `requests`."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Timeout

from .advisor import Advisor
from .calls import Call
from .http_failure import no_answer, refused
from .retry import Retry, wait
from .throttle import Throttles

# From here on a status is a failure.
STATUS_FAILED = 400
# urllib3 takes no 0.
TIMEOUT_SECONDS_MIN = 0.001


class RetryAdapter(HTTPAdapter):
    """Ends with the response headers: what becomes of the body is the application's."""

    def __init__(self, advisor: Advisor, **kwargs: Any) -> None:
        self._advisor = advisor
        self._throttles = Throttles()
        # urllib3 must not repeat what we count.
        super().__init__(max_retries=0, **kwargs)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        rewind = rewinder(request.body)
        url = urlsplit(request.url)
        call = self._advisor.begin(
            f"{request.method} {url.hostname}",
            request.headers,
            self._throttles[url.netloc],
            body_replayable=rewind is not None,
        )
        while True:
            limit = call.begin_attempt()
            try:
                response = super().send(request, stream, limited(timeout, limit), verify, cert, proxies)
            except requests.RequestException as error:
                failed = no_answer(error)
                if failed is None or not may_repeat(self._advisor.ask(call, failed).wait(), call, rewind):
                    raise
                continue
            if response.status_code < STATUS_FAILED:
                self._advisor.succeeded(call)
                return response
            if not may_repeat(self._advisor.ask(call, refused(response)).wait(), call, rewind):
                return response
            response.close()


def may_repeat(retry: Retry | None, call: Call, rewind: Callable[[], bool] | None) -> bool:
    if retry is None:
        return False
    if rewind is None or not rewind():
        retry.give_back()
        return False
    return wait(retry, call)


def rewinder(body: Any) -> Callable[[], bool] | None:
    """Brings a body back to where it stands now, and tells whether it could; None if it cannot be sent twice."""
    if body is None or isinstance(body, str | bytes):
        return lambda: True
    try:
        if not body.seekable():
            return None
        start = body.tell()
    except (AttributeError, OSError, ValueError):
        return None

    def rewind() -> bool:
        try:
            return body.seek(start) == start
        except (OSError, ValueError):
            return False

    return rewind


def limited(timeout: Any, limit: float | None) -> Any:
    """What the application set for each attempt, and no more than `limit` in all."""
    if limit is None:
        return timeout
    if isinstance(timeout, Timeout):
        combined = timeout.clone()
    else:
        connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        combined = Timeout(connect=connect, read=read)
    limits = [it for it in (combined.total, limit) if isinstance(it, int | float)]
    combined.total = max(TIMEOUT_SECONDS_MIN, min(limits))
    return combined

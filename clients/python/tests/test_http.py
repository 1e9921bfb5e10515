"""What `requests` promises of a request, kept by one that is repeated."""

import io
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from urllib3 import Timeout
from urllib3 import exceptions as urllib3

import retryd
from retryd.failure import Failed
from retryd.http_adapter import limited, rewinder
from retryd.http_failure import no_answer, refused
from retryd.v1 import retryd_pb2 as pb

from .adapters import counting
from .fake_retryd import FakeRetryd, retry, stop
from .testbed import Testbed


@pytest.fixture
def session(fake: FakeRetryd) -> Iterator[requests.Session]:
    fake.decision = lambda *_: retry(1)
    with (
        retryd.Client(target=fake.address, tenant="shop", ask_timeout=5) as client,
        requests.Session() as session,
    ):
        session.trust_env = False
        session.mount("http://", client.http_adapter())
        session.mount("https://", client.http_adapter())
        yield session


def scripted(testbed: Testbed, play: str, script: str) -> dict[str, Any]:
    url = testbed.addresses["http"]["faulty"] + "/payments/4711"
    return {"url": url, "headers": {"x-play": f"python-http-{play}", "x-script": script}, "timeout": 20}


def test_the_answer_is_that_of_the_last_attempt(session: requests.Session, testbed: Testbed, fake: FakeRetryd) -> None:
    response = session.get(**scripted(testbed, "last", '[{"http": 503}, {"http": 500}, {"ok": true}]'))
    assert (response.status_code, response.text) == (200, "done")
    assert {it.operation for it in fake.questions} == {"GET 127.0.0.1"}
    assert [it.failure.http_status for it in fake.questions] == [503, 500]


def test_a_failed_answer_can_be_read(session: requests.Session, testbed: Testbed, fake: FakeRetryd) -> None:
    fake.decision = lambda *_: stop()
    for stream in (False, True):
        arguments = scripted(testbed, f"read-{stream}", '[{"http": 503}]')
        assert session.get(**arguments, stream=stream).text == "status 503"


def test_urllib3_repeats_nothing_of_its_own(session: requests.Session, testbed: Testbed, fake: FakeRetryd) -> None:
    fake.decision = lambda *_: stop()
    with pytest.raises(requests.ConnectionError):
        session.get(**scripted(testbed, "once-only", '[{"close": "before_headers"}]'))
    assert len(testbed.play("python-http-once-only")["arrivals"]) == 1


def test_without_retryd_the_throttle_of_a_target_ends_the_retries(testbed: Testbed) -> None:
    with (
        retryd.Client(target=testbed.addresses["retryd"]["stopped"], tenant="shop") as client,
        requests.Session() as session,
        retryd.call(timeout=60),
    ):
        adapter = counting(client)
        session.mount("http://", adapter)
        attempts = []
        for _ in range(4):
            before = adapter.attempts
            with pytest.raises(requests.ConnectionError):
                session.get(testbed.addresses["http"]["closed"])
            attempts.append(adapter.attempts - before)
    # 10 tokens: 9, 8; 7, 6; 5, which is half.
    assert attempts == [2, 2, 1, 1]


def test_a_file_is_sent_again_from_where_it_stood(session: requests.Session, testbed: Testbed) -> None:
    body = io.BytesIO(b"skipped, and sent")
    body.seek(9)
    session.post(**scripted(testbed, "file", '[{"http": 503}, {"ok": true}]'), data=body)
    arrivals = testbed.play("python-http-file")["arrivals"]
    assert [it["headers"]["content-length"] for it in arrivals] == ["8", "8"]
    assert body.read() == b""


@pytest.mark.parametrize(
    ("body", "is_replayable"),
    [
        (None, True),
        ("text", True),
        (b"bytes", True),
        (io.BytesIO(b"a file"), True),
        (iter([b"a stream"]), False),
        (io.RawIOBase(), False),
    ],
)
def test_which_bodies_can_be_sent_again(body: Any, is_replayable: bool) -> None:
    assert (rewinder(body) is not None) == is_replayable


def test_a_body_that_cannot_be_brought_back_ends_the_call(
    session: requests.Session, testbed: Testbed, fake: FakeRetryd
) -> None:
    class Once(io.BytesIO):
        def seek(self, *_: int) -> int:
            raise OSError

    response = session.post(**scripted(testbed, "once", '[{"http": 503}, {"ok": true}]'), data=Once(b"body"))
    assert response.status_code == 503
    assert len(testbed.play("python-http-once")["arrivals"]) == 1


def test_a_request_that_is_wrong_is_no_failed_attempt(session: requests.Session, fake: FakeRetryd) -> None:
    with pytest.raises(requests.exceptions.InvalidURL):
        session.get("http://")
    with pytest.raises(OSError, match="CA certificate bundle"):
        session.get("https://127.0.0.1:1/", verify="/nowhere")
    assert fake.questions == []


def test_tls_with_a_server_that_speaks_none(session: requests.Session, testbed: Testbed, fake: FakeRetryd) -> None:
    fake.decision = lambda *_: stop()
    with pytest.raises(requests.exceptions.SSLError):
        session.get(testbed.addresses["http"]["faulty"].replace("http:", "https:"), timeout=20)
    (question,) = fake.questions
    told = question.failure.category, question.evidence
    assert told == (pb.FAILURE_CATEGORY_TLS_HANDSHAKE, pb.EVIDENCE_MAYBE_PROCESSED)


def test_a_proxy_that_cannot_be_reached(session: requests.Session, testbed: Testbed, fake: FakeRetryd) -> None:
    fake.decision = lambda *_: stop()
    with pytest.raises(requests.exceptions.ProxyError):
        session.get("http://127.0.0.1:1/", proxies={"http": testbed.addresses["http"]["closed"]}, timeout=20)
    (question,) = fake.questions
    assert (question.failure.category, question.evidence) == (pb.FAILURE_CATEGORY_CONNECT, pb.EVIDENCE_NOT_SENT)


@pytest.mark.parametrize(
    ("cause", "category", "evidence"),
    [
        (
            urllib3.SSLError(ssl.SSLCertVerificationError("self-signed")),
            pb.FAILURE_CATEGORY_CERTIFICATE_REJECTED,
            pb.EVIDENCE_NOT_SENT,
        ),
        (urllib3.ConnectTimeoutError("timed out"), pb.FAILURE_CATEGORY_CONNECT, pb.EVIDENCE_NOT_SENT),
        (
            urllib3.ProxyError("tunnel", OSError("Connection refused")),
            pb.FAILURE_CATEGORY_CONNECTION_RESET,
            pb.EVIDENCE_MAYBE_PROCESSED,
        ),
        (Exception("Failed to resolve"), pb.FAILURE_CATEGORY_CONNECTION_RESET, pb.EVIDENCE_MAYBE_PROCESSED),
    ],
)
def test_errors_that_are_hard_to_bring_about(
    cause: Exception, category: pb.FailureCategory, evidence: pb.Evidence
) -> None:
    for error in (requests.ConnectionError(urllib3.MaxRetryError(None, "/", cause)), requests.ConnectionError(cause)):
        assert no_answer(error) == Failed(pb.Failure(category=category), evidence)


def test_a_status_that_is_none() -> None:
    response = requests.Response()
    response.status_code = 999
    assert refused(response).failure == pb.Failure(category=pb.FAILURE_CATEGORY_PROTOCOL_VIOLATION)


@pytest.mark.parametrize(
    ("timeout", "limit", "connect", "read"),
    [
        (None, 5, 5, 5),
        (3, 5, 3, 3),
        (7, 5, 5, 5),
        ((1, None), 5, 1, 5),
        ((1, 9), 5, 1, 5),
        (Timeout(connect=1, read=2, total=3), 5, 1, 2),
        (Timeout(connect=9, read=9, total=3), 5, 3, 3),
        (None, 0, 0.001, 0.001),
    ],
)
def test_no_attempt_takes_longer_than_its_limit(timeout: Any, limit: float, connect: float, read: float) -> None:
    combined = limited(timeout, limit)
    combined.start_connect()
    assert combined.connect_timeout == connect
    assert read - 0.5 < combined.read_timeout <= read


def test_without_a_limit_the_timeout_is_the_application_s() -> None:
    assert limited((1, 2), None) == (1, 2)

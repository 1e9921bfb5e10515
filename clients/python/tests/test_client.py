"""What a client does over many calls, against a retryd that answers as the test says."""

import contextlib
import math
import threading

import grpc
import pytest

import retryd
from retryd.usage import Key
from retryd.v1 import retryd_pb2 as pb

from .fake_retryd import FakeRetryd, refuse, retry, stop
from .service import OPERATION, Service, method
from .test_grpc import SOON, UNAVAILABLE, answer, wait_until


def test_close_reports_the_rest_once(client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd) -> None:
    for _ in range(3):
        method(channel)(b"", timeout=SOON)
    client.close()
    client.close()
    (report,) = fake.reports
    (entry,) = report.usage
    assert (entry.tenant, entry.operation) == ("shop", OPERATION)
    assert (entry.usage.requests, entry.usage.first_try_successes) == (3, 3)
    assert entry.usage.period.ToNanoseconds() > 0
    assert report.report_id


def test_calls_pass_untouched_after_close(
    client: retryd.Client,
    channel: grpc.Channel,
    fake: FakeRetryd,
    service: Service,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client.close()
    assert method(channel)(b"", timeout=SOON) == b"done"
    service.codes = [UNAVAILABLE]
    with pytest.raises(grpc.RpcError):
        method(channel)(b"", timeout=SOON)
    assert (fake.questions, fake.reports, caplog.records) == ([], [], [])


def test_usage_is_reported_in_time_without_a_question(fake: FakeRetryd, service: Service) -> None:
    with (
        retryd.Client(target=fake.address, tenant="shop", report_every=0.1) as client,
        grpc.insecure_channel(service.address) as bare,
    ):
        channel = grpc.intercept_channel(bare, client.interceptor())
        for calls in (1, 2):
            method(channel)(b"", timeout=SOON)
            wait_until(lambda calls=calls: len(fake.reports) == calls)
    assert [it.usage[0].usage.requests for it in fake.reports] == [1, 1]
    assert len({it.report_id for it in fake.reports}) == 2


@pytest.mark.parametrize(
    ("domain", "requests"), [pytest.param("retryd", 2, id="kept"), pytest.param("a proxy", 1, id="dropped")]
)
def test_usage_of_a_question_that_failed(
    channel: grpc.Channel, fake: FakeRetryd, service: Service, domain: str, requests: int
) -> None:
    for decision in (refuse(UNAVAILABLE, domain), lambda *_: stop()):
        fake.decision = decision
        fail(channel, service)
    assert fake.questions[1].usage.requests == requests


@pytest.mark.parametrize(
    ("domain", "requests"), [pytest.param("retryd", 1, id="kept"), pytest.param("a proxy", 0, id="dropped")]
)
def test_usage_of_a_report_that_failed(
    client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd, domain: str, requests: int
) -> None:
    fake.report = refuse(UNAVAILABLE, domain)
    method(channel)(b"", timeout=SOON)
    client._reporter.report()
    client._background.wait()
    counted = client._ledger.take(Key("shop", OPERATION))
    assert (counted.usage.requests if counted else 0) == requests


def test_usage_of_a_report_s_entry_that_was_refused(
    client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd
) -> None:
    codes = {"overloaded": 14, "malformed": 3}
    fake.report = lambda request, _: pb.ReportUsageResponse(
        results=[pb.UsageResult(refusal=pb.Refusal(grpc_code=codes[it.operation])) for it in request.usage]
    )
    for operation in codes:
        with retryd.call(operation=operation):
            method(channel)(b"", timeout=SOON)
    client._reporter.report()
    client._background.wait()
    assert [it.key.operation for it in client._ledger.take_all()] == ["overloaded"]


def test_a_report_has_no_more_entries_than_retryd_takes(
    client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd
) -> None:
    for place in range(1001):
        client._ledger.started(Key("shop", str(place)))
    client.close()
    assert sorted(len(it.usage) for it in fake.reports) == [1, 1000]


def test_a_question_takes_a_tenth_of_what_remains_at_most(
    channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    for timeout in (10, 1000):
        service.codes = [UNAVAILABLE]
        with pytest.raises(grpc.RpcError):
            method(channel)(b"", timeout=timeout)
    assert 0 < fake.time_left[0] < 1.5
    assert 1.5 < fake.time_left[1] < 5.5
    assert [it.remaining_deadline.seconds for it in fake.questions] == [9, 999]


def test_a_call_says_who_pays_and_what_is_called(channel: grpc.Channel, fake: FakeRetryd, service: Service) -> None:
    service.codes = [UNAVAILABLE] * 3
    with retryd.call(tenant="guest", operation="outer"), retryd.call(operation="inner"), pytest.raises(grpc.RpcError):
        method(channel)(b"", timeout=SOON)
    with retryd.call(timeout=30), retryd.call(timeout=60), pytest.raises(grpc.RpcError):
        method(channel)(b"")
    with pytest.raises(grpc.RpcError):
        method(channel)(b"")
    inner, limited, plain = fake.questions
    assert (inner.tenant, inner.operation) == ("guest", "inner")
    assert (limited.tenant, limited.operation) == ("shop", OPERATION)
    assert 0 < limited.remaining_deadline.seconds < 30
    assert not plain.HasField("remaining_deadline")


def test_own_rules_see_the_attempt_and_the_decision(fake: FakeRetryd, service: Service) -> None:
    seen: list[tuple[int, int]] = []

    def rules(context: pb.RetryContext, decision: pb.Decision) -> float | None:
        seen.append((context.attempts_made, decision.verdict))
        return 0.001 if context.attempts_made == 1 else None

    fake.decision = lambda *_: pb.Decision(verdict=pb.VERDICT_DO_NOT_RETRY, shadow=True)
    service.codes = [UNAVAILABLE] * 2
    with (
        retryd.Client(target=fake.address, tenant="shop", ask_timeout=5, own_rules=rules) as client,
        grpc.insecure_channel(service.address) as bare,
        pytest.raises(grpc.RpcError),
    ):
        method(grpc.intercept_channel(bare, client.interceptor()))(b"", timeout=SOON)
    assert seen == [(1, pb.VERDICT_DO_NOT_RETRY), (2, pb.VERDICT_DO_NOT_RETRY)]


def test_own_rules_are_not_asked_about_a_verdict_that_nobody_knows(fake: FakeRetryd, service: Service) -> None:
    fake.decision = lambda *_: pb.Decision(verdict=99, shadow=True)
    with (
        retryd.Client(target=fake.address, tenant="shop", ask_timeout=5, own_rules=lambda *_: 0.001) as client,
        grpc.insecure_channel(service.address) as bare,
    ):
        fail(grpc.intercept_channel(bare, client.interceptor()), service)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "rules", [lambda *_: 1 / 0, lambda *_: -1, lambda *_: math.nan, lambda *_: math.inf, lambda *_: "soon"]
)
def test_own_rules_that_are_wrong_repeat_nothing(fake: FakeRetryd, service: Service, rules: retryd.OwnRules) -> None:
    fake.decision = lambda *_: pb.Decision(verdict=pb.VERDICT_RETRY, shadow=True)
    with (
        retryd.Client(target=fake.address, tenant="shop", ask_timeout=5, own_rules=rules) as client,
        grpc.insecure_channel(service.address) as bare,
    ):
        fail(grpc.intercept_channel(bare, client.interceptor()), service)
    assert len(service.requests) == 1


def test_a_retryd_that_comes_back_is_asked_again(service: Service) -> None:
    first = FakeRetryd()
    with (
        retryd.Client(target=first.address, tenant="shop", ask_timeout=5) as client,
        grpc.insecure_channel(service.address) as bare,
    ):
        channel = grpc.intercept_channel(bare, client.interceptor())
        fail(channel, service)
        first.stop()
        fail(channel, service)
        second = FakeRetryd(first.address)
        try:
            wait_until(lambda: fail(channel, service) or second.questions)
        finally:
            second.stop()
    assert len(first.questions) == 1


def fail(channel: grpc.Channel, service: Service) -> None:
    service.codes = [UNAVAILABLE]
    with pytest.raises(grpc.RpcError):
        method(channel)(b"", timeout=SOON)


def test_many_threads_lose_no_count_and_leave_no_thread(fake: FakeRetryd, service: Service) -> None:
    workers, calls = 8, 25
    succeeded: list[int] = []
    fake.decision = lambda context, _: retry(1) if context.attempts_made == 1 else stop()
    client = retryd.Client(target=fake.address, tenant="shop", ask_timeout=5, report_every=0.1)

    def work(place: int) -> None:
        with grpc.insecure_channel(service.address) as bare:
            channel = grpc.intercept_channel(bare, client.interceptor())
            for _ in range(calls):
                service.codes.append(UNAVAILABLE)
                # Which of the threads fails, and how often, is left to chance.
                with contextlib.suppress(grpc.RpcError):
                    answer(channel, "call" if place % 2 else "future", timeout=SOON)
                    succeeded.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    told = fake.reported()[OPERATION]
    assert succeeded
    assert told.requests == workers * calls
    assert told.first_try_successes + told.retried_successes == len(succeeded)
    assert told.retried_successes == told.retried_transient
    assert "retryd-timer" not in {it.name for it in threading.enumerate()}


def test_a_client_that_is_not_used_has_no_thread(fake: FakeRetryd) -> None:
    with retryd.Client(target=fake.address, tenant="shop") as client:
        client.interceptor()
        assert "retryd-timer" not in {it.name for it in threading.enumerate()}

"""What grpcio promises of a call, kept by one that is repeated."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import retryd
from retryd.v1 import retryd_pb2 as pb

from .fake_retryd import FakeRetryd, retry, stop
from .service import METHOD, OPERATION, Service, method

SOON = 20
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def test_with_call_tells_the_metadata_of_the_last_attempt(
    channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    fake.decision = lambda *_: retry(1)
    service.codes = [UNAVAILABLE, UNAVAILABLE]
    response, call = method(channel).with_call(b"request", timeout=SOON)
    assert (response, call.code(), dict(call.initial_metadata())) == (b"done", grpc.StatusCode.OK, {"attempt": "3"})
    assert service.requests == [b"request"] * 3


def test_the_last_failure_is_raised_as_grpcio_made_it(
    channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    fake.decision = lambda context, _: retry(1) if context.attempts_made == 1 else stop()
    service.codes = [UNAVAILABLE, grpc.StatusCode.NOT_FOUND]
    with pytest.raises(grpc.RpcError) as raised:
        method(channel)(b"request", timeout=SOON)
    assert type(raised.value).__module__ == "grpc._channel"
    assert (raised.value.code(), raised.value.details()) == (grpc.StatusCode.NOT_FOUND, "attempt 2")


def test_every_attempt_has_its_own_decision(channel: grpc.Channel, fake: FakeRetryd, service: Service) -> None:
    fake.decision = lambda *_: retry(1)
    for _ in range(2):
        service.codes = [UNAVAILABLE, UNAVAILABLE]
        method(channel)(b"", timeout=SOON)
    assert [it.attempts_made for it in fake.questions] == [1, 2, 1, 2]
    ids = [it.call_id for it in fake.questions]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert {it.operation for it in fake.questions} == {OPERATION}


def test_a_future_ends_with_its_last_attempt(channel: grpc.Channel, fake: FakeRetryd, service: Service) -> None:
    fake.decision = lambda *_: retry(50)
    service.codes = [UNAVAILABLE]
    ended = threading.Event()
    future = method(channel).future(b"request", timeout=SOON)
    future.add_done_callback(lambda done: done is future and ended.set())
    assert future.running()
    assert future.is_active()
    assert 0 < future.time_remaining() <= SOON
    with pytest.raises(grpc.FutureTimeoutError):
        future.result(timeout=0.001)
    assert future.result(timeout=SOON) == b"done"
    assert (future.exception(), future.traceback(), future.code()) == (None, None, grpc.StatusCode.OK)
    assert dict(future.initial_metadata()) == {"attempt": "2"}
    assert (future.done(), future.running(), future.cancelled(), future.cancel()) == (True, False, False, False)
    assert ended.wait(SOON)
    assert not future.add_callback(lambda: None)


def test_a_future_fails_with_its_last_failure(channel: grpc.Channel, fake: FakeRetryd, service: Service) -> None:
    fake.decision = lambda context, _: retry(1) if context.attempts_made == 1 else stop()
    service.codes = [UNAVAILABLE, grpc.StatusCode.NOT_FOUND]
    future = method(channel).future(b"", timeout=SOON)
    error = future.exception(timeout=SOON)
    with pytest.raises(grpc.RpcError) as raised:
        future.result()
    assert raised.value is error
    assert (error.code(), future.code()) == (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.NOT_FOUND)
    assert (future.details(), dict(future.trailing_metadata())) == ("attempt 2", {"attempt": "2"})
    assert future.traceback() is not None


def test_a_future_that_is_cancelled_while_it_waits(
    client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    fake.decision = lambda *_: retry(60_000)
    service.codes = [UNAVAILABLE]
    future = method(channel).future(b"")
    wait_until(lambda: client._timer._entries and future._waiting)
    assert future.cancel()
    assert (future.done(), future.cancelled(), future.code()) == (True, True, grpc.StatusCode.CANCELLED)
    for outcome in (future.result, future.exception, future.traceback):
        with pytest.raises(grpc.FutureCancelledError):
            outcome()
    assert not any(entry.action == future._next_attempt for entry in client._timer._entries)
    wait_until(lambda: fake.released)
    assert fake.released[0].decided == pb.DecidedAttempt(call_id=fake.questions[0].call_id, attempts_made=1)
    assert len(service.requests) == 1


def test_a_future_that_is_cancelled_while_retryd_thinks(
    channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def think(*_: object) -> pb.Decision:
        asked.set()
        go_on.wait(SOON)
        return retry(1)

    fake.decision = think
    service.codes = [UNAVAILABLE]
    future = method(channel).future(b"")
    assert asked.wait(SOON)
    assert future.cancel()
    assert future.done()
    go_on.set()
    wait_until(lambda: fake.released)
    assert len(service.requests) == 1


def test_attempts_send_what_the_caller_gave_at_first(client: retryd.Client, fake: FakeRetryd, service: Service) -> None:
    """A future's caller goes on, and may use its message and its metadata again."""
    asked, go_on = threading.Event(), threading.Event()

    def think(*_: object) -> pb.Decision:
        asked.set()
        go_on.wait(SOON)
        return retry(1)

    fake.decision = think
    service.codes = [UNAVAILABLE]
    keys: list[Any] = []

    class Beneath(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> grpc.Call:
            keys.append(list(details.metadata))
            return continuation(details, request)

    with grpc.insecure_channel(service.address) as bare:
        channel = grpc.intercept_channel(bare, client.interceptor(), Beneath())
        message, metadata = bytearray(b"one"), [("key", "k1")]
        future = channel.unary_unary(METHOD, request_serializer=bytes).future(message, metadata=metadata)
        assert asked.wait(SOON)
        message[:] = b"two"
        metadata[0] = ("key", "k2")
        go_on.set()
        assert future.result(SOON) == b"done"
    assert service.requests == [b"one"] * 2
    assert keys == [[("key", "k1")]] * 2


def test_a_message_that_cannot_be_copied_is_sent_once(
    channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    service.codes = [UNAVAILABLE]
    lock = threading.Lock()
    future = channel.unary_unary(METHOD, request_serializer=lambda _: b"").future(lock)
    assert future.exception(SOON).code() is UNAVAILABLE
    assert [it.body_replayable for it in fake.questions] == [False]


def test_metadata_that_can_be_read_once_is_sent(client: retryd.Client, service: Service) -> None:
    seen: list[Any] = []

    class Beneath(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> grpc.Call:
            seen.append(details.metadata)
            return continuation(details, request)

    with grpc.insecure_channel(service.address) as bare:
        channel = grpc.intercept_channel(bare, client.interceptor(), Beneath())
        method(channel)(b"", metadata=iter([("key", "k1")]))
    assert seen == [(("key", "k1"),)]


def test_close_ends_the_wait_of_a_future(
    client: retryd.Client, channel: grpc.Channel, fake: FakeRetryd, service: Service
) -> None:
    fake.decision = lambda *_: retry(60_000)
    service.codes = [UNAVAILABLE]
    future = method(channel).future(b"")
    wait_until(lambda: future._waiting)
    client.close()
    assert future.exception(timeout=0).code() is UNAVAILABLE
    assert len(fake.released) == 1


def test_an_interrupt_ends_the_wait_and_gives_the_grant_back(
    channel: grpc.Channel, fake: FakeRetryd, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("retryd.retry.time", SimpleNamespace(sleep=interrupted))
    fake.decision = lambda *_: retry(60_000)
    service.codes = [UNAVAILABLE]
    with pytest.raises(KeyboardInterrupt):
        method(channel)(b"")
    wait_until(lambda: fake.released)
    assert len(service.requests) == 1


@pytest.mark.parametrize("form", ["call", "future"])
def test_a_delay_beyond_the_deadline_is_not_waited_for(
    channel: grpc.Channel, fake: FakeRetryd, service: Service, form: str
) -> None:
    fake.decision = lambda *_: retry(60_000)
    service.codes = [UNAVAILABLE]
    began = time.monotonic()
    with pytest.raises(grpc.RpcError) as raised:
        answer(channel, form, timeout=30)
    assert raised.value.code() is UNAVAILABLE
    assert time.monotonic() - began < 25
    wait_until(lambda: fake.released)


@pytest.mark.parametrize("form", ["call", "future"])
def test_a_call_that_cannot_be_made_is_no_failed_attempt(
    client: retryd.Client, service: Service, fake: FakeRetryd, form: str
) -> None:
    bare = grpc.insecure_channel(service.address)
    channel = grpc.intercept_channel(bare, client.interceptor())
    bare.close()
    with pytest.raises(ValueError, match="closed"):
        answer(channel, form)
    assert fake.questions == []


def test_a_stream_passes_untouched(channel: grpc.Channel, fake: FakeRetryd, service: Service) -> None:
    received: list[bytes] = []
    with pytest.raises(grpc.RpcError):
        received.extend(iter(channel.unary_stream("/shop.Cart/List")(b"", timeout=SOON)))
    assert (received, fake.questions) == ([b"first"], [])


def test_details_of_the_call_reach_the_library(client: retryd.Client, service: Service, fake: FakeRetryd) -> None:
    seen: list[grpc.ClientCallDetails] = []

    class Beneath(grpc.UnaryUnaryClientInterceptor):
        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> grpc.Call:
            seen.append(details)
            return continuation(details, request)

    with grpc.insecure_channel(service.address) as bare:
        channel = grpc.intercept_channel(bare, client.interceptor(), Beneath())
        method(channel)(
            b"", timeout=30, metadata=(("a", "b"),), wait_for_ready=True, compression=grpc.Compression.NoCompression
        )
    (details,) = seen
    assert (details.method, details.metadata, details.wait_for_ready) == (METHOD, (("a", "b"),), True)
    assert details.compression is grpc.Compression.NoCompression
    assert 29 < details.timeout <= 30


def answer(channel: grpc.Channel, form: str, timeout: float | None = None) -> bytes:
    if form == "call":
        return method(channel)(b"", timeout=timeout)
    return method(channel).future(b"", timeout=timeout).result()


def wait_until(holds: Any) -> None:
    end = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.005)

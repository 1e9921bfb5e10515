"""Retries that are taken ahead."""

from collections.abc import Iterator

import grpc
import pytest
import requests
from google.protobuf.duration_pb2 import Duration

import retryd
from retryd.background import Background
from retryd.lease import Leases
from retryd.usage import Key
from retryd.v1 import retryd_pb2 as pb
from retryd.v1.retryd_pb2_grpc import BudgetServiceStub

from .fake_retryd import FakeRetryd
from .test_usage import Clock as UsageClock
from .testbed import Testbed

KEY = Key("shop", "op")


class Clock(UsageClock):
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("retryd.lease.time", self)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def background() -> Background:
    return Background()


@pytest.fixture
def leases(fake: FakeRetryd, background: Background) -> Iterator[Leases]:
    with grpc.insecure_channel(fake.address) as channel:
        yield Leases(BudgetServiceStub(channel), background)


def test_what_was_taken_ahead_is_spent_once(leases: Leases, background: Background, fake: FakeRetryd) -> None:
    leases.refill(KEY, 2)
    background.wait()
    assert (fake.acquired[0].tenant, fake.acquired[0].operation, fake.acquired[0].wanted) == ("shop", "op", 2)
    assert [leases.spend(KEY) for _ in range(3)] == ["one", "one", None]
    assert leases.spend(Key("shop", "other")) is None


def test_no_lease_is_spent_beyond_its_time(leases: Leases, background: Background, clock: Clock) -> None:
    leases.refill(KEY, 2)
    background.wait()
    clock.now += 9.9
    assert leases.spend(KEY) == "one"
    clock.now += 0.1
    assert leases.spend(KEY) is None


def test_retries_are_taken_anew_when_they_are_spent_and_once_a_second(
    leases: Leases, background: Background, fake: FakeRetryd, clock: Clock
) -> None:
    for spent, asked in ((1, 1), (1, 1), (0, 1), (0, 2)):
        leases.refill(KEY, 2)
        background.wait()
        assert len(fake.acquired) == asked
        for _ in range(spent):
            assert leases.spend(KEY)
        if not spent:
            clock.now += 1


def test_nothing_granted_is_asked_for_again_a_second_later(
    leases: Leases, background: Background, fake: FakeRetryd, clock: Clock
) -> None:
    fake.lease = pb.AcquireRetriesResponse(valid_for=Duration(seconds=10))
    for wait, asked in ((0, 1), (0.9, 1), (0.1, 2)):
        clock.now += wait
        leases.refill(KEY, 2)
        background.wait()
        assert len(fake.acquired) == asked
    assert leases.spend(KEY) is None


def test_what_a_shadow_policy_lends_pays_for_nothing(leases: Leases, background: Background, fake: FakeRetryd) -> None:
    fake.lease.shadow = True
    leases.refill(KEY, 2)
    background.wait()
    assert leases.spend(KEY) is None


def test_the_rest_is_released(leases: Leases, background: Background, fake: FakeRetryd) -> None:
    leases.refill(KEY, 2)
    background.wait()
    leases.put_back(KEY, leases.spend(KEY))
    assert leases.spend(KEY)
    leases.release()
    background.wait()
    assert fake.released == [pb.ReleaseRetriesRequest(tenant="shop", operation="op", unused=1, lease="one")]
    assert leases.spend(KEY) is None


def test_one_of_a_lease_that_is_gone_goes_back_to_retryd(
    leases: Leases, background: Background, fake: FakeRetryd
) -> None:
    leases.refill(KEY, 2)
    background.wait()
    leases.put_back(KEY, "one of before")
    background.wait()
    assert fake.released == [pb.ReleaseRetriesRequest(tenant="shop", operation="op", unused=1, lease="one of before")]
    assert leases.available(KEY) == 2


def test_a_client_takes_ahead_and_gives_back(fake: FakeRetryd, testbed: Testbed) -> None:
    known = {"op": retryd.Operation(lease=2)}
    with (
        retryd.Client(target=fake.address, tenant="shop", ask_timeout=5, operations=known) as client,
        retryd.call(operation="op", timeout=20),
        requests.Session() as session,
    ):
        session.mount("http://", client.http_adapter())
        for questions in (1, 2):
            with pytest.raises(requests.ConnectionError):
                session.get(testbed.addresses["http"]["closed"])
            client._background.wait()
            assert len(fake.questions) == questions
    assert [it.attempts_made for it in fake.questions] == [1, 2]
    assert [it.unused for it in fake.released] == [1]

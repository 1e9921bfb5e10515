"""Counting, apart from any call."""

import pytest

from retryd import usage
from retryd.usage import COUNT_MAX, NAMES_MAX, Key, Ledger
from retryd.v1 import retryd_pb2 as pb

KEY = Key("shop", "op")


def counts(**expected: int) -> pb.Usage:
    return pb.Usage(**expected)


@pytest.mark.parametrize(
    ("attempts_made", "failure_class", "expected"),
    [
        (1, pb.FAILURE_CLASS_UNSPECIFIED, counts(first_try_successes=1)),
        (2, pb.FAILURE_CLASS_UNSPECIFIED, counts(retried_successes=1)),
        (2, pb.FAILURE_CLASS_TRANSIENT, counts(retried_successes=1, retried_transient=1)),
        (3, pb.FAILURE_CLASS_THROTTLING, counts(retried_successes=1, retried_throttling=1)),
        (2, pb.FAILURE_CLASS_TIMEOUT, counts(retried_successes=1, retried_timeout=1)),
        (2, 99, counts(retried_successes=1)),
    ],
)
def test_a_success_by_its_class(attempts_made: int, failure_class: int, expected: pb.Usage) -> None:
    ledger = Ledger()
    ledger.succeeded(KEY, attempts_made, failure_class)
    assert ledger.take(KEY).usage == expected


def test_what_was_taken_is_gone_until_it_is_put_back() -> None:
    ledger = Ledger()
    ledger.started(KEY)
    taken = ledger.take(KEY)
    assert ledger.take(KEY) is None
    ledger.started(KEY)
    ledger.put_back(taken)
    assert ledger.take(KEY).usage == counts(requests=2)
    assert ledger.take_all() == []


def test_the_period_begins_with_the_first_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    ledger = Ledger()
    ledger.started(KEY)
    clock.now += 1.0001
    taken = ledger.take(KEY)
    assert taken.message().period.ToMilliseconds() == 1001
    clock.now += 1
    ledger.started(KEY)
    ledger.put_back(taken)
    clock.now += 1
    assert ledger.take(KEY).message().period.ToMilliseconds() == 3001


@pytest.mark.parametrize("name", ["", "o" * 257, "\n", "\x9f", "\ud800"])
def test_a_name_that_retryd_refuses_is_not_counted(name: str) -> None:
    ledger = Ledger()
    ledger.started(Key("shop", name))
    ledger.started(Key(name, "op"))
    assert ledger.take_all() == []
    ledger.started(Key("t" * 128, "ü" * 128))
    assert len(ledger.take_all()) == 1


def test_no_period_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    ledger = Ledger()
    ledger.started(KEY)
    assert ledger.take(KEY).message().period.ToMilliseconds() == 1


def test_names_are_limited_and_become_free_again() -> None:
    ledger = Ledger()
    for place in range(NAMES_MAX + 1):
        ledger.started(Key("shop", str(place)))
    ledger.started(Key("shop", "0"))
    assert ledger.take(Key("shop", str(NAMES_MAX))) is None
    assert ledger.take(Key("shop", "0")).usage.requests == 2
    ledger.started(KEY)
    assert ledger.take(KEY) is not None


def test_no_count_is_beyond_what_retryd_takes() -> None:
    ledger = Ledger()
    ledger.put_back(usage.Counted(KEY, counts(requests=COUNT_MAX), 0))
    ledger.started(KEY)
    assert ledger.take(KEY).usage.requests == COUNT_MAX


class Clock:
    """Stands still, unless it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("retryd.usage.time", self)

    def monotonic(self) -> float:
        return self.now

"""Whole calls, against the scenarios that all kits play."""

import itertools
from typing import Any

import pytest

from .adapters import Run, play
from .compare import differences
from .testbed import Testbed, scenarios

# grpcio's core reads the pushback itself. One that is no number becomes a negative one, and the status INTERNAL.
UNREADABLE_PUSHBACK = {"outcome": {"grpc": 13}, "attempts": 1, "reasons": ["REASON_SERVER_FORBIDS"]}
GRPCIO_DIFFERS = {"an unreadable pushback forbids": UNREADABLE_PUSHBACK}

ADAPTERS = {"call": "grpc", "future": "grpc", "requests": "http"}


def parameters() -> list[Any]:
    """A caller that waits cannot give up."""
    return [
        pytest.param(adapter, place, case, id=f"{adapter}: {case['name']}")
        for adapter, over in ADAPTERS.items()
        for place, case in enumerate(scenarios("calls")["cases"])
        if over in case["over"] and (adapter == "future" or "cancel_after_ms" not in case.get("call", {}))
    ]


@pytest.mark.parametrize(("adapter", "place", "case"), parameters())
def test_call(testbed: Testbed, adapter: str, place: int, case: dict[str, Any]) -> None:
    run = play(testbed, adapter, f"python-{adapter}-{place}", case)
    expect = case["expect"] if adapter == "requests" else GRPCIO_DIFFERS.get(case["name"], case["expect"])
    assert violations(expect, run) == []


def violations(expect: dict[str, Any], run: Run) -> list[str]:
    seen, found = run.seen, []

    def check(what: str, got: object, holds: bool) -> None:
        if not holds:
            found.append(f"{what}: {got!r}, expected {expect.get(what)!r}")

    is_right = run.outcome != "ok" if expect["outcome"] == "failed" else run.outcome == expect["outcome"]
    check("outcome", run.outcome, is_right)
    check("attempts", run.attempts, run.attempts == expect["attempts"])
    arrivals, questions = seen["arrivals"], seen["questions"]
    check("arrivals", len(arrivals), expect.get("arrivals", len(arrivals)) == len(arrivals))
    check("questions", len(questions), expect.get("questions", len(questions)) == len(questions))
    if "waits_ms" in expect:
        times = [arrival["at_ms"] for arrival in arrivals]
        waits = [after - before for before, after in itertools.pairwise(times)]
        are_long = len(waits) == len(expect["waits_ms"]) and all(
            least <= wait for least, wait in zip(expect["waits_ms"], waits, strict=True)
        )
        check("waits_ms", waits, are_long)
    check("within_ms", run.took_ms, run.took_ms <= expect.get("within_ms", run.took_ms))
    for arrival in arrivals:
        got = {name: arrival["headers"].get(name) for name in expect.get("headers", {})}
        check("headers", got, got == expect.get("headers", {}))
    if "reasons" in expect:
        reasons = [question.get("decision", {}).get("reason") for question in questions]
        check("reasons", reasons, reasons == expect["reasons"])
    if "contexts" in expect:
        check("contexts", len(questions), len(questions) == len(expect["contexts"]))
        for part, question in zip(expect["contexts"], questions, strict=False):
            found.extend(differences(part, question["context"]))
    check("usage", seen["usage"], expect.get("usage", seen["usage"]) == seen["usage"])
    for kind, grant in (("released_of_call", "decided"), ("released_of_lease", "lease")):
        released = sum(it["response"].get("released", 0) for it in seen["releases"] if grant in it["request"])
        check(kind, released, released == expect.get(kind, released))
    unknown = expect.keys() - {
        *("outcome", "attempts", "arrivals", "questions", "waits_ms", "within_ms", "headers"),
        *("reasons", "contexts", "usage", "released_of_call", "released_of_lease"),
    }
    assert not unknown, f"nobody checks {unknown}"
    return found

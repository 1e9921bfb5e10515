"""What the kit decides without retryd, against the scenarios that all kits play."""

from typing import Any

import grpc
import pytest
from google.protobuf.json_format import ParseDict

from retryd.failure import counts_in_throttle
from retryd.throttle import FAILURE_COST, SUCCESS_GAIN, TOKENS_MAX, Throttle
from retryd.unasked import after_silence
from retryd.v1 import retryd_pb2 as pb

from .testbed import scenarios

UNASKED = scenarios("unasked")
THROTTLE = scenarios("throttle")
DRAWS = 30


def named(cases: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases])


def context_of(case: dict[str, Any], base: dict[str, Any]) -> pb.RetryContext:
    json = {key: value for key, value in {**base, **case["context"]}.items() if value is not None}
    return ParseDict(json, pb.RetryContext())


def throttle_with(tokens: float) -> Throttle:
    throttle = Throttle()
    for _ in range(TOKENS_MAX // FAILURE_COST):
        throttle.failed()
    for _ in range(round(tokens * 1000) // SUCCESS_GAIN):
        throttle.succeeded()
    return throttle


@named(UNASKED["cases"])
def test_unasked(case: dict[str, Any]) -> None:
    context = context_of(case, UNASKED["base"])
    expect = case["expect"]
    for _ in range(DRAWS):
        throttle = throttle_with(case.get("tokens", 10))
        if counts_in_throttle(context.failure, context.hint):
            throttle.failed()
        delay = after_silence(context, grpc.StatusCode[case["ended"]], throttle)
        if not expect["retry"]:
            assert delay is None
        else:
            assert delay is not None
            assert expect["least_ms"] <= round(delay * 1000) <= expect["most_ms"]


@named(THROTTLE["sequences"])
def test_throttle(case: dict[str, Any]) -> None:
    throttle = Throttle()
    for step in case["steps"]:
        for _ in range(step.get("failures", 0)):
            throttle.failed()
        for _ in range(step.get("successes", 0)):
            throttle.succeeded()
        if "grants" in step:
            assert throttle.grants() == step["grants"]


@named(THROTTLE["counts"])
def test_what_a_throttle_counts(case: dict[str, Any]) -> None:
    context = context_of(case, {})
    assert counts_in_throttle(context.failure, context.hint) == case["counts"]

"""What a client refuses to be made of."""

import math

import pytest

import retryd


def test_everything_that_is_wrong_is_told_at_once() -> None:
    wrong = {"": retryd.Operation(lease=-1, key_header=""), "x" * 257: retryd.Operation()}
    with pytest.raises(ValueError, match="missing") as raised:
        retryd.Client(ask_timeout=0, attempt_timeout=0, report_every=11, operations=wrong)
    for named in (
        *("target", "tenant", "ask_timeout", "attempt_timeout", "report_every"),
        *("operation` is missing", "operation` is longer than 256 bytes", "lease", "key_header"),
    ):
        assert f"`{named}" in str(raised.value)


@pytest.mark.parametrize(
    "setting",
    [
        {"ask_timeout": 0.0009},
        {"ask_timeout": 10.1},
        {"ask_timeout": math.nan},
        {"ask_timeout": None},
        {"report_every": 0.09},
        {"report_every": 10.1},
        {"attempt_timeout": -1},
        {"operations": {"op": retryd.Operation(lease=1001)}},
        {"tenant": "x" * 129},
        {"tenant": "a\n"},
        {"tenant": "\ud800"},
    ],
)
def test_out_of_range(setting: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not a number|longer|control character|no text"):
        retryd.Client(**{"target": "127.0.0.1:1", "tenant": "shop", **setting})


def test_the_ends_of_the_ranges() -> None:
    for ask_timeout, report_every, lease in ((0.001, 0.1, 0), (10, 10, 1000)):
        retryd.Client(
            target="127.0.0.1:1",
            tenant="x" * 128,
            ask_timeout=ask_timeout,
            report_every=report_every,
            operations={"x" * 256: retryd.Operation(lease=lease)},
        ).close()

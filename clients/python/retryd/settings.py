"""What a client is told, checked as a whole."""

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .v1 import retryd_pb2 as pb

OwnRules = Callable[[pb.RetryContext, pb.Decision], float | None]
"""From a failed attempt and what a shadow policy would have said of it: seconds to wait before a retry, or None."""

NAME_BYTES_MAX = {"tenant": 128, "operation": 256}
LEASE_MAX = 1000


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What is known about an operation beforehand."""

    declared: bool = False
    """It may be repeated by its contract."""
    key_header: str | None = None
    """The header, or metadata key, that carries its idempotency key, if it honours one."""
    lease: int = 0
    """So many retries are taken ahead, 0 to 1000. Only where the policy repeats what was never sent."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    target: str
    tenant: str
    ask_timeout: float = 0.020
    attempt_timeout: float | None = None
    fallback: bool = True
    report_every: float = 5.0
    operations: Mapping[str, Operation] = field(default_factory=dict)
    own_rules: OwnRules | None = None

    def __post_init__(self) -> None:
        """Raises ValueError, which names everything that is wrong."""
        wrong = [] if self.target else ["`target` is missing"]
        wrong += name_violations("tenant", self.tenant)
        wrong += range_violations("ask_timeout", self.ask_timeout, 0.001, 10)
        wrong += range_violations("report_every", self.report_every, 0.1, 10)
        if self.attempt_timeout is not None:
            wrong += range_violations("attempt_timeout", self.attempt_timeout, 0.001, math.inf)
        for name, operation in self.operations.items():
            wrong += name_violations("operation", name)
            wrong += range_violations(f"lease` of `{name}", operation.lease, 0, LEASE_MAX)
            if operation.key_header == "":
                wrong.append(f"`key_header` of `{name}` is empty")
        if wrong:
            raise ValueError("; ".join(wrong))

    def operation(self, name: str) -> Operation:
        return self.operations.get(name) or Operation()


def name_violations(what: str, name: str) -> list[str]:
    """retryd refuses such a name, and every question with it."""
    if not name:
        return [f"`{what}` is missing"]
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return [f"`{what}` is no text"]
    most = NAME_BYTES_MAX[what]
    if size > most:
        return [f"`{what}` is longer than {most} bytes"]
    if any(unicodedata.category(character) == "Cc" for character in name):
        return [f"`{what}` has a control character"]
    return []


def range_violations(what: str, value: Any, least: float, most: float) -> list[str]:
    if isinstance(value, int | float) and least <= value <= most:
        return []
    return [f"`{what}` is {value!r}, not a number from {least:g} to {most:g}"]

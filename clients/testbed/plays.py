"""What was seen of each run, by its name."""

import time
from dataclasses import dataclass, field

# The counts of a Usage, as proto-JSON names them.
COUNTS = (
    ("requests", "requests"),
    ("first_try_successes", "firstTrySuccesses"),
    ("retried_successes", "retriedSuccesses"),
    ("retried_transient", "retriedTransient"),
    ("retried_throttling", "retriedThrottling"),
    ("retried_timeout", "retriedTimeout"),
)


@dataclass
class Play:
    arrivals: list[dict] = field(default_factory=list)
    questions: list[dict] = field(default_factory=list)
    acquires: list[dict] = field(default_factory=list)
    releases: list[dict] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def arrive(self, script: list[dict], headers: dict[str, str]) -> dict:
        """Notes an attempt, and tells its step."""
        step = script[min(len(self.arrivals), len(script) - 1)]
        self.arrivals.append({"at_ms": now_ms(), "step": step, "headers": headers})
        return step

    def earn(self, usage) -> None:
        for name, shown in COUNTS:
            self.counts[shown] = self.counts.get(shown, 0) + getattr(usage, name)

    def json(self) -> dict:
        return {
            "arrivals": self.arrivals,
            "questions": self.questions,
            "acquires": self.acquires,
            "releases": self.releases,
            # Zeros are left out and numbers are text, as in proto-JSON.
            "usage": {name: str(count) for name, count in self.counts.items() if count},
        }


class Plays:
    def __init__(self) -> None:
        self.by_name: dict[str, Play] = {}

    def __getitem__(self, name: str) -> Play:
        return self.by_name.setdefault(name, Play())


def now_ms() -> float:
    return time.monotonic() * 1000

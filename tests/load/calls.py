"""What ghz tells of its calls."""
import math
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Call:
    """One attempt; what grpc-go repeats by itself, because no server had touched it, ghz counts once more."""
    number: int  # in the order of sending, of one ghz
    began: float  # seconds since 1970
    ended: float
    status: str


def calls_of(report: dict) -> list[Call]:
    """ghz tells when a call ended and how long it took, not its number: the n-th that began is taken for number n."""
    if len(report["details"]) != report["count"]:
        raise ValueError("ghz keeps the details of a million calls, and there were more")
    spans = []
    for detail in report["details"]:
        ended = moment(detail["timestamp"])
        spans.append((ended - detail["latency"] / 1e9, ended, detail["status"]))
    return [Call(number, *span) for number, span in enumerate(sorted(spans))]


def moment(text: str) -> float:
    """Seconds since 1970. ghz writes nanoseconds without the noughts at their end.

    >>> moment("2026-01-01T00:00:00.25Z") - moment("2026-01-01T00:00:00Z")
    0.25
    >>> moment("2026-01-01T01:00:00+01:00") - moment("2026-01-01T00:00:00Z")
    0.0
    """
    zone = "Z" if text.endswith("Z") else text[-6:]
    whole, _, fraction = text.removesuffix(zone).partition(".")
    return datetime.fromisoformat(whole + zone).timestamp() + float("0." + (fraction or "0"))


def latencies(calls: list[Call]) -> str:
    """Of those that were answered, by the nearest rank.

    >>> latencies([Call(n, 0.0, n / 1_000, "OK") for n in range(1, 201)])
    'p50 100.0 ms, p99 198.0 ms, most 200.0 ms'
    """
    took = sorted(call.ended - call.began for call in calls if call.status == "OK")
    if not took:
        return "none"
    p50, p99 = (took[math.ceil(part * len(took)) - 1] * 1_000 for part in (0.5, 0.99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {took[-1] * 1_000:.1f} ms"


def late_ms(calls: list[Call], rate: int) -> float:
    """How far one ghz fell behind its schedule: what is sent late, no latency shows.

    >>> late_ms([Call(0, 5.0, 5.1, "OK"), Call(1, 5.1, 5.2, "OK"), Call(2, 5.5, 5.6, "OK")], rate=10)
    300.0
    """
    return round(max(call.began - calls[0].began - call.number / rate for call in calls) * 1_000, 1)

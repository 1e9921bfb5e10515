"""What came of a run: the table, and what must not have come of it."""
import re
from collections import Counter
from dataclasses import dataclass

import ratio
from calls import Call, calls_of, late_ms, latencies
from plan import Ask, Plan

DECISIONS = re.compile(r'retryd_decisions_total\{verdict="\w+",reason="(\w+)",policy="[^"]+"\}')


@dataclass(frozen=True)
class Run:
    reports: list[dict]  # ghz's, one for each replica
    metrics: Counter  # the sum over all replicas
    cpu: dict[str, float]  # seconds that each kind of process took
    outages: list[float]  # for how many seconds a replica was without the store, each time


class Outcome:
    """What a run is judged by."""

    def __init__(self, plan: Plan, run: Run) -> None:
        self.plan, self.run = plan, run
        self.by_ghz = [calls_of(report) for report in run.reports]
        self.calls: list[Call] = [call for calls in self.by_ghz for call in calls]
        self.begin = min(call.began for call in self.calls)
        self.end = max(call.ended for call in self.calls)
        self.errors = Counter(call.status for call in self.calls if call.status != "OK")
        self.decided: Counter = Counter()
        for name, count in run.metrics.items():
            if found := DECISIONS.fullmatch(name):
                self.decided[found[1]] += count
        self.granted = self.decided["RETRYABLE"]
        # Where attempts were repeated below ghz, nobody knows which was which call.
        self.is_known = all(len(calls) == plan.calls for calls in self.by_ghz)
        asks = self._asks(lambda call: call.began)
        self.requests = sum(ask.requests for ask in asks)
        # A call was decided somewhere between.
        self.entitled = ratio.entitled(plan.promise, asks)
        self.entitled_by_answers = ratio.entitled(plan.promise, self._asks(lambda call: call.ended))
        seconds = self.end - self.begin
        self.bound = ratio.at_most(plan.promise, asks, seconds, plan.replicas, run.outages)

    def table(self) -> str:
        took = self.end - self.begin
        refused = Counter({name: count for name, count in self.decided.items() if name != "RETRYABLE"})
        rows = {
            self.plan.name: self.plan.about,
            "calls": f"{len(self.calls)} in {took:.1f} s: {len(self.calls) / took:.0f}/s{self._pace()}",
            "errors": listed(self.errors),
            "latency": latencies(self.calls),
            "processor": self._processor(),
            "RETRY": str(self.granted),
            "DO_NOT_RETRY": listed(refused),
        }
        if self.is_known:
            rows["RETRY"] += f", {self.granted / self.requests:.1%} of {self.requests} requests reported"
            rows["accuracy"] = self._accuracy()
            rows["guarantee"] = f"at most {self.bound}"
        else:
            expected = self.plan.calls * len(self.by_ghz)
            rows["accuracy"] = f"unknown: ghz made {expected} calls and tells of {len(self.calls)} attempts"
        if 1 < self.plan.replicas:
            rows["store"] = self._store()
        return "".join(f"{name:<13} {value}\n" for name, value in rows.items())

    def faults(self) -> list[str]:
        faults = []
        least, decisions = self.plan.least, self.decided.total()
        if self.is_known and self.bound < self.granted:
            faults.append(f"{self.granted} retries were granted, and the budgets guarantee at most {self.bound}")
        if not self.errors and decisions != len(self.calls):
            faults.append(f"{len(self.calls)} calls were answered, and {decisions} decisions counted")
        if least is not None and self.errors:
            faults.append(f"calls failed: {listed(self.errors)}")
        entitled = min(self.entitled, self.entitled_by_answers)
        if least is not None and self.granted < least * entitled:
            faults.append(f"{self.granted} retries of {entitled} were granted, and the least is {least}")
        return faults

    def _asks(self, moment) -> list[Ask]:
        asks = [self.plan.ask(call.number, int((moment(call) - self.begin) * 1_000)) for call in self.calls]
        return sorted(asks, key=lambda ask: ask.at_ms)

    def _accuracy(self) -> str:
        first, last = self.entitled, self.entitled_by_answers
        return (
            f"{self.granted / first:.3f}: {self.granted} granted of {first} entitled"
            f" ({self.granted / last:.3f} of {last} by the times of the answers)"
        )

    def _pace(self) -> str:
        if self.plan.rate is None or not self.is_known:
            return ""
        late = max(late_ms(calls, self.plan.rate) for calls in self.by_ghz)
        return f" of {self.plan.rate * len(self.by_ghz)}/s, sent at most {late:.0f} ms late"

    def _processor(self) -> str:
        calls, cpu = len(self.calls), self.run.cpu.items()
        return "; ".join(f"{who} {took:.1f} s, {took / calls * 1e6:.0f} us a call" for who, took in cpu)

    def _store(self) -> str:
        exchanges = 'retryd_store_exchanges_total{{outcome="{}"}}'
        fates = {fate: self.run.metrics[exchanges.format(fate)] for fate in ("answered", "refused", "unknown")}
        return f"exchanges {listed(fates)}; lost {len(self.run.outages)} times, {sum(self.run.outages):.0f} s in all"


def listed(counts: dict[str, int]) -> str:
    """
    >>> listed({"a": 1, "b": 2, "c": 0})
    '2 b, 1 a'
    """
    some = sorted((item for item in counts.items() if item[1]), key=lambda item: -item[1])
    return ", ".join(f"{count} {name}" for name, count in some) or "none"

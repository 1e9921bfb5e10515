"""What one exact budget grants, and what all replicas together may grant at most (semantics 7 and 12).

Counted on its own, from the text: nothing here is read from retryd or from its policy file.
"""
from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """`percent` of the requests of the last `interval_ms`, and `floor` retries each `floor_ms`."""
    percent: int
    interval_ms: int
    floor: int
    floor_ms: int


class Budget:
    """The balance of one tenant, which starts with a full floor.

    Fractions are never lost: 70 % of 7 requests are 4 retries, and 3 requests later it is 7 in all.

    >>> budget = Budget(Promise(percent=70, interval_ms=10_000, floor=0, floor_ms=1_000))
    >>> sum(budget.ask(0, requests=7 if n == 0 else 0, repeatable=True) for n in range(9))
    4
    >>> sum(budget.ask(0, requests=3 if n == 0 else 0, repeatable=True) for n in range(9))
    3

    What nobody took within the interval is gone; the floor comes back with time, and never beyond its size.

    >>> budget = Budget(Promise(percent=20, interval_ms=10_000, floor=2, floor_ms=1_000))
    >>> budget.ask(0, requests=50, repeatable=False)
    False
    >>> [sum(budget.ask(now, 0, True) for _ in range(9)) for now in (10_000, 10_499, 10_999, 60_000)]
    [2, 0, 1, 2]
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.units: dict[int, int] = {}
        self.tokens = promise.floor * promise.floor_ms  # in parts: a retry costs `floor_ms` of them
        self.refilled_ms = 0

    def ask(self, now_ms: int, requests: int, repeatable: bool) -> bool:
        its = self.promise
        slot = now_ms * 10 // its.interval_ms
        self.units = {old: units for old, units in self.units.items() if slot - 9 <= old}
        self.units[slot] = self.units.get(slot, 0) + requests * its.percent
        refilled = self.tokens + (now_ms - self.refilled_ms) * its.floor
        self.tokens = min(refilled, its.floor * its.floor_ms)
        self.refilled_ms = now_ms
        if not repeatable:
            return False
        if 100 <= sum(self.units.values()):
            self._take(100)
            return True
        if its.floor_ms <= self.tokens:
            self.tokens -= its.floor_ms
            return True
        return False

    def _take(self, cost: int) -> None:
        for slot in sorted(self.units):
            taken = min(cost, self.units[slot])
            self.units[slot] -= taken
            cost -= taken


def entitled(promise: Promise, asks: list) -> int:
    """Retries that one exact budget for each tenant grants: asks are in the order of their `at_ms`."""
    budgets = defaultdict(lambda: Budget(promise))
    return sum(budgets[ask.tenant].ask(ask.at_ms, ask.requests, ask.repeatable) for ask in asks)


def at_most(promise: Promise, asks: list, seconds: float, replicas: int, outages: list[float]) -> int:
    """The guarantee for a whole run, summed over its tenants: replicas that share are ahead by one each, and have their
    part of the floor besides for as long as they are without the store.

    >>> from types import SimpleNamespace
    >>> asks = [SimpleNamespace(tenant=n % 2, requests=5) for n in range(20)]
    >>> promise = Promise(percent=20, interval_ms=10_000, floor=9, floor_ms=1_000)
    >>> at_most(promise, asks, seconds=2, replicas=1, outages=[])
    74
    >>> at_most(promise, asks, seconds=2, replicas=3, outages=[])
    80
    >>> at_most(promise, asks, seconds=2, replicas=3, outages=[1.0, 0.5])
    100
    """
    requests: dict = defaultdict(int)
    for ask in asks:
        requests[ask.tenant] += ask.requests
    floor_seconds = promise.floor_ms / 1_000
    fixed = promise.floor * (1 + seconds / floor_seconds)
    if 1 < replicas:
        fixed += replicas
    fixed += sum(promise.floor / replicas * (1 + outage / floor_seconds) for outage in outages)
    return sum(int(promise.percent * reported / 100 + fixed) for reported in requests.values())

"""The local throttle of one target, for the time without retryd (gRFC A6)."""

import threading

TOKENS_MAX = 10_000
FAILURE_COST = 1_000
SUCCESS_GAIN = 100

TARGETS_MAX = 1000


class Throttle:
    """Starts full. Tokens are counted in thousandths."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens = TOKENS_MAX

    def grants(self) -> bool:
        """Above half. To be asked after the failure at hand was counted."""
        with self._lock:
            return 2 * self._tokens > TOKENS_MAX

    def failed(self) -> None:
        with self._lock:
            self._tokens = max(0, self._tokens - FAILURE_COST)

    def succeeded(self) -> None:
        with self._lock:
            self._tokens = min(TOKENS_MAX, self._tokens + SUCCESS_GAIN)


class Throttles:
    """One for each target; those beyond the limit share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._others = Throttle()
        self._throttles: dict[str, Throttle] = {}

    def __getitem__(self, target: str) -> Throttle:
        with self._lock:
            if target not in self._throttles and len(self._throttles) >= TARGETS_MAX:
                return self._others
            return self._throttles.setdefault(target, Throttle())

"""The kit as an application sees it."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import grpc

from .advisor import Advisor
from .background import Background
from .grpc_interceptor import RetryInterceptor
from .lease import Leases
from .reporter import Reporter
from .settings import Operation, OwnRules, Settings
from .timer import Timer
from .usage import Ledger
from .v1.retryd_pb2_grpc import BudgetServiceStub

if TYPE_CHECKING:
    from .http_adapter import RetryAdapter

CHANNEL_OPTIONS = (
    # A question is asked once, whatever a service config says.
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    # Behind a name of several addresses, every retryd gets its share.
    ("grpc.lb_policy_name", "round_robin"),
    # A retryd that has come back is noticed within a second or so, not after two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class Client:
    """Asks retryd about failed calls. One for a process, made after any fork; safe for concurrent use."""

    def __init__(
        self,
        *,
        target: str = "",
        tenant: str = "",
        credentials: grpc.ChannelCredentials | None = None,
        ask_timeout: float = 0.020,
        attempt_timeout: float | None = None,
        fallback: bool = True,
        report_every: float = 5.0,
        operations: Mapping[str, Operation] | None = None,
        own_rules: OwnRules | None = None,
    ) -> None:
        """Times are in seconds.

        Args:
            target: address of retryd, such as `dns:///retryd:50051`. Required.
            tenant: whose budget pays, unless a call says otherwise. Required.
            credentials: of the connection to retryd; without them it is not encrypted.
            ask_timeout: of a question, 0.001 to 10; it takes at most a tenth of what remains until the deadline.
            attempt_timeout: of one attempt. The call's deadline still holds.
            fallback: one retry of what was never sent, when retryd does not answer.
            report_every: 0.1 to 10.
            operations: what is known beforehand, by the name of the operation.
            own_rules: decides where retryd's policy only observes.

        Raises:
            ValueError: names everything that is missing or out of range.
        """
        self._settings = Settings(
            target=target,
            tenant=tenant,
            ask_timeout=ask_timeout,
            attempt_timeout=attempt_timeout,
            fallback=fallback,
            report_every=report_every,
            operations=operations or {},
            own_rules=own_rules,
        )
        if credentials is None:
            self._channel = grpc.insecure_channel(target, CHANNEL_OPTIONS)
        else:
            self._channel = grpc.secure_channel(target, credentials, CHANNEL_OPTIONS)
        budgets = BudgetServiceStub(self._channel)
        self._timer = Timer()
        self._background = Background()
        self._ledger = Ledger()
        self._leases = Leases(budgets, self._background)
        self._reporter = Reporter(self._ledger, budgets, self._background, self._timer, report_every)
        self._advisor = Advisor(
            self._settings, self._channel, self._ledger, self._leases, self._reporter, self._background
        )

    def interceptor(self) -> RetryInterceptor:
        """For `grpc.intercept_channel`. One for each channel: its failures fill a throttle of its own."""
        return RetryInterceptor(self._advisor, self._timer)

    def http_adapter(self, **kwargs: object) -> "RetryAdapter":
        """For `Session.mount`; takes what `requests.adapters.HTTPAdapter` takes, without `max_retries`."""
        from .http_adapter import RetryAdapter

        return RetryAdapter(self._advisor, **kwargs)

    def drain(self) -> None:
        """Say it when the application begins to stop: from then on retryd is told so, and nothing is repeated."""
        self._advisor.draining = True

    def close(self) -> None:
        """Reports the rest and gives back what was taken ahead, for 2 s at most. Calls then pass untouched."""
        if self._advisor.closed:
            return
        self._advisor.closed = True
        self._timer.close()
        # An answer that is under way may put its usage back.
        self._background.wait()
        self._leases.release()
        self._reporter.report()
        self._background.wait()
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

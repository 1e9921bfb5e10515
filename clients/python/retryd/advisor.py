"""What the adapters ask: from the first attempt of a call, over its failures, to its success."""

import logging
import threading
import time
from collections.abc import Iterable

import grpc

from .background import Background, answer
from .calls import Call, earlier, idempotency, overrides
from .details import is_retryds_own
from .failure import Failed, counts_in_throttle
from .lease import Leases
from .reporter import Reporter
from .retry import NEVER, Answer, Retry
from .settings import Settings
from .throttle import Throttle
from .unasked import after_silence, first_retry
from .usage import Counted, Key, Ledger
from .v1 import retryd_pb2 as pb
from .v1.retryd_pb2_grpc import BudgetServiceStub, RetryServiceStub

log = logging.getLogger(__name__)

# Of what remains until the deadline, a question may take this part.
ASK_PART = 0.1


class Advisor:
    def __init__(
        self,
        settings: Settings,
        channel: grpc.Channel,
        ledger: Ledger,
        leases: Leases,
        reporter: Reporter,
        background: Background,
    ) -> None:
        self._settings = settings
        self._decide = RetryServiceStub(channel).Decide
        self._release = BudgetServiceStub(channel).ReleaseRetries
        self._ledger = ledger
        self._leases = leases
        self._reporter = reporter
        self._background = background
        self.draining = False
        self.closed = False

    def begin(
        self,
        operation: str,
        header_names: Iterable[str],
        throttle: Throttle,
        *,
        timeout: float | None = None,
        body_replayable: bool = True,
    ) -> Call:
        """A call that is about to send its first attempt."""
        said = overrides()
        key = Key(said.tenant or self._settings.tenant, said.operation or operation)
        known = self._settings.operation(key.operation)
        if not self.closed:
            self._ledger.started(key)
            self._reporter.start()
            if known.lease:
                self._leases.refill(key, known.lease)
        return Call(
            key,
            idempotency(known, header_names),
            throttle,
            deadline=earlier(said.deadline, None if timeout is None else time.monotonic() + timeout),
            attempt_timeout=self._settings.attempt_timeout,
            body_replayable=body_replayable,
        )

    def succeeded(self, call: Call) -> None:
        call.throttle.succeeded()
        self._ledger.succeeded(call.key, call.attempts_made, call.failure_class)

    def ask(self, call: Call, failed: Failed) -> Answer:
        """Never raises: the call's own failure is all that its caller may see."""
        if self.closed:
            return NEVER
        try:
            return self._ask(call, failed)
        except Exception:
            log.exception("retryd: not asked about %r", call.key.operation)
            return NEVER

    def tell(self, call: Call, failed: Failed) -> None:
        """Of a failure that is final for its caller, whatever the answer."""
        if self.closed:
            return
        context = call.context(failed, draining=self.draining)
        counted = self._take_usage(call, context)
        self._background.send(self._decide, context, lambda future: self._settle(counted, future))

    def _ask(self, call: Call, failed: Failed) -> Answer:
        context = call.context(failed, draining=self.draining)
        if counts_in_throttle(context.failure, context.hint):
            call.throttle.failed()
        remaining = call.remaining()
        if remaining is not None and remaining <= 0:
            self.tell(call, failed)
            return NEVER
        if (retry := self._leased(call, context)) is not None:
            return Answer(lambda: retry)
        counted = self._take_usage(call, context)
        timeout = self._settings.ask_timeout
        if remaining is not None:
            timeout = min(timeout, remaining * ASK_PART)
        future = self._decide.future(context, timeout=timeout)
        return Answer(lambda: self._conclude(call, context, counted, future), future)

    def _leased(self, call: Call, context: pb.RetryContext) -> Retry | None:
        wanted = self._settings.operation(call.key.operation).lease
        if not wanted or (delay := first_retry(context, call.throttle)) is None:
            return None
        lease = self._leases.spend(call.key)
        self._leases.refill(call.key, wanted)
        if lease is None:
            return None
        return Retry(delay, lambda: self._leases.put_back(call.key, lease))

    def _conclude(
        self, call: Call, context: pb.RetryContext, counted: Counted | None, future: grpc.Future
    ) -> Retry | None:
        try:
            decision = self._settle(counted, future)
            if decision is None:
                return self._without_decision(call, context, future)
            return self._decided(call, context, decision)
        except Exception:
            log.exception("retryd: no use could be made of an answer about %r", call.key.operation)
            return None

    def _decided(self, call: Call, context: pb.RetryContext, decision: pb.Decision) -> Retry | None:
        call.failure_class = decision.failure_class
        if decision.verdict not in (pb.VERDICT_RETRY, pb.VERDICT_DO_NOT_RETRY):
            return None
        if decision.shadow:
            rules = self._settings.own_rules
            delay = rules(context, decision) if rules is not None and context.body_replayable else None
            return Retry(delay) if delay is not None and 0 <= delay <= threading.TIMEOUT_MAX else None
        if decision.verdict != pb.VERDICT_RETRY:
            return None
        grant = call.grant()
        delay = min(max(0.0, decision.delay.ToNanoseconds() / 1e9), threading.TIMEOUT_MAX)
        return Retry(delay, lambda: self._background.send(self._release, grant))

    def _without_decision(self, call: Call, context: pb.RetryContext, future: grpc.Future) -> Retry | None:
        ended = future.code()
        if ended in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.PERMISSION_DENIED):
            log.warning("retryd refused a question about %r: %r", call.key.operation, future.details())
        if not self._settings.fallback:
            return None
        if (remaining := call.remaining_deadline()) is not None:
            # The question has taken its time.
            context.remaining_deadline.CopyFrom(remaining)
        delay = after_silence(context, ended, call.throttle)
        return None if delay is None else Retry(delay)

    def _take_usage(self, call: Call, context: pb.RetryContext) -> Counted | None:
        counted = self._ledger.take(call.key)
        if counted is not None:
            context.usage.CopyFrom(counted.message())
        return counted

    def _settle(self, counted: Counted | None, future: grpc.Future) -> pb.Decision | None:
        """Usage of unknown fate is dropped: counted twice it would open the budget."""
        decision = answer(future)
        if decision is None and counted is not None and is_retryds_own(future):
            self._ledger.put_back(counted)
        return decision

package io.github.retryd.client;

import io.github.retryd.v1.Idempotency;
import io.github.retryd.v1.RetryContext;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** What is known about one call, and so about each of its attempts. */
final class CallFacts {
  private final UsageLedger.Name name;
  private final Operation operation;
  private final Deadline deadline;
  private final String callId = UUID.randomUUID().toString();

  CallFacts(Settings settings, MethodDescriptor<?, ?> method, CallOptions options, Context context) {
    String tenant = options.getOption(Retryd.TENANT);
    String operation = options.getOption(Retryd.OPERATION);
    this.name = new UsageLedger.Name(
        tenant == null ? settings.tenant() : tenant, operation == null ? method.getFullMethodName() : operation);
    this.operation = settings.operation(name.operation());
    this.deadline = earlier(options.getDeadline(), context.getDeadline());
  }

  UsageLedger.Name name() {
    return name;
  }

  Operation operation() {
    return operation;
  }

  boolean isDeadlinePassed() {
    return deadline != null && deadline.isExpired();
  }

  /** {@code wait}, or what is left of the deadline, if that is less. */
  Duration withinDeadline(Duration wait) {
    return deadline != null && remaining().compareTo(wait) < 0 ? remaining() : wait;
  }

  /** The question about a failed attempt; {@code givenUp} says that the caller does not wait for its end. */
  RetryContext.Builder question(Attempt<?> failed, Request<?> request, boolean givenUp) {
    Failures.Described described = Failures.describe(failed.status(), failed.trace(), end(failed, givenUp));
    RetryContext.Builder question = common(request.headers())
        .setBodyReplayable(request.isReplayable())
        .setFirstByteDelivered(failed.isDelivered())
        .setFailure(described.failure())
        .setEvidence(described.evidence());
    Failures.hint(failed.trailers()).ifPresent(question::setHint);
    return question;
  }

  private Failures.End end(Attempt<?> failed, boolean givenUp) {
    if (givenUp && failed.status().getCode() == Status.Code.CANCELLED) {
      return Failures.End.CANCELLED_BY_CALLER;
    }
    return failed.isTimedOut() && !isDeadlinePassed() ? Failures.End.ATTEMPT_TIMED_OUT : Failures.End.OTHER;
  }

  /** What every question about the call has in common. */
  private RetryContext.Builder common(Metadata headers) {
    RetryContext.Builder question = RetryContext.newBuilder()
        .setTenant(name.tenant())
        .setOperation(name.operation())
        .setCallId(callId)
        .setIdempotency(Idempotency.newBuilder()
            .setDeclared(operation.declared())
            .setKeyRegistered(operation.keyHeader().isPresent())
            .setKeySent(operation.keyHeader().filter(header -> carries(headers, header)).isPresent()));
    if (deadline != null) {
      question.setRemainingDeadline(Durations.ofNanos(remaining().toNanos()));
    }
    return question;
  }

  private Duration remaining() {
    return Duration.ofNanos(Math.max(0, deadline.timeRemaining(TimeUnit.NANOSECONDS)));
  }

  /** An empty value is no key to any server. */
  private static boolean carries(Metadata headers, String header) {
    Iterable<String> values = headers.getAll(Metadata.Key.of(header, Metadata.ASCII_STRING_MARSHALLER));
    return values != null && !String.join("", values).isEmpty();
  }

  private static Deadline earlier(Deadline one, Deadline other) {
    if (one == null || other == null) {
      return one == null ? other : one;
    }
    return one.minimum(other);
  }
}

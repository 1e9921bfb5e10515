package io.github.retryd.client;

import io.github.retryd.v1.Idempotency;
import io.github.retryd.v1.RetryContext;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** What every question about one call has in common. */
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

  /** A question without its answer to the one thing that differs: what went wrong. */
  RetryContext.Builder question(Metadata headers) {
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

  private static boolean carries(Metadata headers, String header) {
    return headers.containsKey(Metadata.Key.of(header, Metadata.ASCII_STRING_MARSHALLER));
  }

  private static Deadline earlier(Deadline one, Deadline other) {
    if (one == null || other == null) {
      return one == null ? other : one;
    }
    return one.minimum(other);
  }
}

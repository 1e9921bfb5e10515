package io.github.retryd.client;

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** One attempt, and its answer, which is held back until it is known to end the call. */
final class Attempt<RespT> extends ClientCall.Listener<RespT> {
  private final ClientCall.Listener<RespT> application;
  private final Consumer<Attempt<RespT>> closed;
  private final Optional<Deadline> deadline;
  private final AttemptTrace trace = new AttemptTrace();
  private Metadata headers;
  private RespT message;
  private boolean delivered;
  private Status status;
  private Metadata trailers;

  Attempt(ClientCall.Listener<RespT> application, Optional<Duration> timeout, Consumer<Attempt<RespT>> closed) {
    this.application = application;
    this.closed = closed;
    this.deadline = timeout.map(after -> Deadline.after(after.toNanos(), TimeUnit.NANOSECONDS));
  }

  /** The options of the call, with what is the attempt's own. */
  CallOptions options(CallOptions call) {
    CallOptions traced = call.withStreamTracerFactory(trace);
    Deadline whole = call.getDeadline();
    return deadline.filter(own -> whole == null || own.isBefore(whole)).map(traced::withDeadline).orElse(traced);
  }

  @Override
  public void onHeaders(Metadata headers) {
    this.headers = headers;
  }

  @Override
  public void onMessage(RespT message) {
    if (this.message == null) {
      this.message = message;
      return;
    }
    // One message too many is a fault of the server that the application's stub reports; it cannot wait for the end.
    deliver();
    application.onMessage(message);
  }

  @Override
  public void onClose(Status status, Metadata trailers) {
    this.status = status;
    this.trailers = trailers;
    closed.accept(this);
  }

  /** Hands the answer on: this attempt ends the call. */
  void end() {
    try {
      deliver();
    } catch (RuntimeException | Error fault) {
      // As the library does when the application fails over an answer.
      application.onClose(Status.CANCELLED.withCause(fault).withDescription("the listener failed"), new Metadata());
      return;
    }
    application.onClose(status, trailers);
  }

  Status status() {
    return status;
  }

  Metadata trailers() {
    return trailers;
  }

  AttemptTrace trace() {
    return trace;
  }

  boolean isDelivered() {
    return delivered;
  }

  boolean isTimedOut() {
    return status.getCode() == Status.Code.DEADLINE_EXCEEDED && deadline.filter(Deadline::isExpired).isPresent();
  }

  private void deliver() {
    if (delivered) {
      return;
    }
    delivered = true;
    if (headers != null) {
      application.onHeaders(headers);
    }
    if (message != null) {
      application.onMessage(message);
    }
  }
}

package io.github.retryd.client;

import com.google.rpc.RetryInfo;
import io.github.retryd.v1.Evidence;
import io.github.retryd.v1.Failure;
import io.github.retryd.v1.FailureCategory;
import io.github.retryd.v1.ServerHint;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.UnknownHostException;
import java.security.cert.CertificateException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;

/** What a failure of grpc-java is called in the contract. */
final class Failures {
  private static final Metadata.Key<String> PUSHBACK =
      Metadata.Key.of("grpc-retry-pushback-ms", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> RETRY_AFTER =
      Metadata.Key.of("retry-after", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> DATE = Metadata.Key.of("date", Metadata.ASCII_STRING_MARSHALLER);

  /** The library's words for a stream that the server did not touch. A GOAWAY with an error code is no such promise. */
  static final List<String> REFUSALS = List.of(
      "RST_STREAM closed stream. HTTP/2 error code: REFUSED_STREAM",
      "Abrupt GOAWAY closed sent stream. HTTP/2 error code: NO_ERROR",
      "Abrupt GOAWAY closed unsent stream.");

  /** Its words for a connection that ended under a stream, where it sets no cause. */
  static final List<String> LOSSES = List.of(
      "Network closed for unknown reason",
      "Connection closed after GOAWAY.");

  /** A chain of causes may be a ring. */
  private static final int CAUSES_MAX = 20;

  /** Who ended an attempt, as far as the kit itself knows. */
  enum End { CANCELLED_BY_CALLER, ATTEMPT_TIMED_OUT, OTHER }

  /** A failure, and what it proves. */
  record Described(Failure failure, Evidence evidence) {}

  static Described describe(Status status, AttemptTrace trace, End end) {
    Failure failure = Failure.newBuilder()
        .setCategory(category(status, trace, end))
        .setGrpcCode(status.getCode().value())
        .build();
    return new Described(failure, evidence(failure.getCategory(), trace));
  }

  private static FailureCategory category(Status status, AttemptTrace trace, End end) {
    if (end == End.CANCELLED_BY_CALLER) {
      return FailureCategory.FAILURE_CATEGORY_CANCELLED;
    }
    // A cause is never sent: the library gave up over a message that had arrived, and the caller did not.
    if (status.getCode() == Status.Code.CANCELLED && status.getCause() != null && trace.hasMessage()) {
      return FailureCategory.FAILURE_CATEGORY_RESPONSE_UNREADABLE;
    }
    if (trace.hasTrailers() || !trace.isKnown()) {
      return FailureCategory.FAILURE_CATEGORY_STATUS;
    }
    if (end == End.ATTEMPT_TIMED_OUT) {
      return FailureCategory.FAILURE_CATEGORY_ATTEMPT_TIMEOUT;
    }
    return trace.isOpened() ? broken(status) : unconnected(status);
  }

  /** A request that found no connection. The cause of a status is never sent: the library has set it. */
  private static FailureCategory unconnected(Status status) {
    if (isCausedBy(status, UnknownHostException.class)) {
      return FailureCategory.FAILURE_CATEGORY_NAME_RESOLUTION;
    }
    if (isCausedBy(status, CertificateException.class)) {
      return FailureCategory.FAILURE_CATEGORY_CERTIFICATE_REJECTED;
    }
    if (isCausedBy(status, SSLException.class)) {
      return FailureCategory.FAILURE_CATEGORY_TLS_HANDSHAKE;
    }
    if (isCausedBy(status, ConnectException.class) || isCausedBy(status, NoRouteToHostException.class)) {
      return FailureCategory.FAILURE_CATEGORY_CONNECT;
    }
    return FailureCategory.FAILURE_CATEGORY_STATUS;
  }

  /** A request that a connection has taken, and no trailers: the library has made the status, and the text is its own. */
  private static FailureCategory broken(Status status) {
    String text = status.getDescription();
    if (status.getCode() != Status.Code.UNAVAILABLE || text == null) {
      return FailureCategory.FAILURE_CATEGORY_STATUS;
    }
    if (REFUSALS.stream().anyMatch(text::startsWith)) {
      return FailureCategory.FAILURE_CATEGORY_STREAM_REFUSED;
    }
    return isCausedBy(status, IOException.class) || LOSSES.stream().anyMatch(text::startsWith)
        ? FailureCategory.FAILURE_CATEGORY_CONNECTION_RESET
        : FailureCategory.FAILURE_CATEGORY_STATUS;
  }

  private static Evidence evidence(FailureCategory category, AttemptTrace trace) {
    if (!trace.isKnown()) {
      return Evidence.EVIDENCE_UNSPECIFIED;
    }
    if (!trace.isOpened()) {
      return Evidence.EVIDENCE_NOT_SENT;
    }
    if (category == FailureCategory.FAILURE_CATEGORY_STREAM_REFUSED) {
      return Evidence.EVIDENCE_REFUSED;
    }
    if (category == FailureCategory.FAILURE_CATEGORY_RESPONSE_UNREADABLE) {
      return Evidence.EVIDENCE_MAYBE_PROCESSED;
    }
    // What the server has said is judged by the policy. What the library made up must not read as its word.
    return trace.hasTrailers() ? Evidence.EVIDENCE_UNSPECIFIED : Evidence.EVIDENCE_MAYBE_PROCESSED;
  }

  /** Every form of a hint that the response carried. */
  static Optional<ServerHint> hint(Metadata trailers) {
    ServerHint.Builder hint = ServerHint.newBuilder();
    ErrorDetails.find(trailers, RetryInfo.class)
        .filter(info -> info.hasRetryDelay() && Durations.isValid(info.getRetryDelay()))
        .ifPresent(info -> hint.setRetryAfter(info.getRetryDelay()));
    if (trailers.containsKey(PUSHBACK)) {
      hint.setGrpcRetryPushbackMs(joined(trailers, PUSHBACK));
    }
    if (trailers.containsKey(RETRY_AFTER)) {
      hint.setRetryAfterHeader(joined(trailers, RETRY_AFTER));
    }
    if (trailers.containsKey(DATE)) {
      hint.setDateHeader(joined(trailers, DATE));
    }
    ServerHint built = hint.build();
    return built.equals(ServerHint.getDefaultInstance()) ? Optional.empty() : Optional.of(built);
  }

  /** Several values are no value that can be read. */
  private static String joined(Metadata trailers, Metadata.Key<String> key) {
    return String.join(",", trailers.getAll(key));
  }

  private static boolean isCausedBy(Status status, Class<? extends Throwable> type) {
    return Stream.iterate(status.getCause(), Objects::nonNull, Throwable::getCause)
        .limit(CAUSES_MAX)
        .anyMatch(type::isInstance);
  }

  private Failures() {}
}

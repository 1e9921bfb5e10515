package io.github.retryd.client;

import io.github.retryd.v1.Failure;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.ServerHint;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

/** The one retry of a call that is allowed without an answer of retryd (semantics 14). */
final class Unasked {
  private static final long BACKOFF_MAX_MS = 100;
  private static final long ATTEMPT_MIN_MS = 50;
  private static final Pattern PUSHBACK = Pattern.compile("0|[1-9][0-9]{0,9}");
  private static final Pattern SECONDS = Pattern.compile("[0-9]+");

  /** Whether a question that ended so leaves room for the exception. */
  static boolean isUnanswered(Status.Code ended) {
    return ended == Status.Code.UNAVAILABLE || ended == Status.Code.DEADLINE_EXCEEDED;
  }

  /** The wait before the retry, if the exception allows one. The throttle has taken its token for the failure. */
  static Optional<Duration> delay(RetryContext attempt, Throttle throttle) {
    boolean surelyUnprocessed = switch (attempt.getFailure().getCategory()) {
      case FAILURE_CATEGORY_NAME_RESOLUTION, FAILURE_CATEGORY_CONNECT, FAILURE_CATEGORY_STREAM_REFUSED -> true;
      default -> false;
    };
    boolean allowed = surelyUnprocessed
        && attempt.getAttemptsMade() == 1
        && attempt.getBodyReplayable()
        && !attempt.getFirstByteDelivered()
        && !attempt.getRuntimeDraining()
        && throttle.grants();
    if (!allowed || forbids(attempt.getHint()) || !isReadable(attempt.getHint())) {
      return Optional.empty();
    }
    long backoffMs = ThreadLocalRandom.current().nextLong(1, BACKOFF_MAX_MS + 1);
    Duration wait = Duration.ofMillis(Math.max(backoffMs, hintMs(attempt.getHint())));
    boolean fits = !attempt.hasRemainingDeadline()
        || wait.plusMillis(ATTEMPT_MIN_MS).compareTo(Durations.toJava(attempt.getRemainingDeadline())) < 0;
    return fits ? Optional.of(wait) : Optional.empty();
  }

  /** Whether the local throttle counts a failure: one of the default {@code retry_on}, or one whose server forbids. */
  static boolean counts(RetryContext attempt) {
    Failure failure = attempt.getFailure();
    return forbids(attempt.getHint()) || switch (failure.getCategory()) {
      case FAILURE_CATEGORY_NAME_RESOLUTION,
          FAILURE_CATEGORY_CONNECT,
          FAILURE_CATEGORY_TLS_HANDSHAKE,
          FAILURE_CATEGORY_STREAM_REFUSED,
          FAILURE_CATEGORY_CONNECTION_RESET,
          FAILURE_CATEGORY_ATTEMPT_TIMEOUT -> true;
      case FAILURE_CATEGORY_UNSPECIFIED, FAILURE_CATEGORY_STATUS -> switch (failure.getStatusCase()) {
        case GRPC_CODE -> failure.getGrpcCode() == Status.Code.UNAVAILABLE.value()
            || failure.getGrpcCode() == Status.Code.RESOURCE_EXHAUSTED.value() && isPresent(attempt.getHint());
        case HTTP_STATUS -> switch (failure.getHttpStatus()) {
          case 408, 421, 425, 429, 500, 502, 503, 504 -> true;
          default -> false;
        };
        case STATUS_NOT_SET -> false;
      };
      default -> false;
    };
  }

  private static boolean forbids(ServerHint hint) {
    return hint.hasGrpcRetryPushbackMs() && pushbackMs(hint).isEmpty();
  }

  private static boolean isPresent(ServerHint hint) {
    return hint.hasRetryAfter() || pushbackMs(hint).isPresent() || retryAfterMs(hint).isPresent();
  }

  /** A date is left to retryd, which knows how to read it. */
  private static boolean isReadable(ServerHint hint) {
    return retryAfterMs(hint).isPresent() || trimmed(hint).isEmpty();
  }

  private static long hintMs(ServerHint hint) {
    long toldMs = Durations.toJava(hint.getRetryAfter()).plusNanos(999_999).toMillis();
    return Math.max(toldMs, Math.max(pushbackMs(hint).orElse(0), retryAfterMs(hint).orElse(0)));
  }

  private static OptionalLong pushbackMs(ServerHint hint) {
    boolean plain = PUSHBACK.matcher(hint.getGrpcRetryPushbackMs()).matches();
    long ms = plain ? Long.parseLong(hint.getGrpcRetryPushbackMs()) : Long.MAX_VALUE;
    return ms <= Integer.MAX_VALUE ? OptionalLong.of(ms) : OptionalLong.empty();
  }

  private static OptionalLong retryAfterMs(ServerHint hint) {
    String seconds = trimmed(hint);
    if (!SECONDS.matcher(seconds).matches()) {
      return OptionalLong.empty();
    }
    try {
      return OptionalLong.of(Duration.ofSeconds(Long.parseLong(seconds)).toMillis());
    } catch (NumberFormatException | ArithmeticException beyond) {
      return OptionalLong.of(Long.MAX_VALUE);
    }
  }

  private static String trimmed(ServerHint hint) {
    return hint.getRetryAfterHeader().replaceAll("^[ \t]+|[ \t]+$", "");
  }

  private Unasked() {}
}

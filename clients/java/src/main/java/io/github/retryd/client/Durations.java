package io.github.retryd.client;

import com.google.protobuf.Duration;

/** Durations of the contract, and of Java. */
final class Durations {
  /** Longer than anybody waits; keeps sums of hostile values from overflowing. */
  private static final java.time.Duration MAX = java.time.Duration.ofDays(36_500);

  private static final long NANOS_PER_SECOND = 1_000_000_000;
  private static final long SECONDS_MAX = 315_576_000_000L;

  static Duration ofNanos(long nanos) {
    return Duration.newBuilder().setSeconds(nanos / NANOS_PER_SECOND).setNanos((int) (nanos % NANOS_PER_SECOND)).build();
  }

  /** Between 0 and a century, whatever it was. */
  static java.time.Duration toJava(Duration duration) {
    long seconds = Math.max(-1, Math.min(duration.getSeconds(), MAX.toSeconds()));
    java.time.Duration clamped = java.time.Duration.ofSeconds(seconds, duration.getNanos());
    return clamped.isNegative() ? java.time.Duration.ZERO : clamped;
  }

  /** Whether the contract knows such a duration: no more than about 10 000 years, and of one sign. */
  static boolean isValid(Duration duration) {
    long seconds = duration.getSeconds();
    int nanos = duration.getNanos();
    return Math.abs((double) seconds) <= SECONDS_MAX
        && -NANOS_PER_SECOND < nanos && nanos < NANOS_PER_SECOND
        && (seconds == 0 || nanos == 0 || seconds < 0 == nanos < 0);
  }

  private Durations() {}
}

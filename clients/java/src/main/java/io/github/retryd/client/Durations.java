package io.github.retryd.client;

import com.google.protobuf.Duration;

/** Durations of the contract, and of Java. */
final class Durations {
  /** Longer than anybody waits; keeps sums of hostile values from overflowing. */
  private static final java.time.Duration MAX = java.time.Duration.ofDays(36_500);

  static Duration ofNanos(long nanos) {
    long second = 1_000_000_000;
    return Duration.newBuilder().setSeconds(nanos / second).setNanos((int) (nanos % second)).build();
  }

  /** Between 0 and a century, whatever it was. */
  static java.time.Duration toJava(Duration duration) {
    long seconds = Math.max(-1, Math.min(duration.getSeconds(), MAX.toSeconds()));
    java.time.Duration clamped = java.time.Duration.ofSeconds(seconds, duration.getNanos());
    return clamped.isNegative() ? java.time.Duration.ZERO : clamped;
  }

  private Durations() {}
}

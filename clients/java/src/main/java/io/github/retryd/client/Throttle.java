package io.github.retryd.client;

/** The local throttle of one service (gRFC A6): ten tokens, in thousandths. Thread-safe. */
final class Throttle {
  private static final int MAX = 10_000;
  private static final int FAILURE = 1_000;
  private static final int SUCCESS = 100;

  private int tokens = MAX;

  /** A failure that counts: see {@link Unasked#counts}. */
  synchronized void failure() {
    tokens = Math.max(0, tokens - FAILURE);
  }

  synchronized void success() {
    tokens = Math.min(MAX, tokens + SUCCESS);
  }

  synchronized boolean grants() {
    return MAX < 2 * tokens;
  }
}

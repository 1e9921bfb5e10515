package io.github.retryd.client;

import java.util.Optional;

/**
 * What is known of an operation. Start from {@link #DEFAULT}.
 *
 * @param declared it may be repeated by its contract
 * @param keyHeader the header of the idempotency key that it honours
 * @param lease so many first retries are taken ahead, 0 to 1000; use it only where the policy repeats connection failures
 */
public record Operation(boolean declared, Optional<String> keyHeader, int lease) {
  /** Nothing is known: an attempt that may have been processed is not repeated. */
  public static final Operation DEFAULT = new Operation(false, Optional.empty(), 0);

  /** The same, with {@code declared}. */
  public Operation withDeclared(boolean declared) {
    return new Operation(declared, keyHeader, lease);
  }

  /** The same, with a header, such as {@code idempotency-key}. */
  public Operation withKeyHeader(String keyHeader) {
    return new Operation(declared, Optional.of(keyHeader), lease);
  }

  /** The same, with a lease of so many retries. */
  public Operation withLease(int lease) {
    return new Operation(declared, keyHeader, lease);
  }
}

package io.github.retryd.client;

import io.github.retryd.v1.Decision;
import io.github.retryd.v1.RetryContext;
import java.time.Duration;
import java.util.Optional;

/** The caller's own rules, which go on to decide where retryd's policy only observes. */
@FunctionalInterface
public interface OwnRules {
  /** The wait before the next attempt, or nothing. {@code decision} is what retryd would have said. */
  Optional<Duration> delay(RetryContext attempt, Decision decision);
}

package io.github.retryd.client;

import io.github.retryd.v1.Decision;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.Verdict;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Says what follows a failed attempt: what a lease allows, what retryd decides, or what is left without it. */
final class Judge {
  private static final Logger log = Logger.getLogger(Judge.class.getName());
  private static final Runnable NOTHING = () -> {};

  private final Settings settings;
  private final Questions questions;
  private final Leases leases;
  private final Budgets budgets;

  Judge(Settings settings, Questions questions, Leases leases, Budgets budgets) {
    this.settings = settings;
    this.questions = questions;
    this.leases = leases;
    this.budgets = budgets;
  }

  /**
   * Leave for one more attempt.
   *
   * @param delay the wait before it
   * @param failureClass under which a success is counted
   * @param giveBack returns what was paid for it, if it is not sent
   */
  record Grant(Duration delay, FailureClass failureClass, Runnable giveBack) {}

  /** Whether one more attempt follows. Never completes exceptionally. */
  CompletableFuture<Optional<Grant>> next(RetryContext attempt, Throttle throttle) {
    count(attempt, throttle);
    Optional<Grant> leased = leased(attempt, throttle);
    if (leased.isPresent()) {
      return CompletableFuture.completedFuture(leased);
    }
    long askedAt = System.nanoTime();
    return questions.ask(attempt, timeout(attempt)).thenApply(answer -> answer.decision() != null
        ? decided(attempt, answer.decision())
        : undecided(later(attempt, System.nanoTime() - askedAt), answer, throttle));
  }

  /** Tells of a failure whose call is over. */
  void tell(RetryContext attempt, Throttle throttle) {
    count(attempt, throttle);
    questions.ask(attempt, settings.askTimeout()).thenAccept(answer -> {
      if (answer.decision() != null && isGrant(answer.decision())) {
        budgets.releaseGrant(attempt);
      }
    });
  }

  private static void count(RetryContext attempt, Throttle throttle) {
    if (Unasked.counts(attempt)) {
      throttle.failure();
    }
  }

  private Optional<Grant> leased(RetryContext attempt, Throttle throttle) {
    if (settings.operation(attempt.getOperation()).lease() == 0) {
      return Optional.empty();
    }
    var name = new UsageLedger.Name(attempt.getTenant(), attempt.getOperation());
    return Unasked.delay(attempt, throttle).flatMap(delay -> leases.spend(name)
        .map(giveBack -> new Grant(delay, FailureClass.FAILURE_CLASS_UNSPECIFIED, giveBack)));
  }

  private Optional<Grant> decided(RetryContext attempt, Decision decision) {
    if (decision.getShadow()) {
      return ownRules(attempt, decision).map(delay -> new Grant(delay, decision.getFailureClass(), NOTHING));
    }
    if (!isGrant(decision)) {
      return Optional.empty();
    }
    return Optional.of(new Grant(Durations.toJava(decision.getDelay()), decision.getFailureClass(),
        () -> budgets.releaseGrant(attempt)));
  }

  /** A verdict that this kit does not know is no leave. */
  private static boolean isGrant(Decision decision) {
    return !decision.getShadow() && decision.getVerdict() == Verdict.VERDICT_RETRY;
  }

  private Optional<Duration> ownRules(RetryContext attempt, Decision decision) {
    try {
      return Objects.requireNonNull(settings.ownRules().delay(attempt, decision), "no answer");
    } catch (RuntimeException | Error error) {
      // Whatever it is, the call must come to its end.
      log.log(Level.WARNING, "the caller's own rules failed, so that nothing is repeated", error);
      return Optional.empty();
    }
  }

  private Optional<Grant> undecided(RetryContext attempt, Questions.Answer answer, Throttle throttle) {
    if (!settings.fallback() || !Unasked.isUnanswered(answer.status().getCode())) {
      return Optional.empty();
    }
    return Unasked.delay(attempt, throttle)
        .map(delay -> new Grant(delay, FailureClass.FAILURE_CLASS_UNSPECIFIED, NOTHING));
  }

  private Duration timeout(RetryContext attempt) {
    if (!attempt.hasRemainingDeadline()) {
      return settings.askTimeout();
    }
    Duration tenth = Durations.toJava(attempt.getRemainingDeadline()).dividedBy(10);
    return tenth.compareTo(settings.askTimeout()) < 0 ? tenth : settings.askTimeout();
  }

  /** The same, when the question has taken its time. */
  private static RetryContext later(RetryContext attempt, long nanos) {
    if (!attempt.hasRemainingDeadline()) {
      return attempt;
    }
    Duration left = Durations.toJava(attempt.getRemainingDeadline()).minusNanos(nanos);
    return attempt.toBuilder().setRemainingDeadline(Durations.ofNanos(Math.max(0, left.toNanos()))).build();
  }
}

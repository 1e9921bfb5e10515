package io.github.retryd.client;

import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.Usage;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * What the caller did and retryd has not been told. Whoever takes counts either puts them back or lets them go: what may
 * have been counted is never counted a second time, which would open the budget.
 */
final class UsageLedger {
  /** Calls under further names are not counted. */
  static final int NAMES_MAX = 10_000;

  /** The most that retryd takes in one count. */
  static final long COUNT_MAX = 1_000_000_000;

  private final ConcurrentHashMap<Name, Counts> counts = new ConcurrentHashMap<>();
  private final LongSupplier nanoTime;

  UsageLedger(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /** Whose usage, and of what. */
  record Name(String tenant, String operation) {
    static final int TENANT_BYTES_MAX = 128;
    static final int OPERATION_BYTES_MAX = 256;

    /** Whether retryd takes it. A name that it refuses could spoil a whole report. */
    boolean isKnowable() {
      return isName(tenant, TENANT_BYTES_MAX) && isName(operation, OPERATION_BYTES_MAX);
    }

    /** Whether retryd takes a text as a tenant or an operation. */
    static boolean isName(String text, int most) {
      return !text.isEmpty()
          // Never fewer bytes than chars.
          && text.length() <= most
          && text.getBytes(StandardCharsets.UTF_8).length <= most
          && text.chars().noneMatch(Character::isISOControl);
    }
  }

  /** Counts, and since when they were gathered. */
  record Counts(Usage usage, long sinceNanos) {}

  /** What was taken of one name: {@code usage} as retryd is told it, {@code counts} as they can be put back. */
  record Taken(Name name, Counts counts, Usage usage) {}

  /** A first attempt is sent. */
  void started(Name name) {
    count(name, usage -> usage.setRequests(usage.getRequests() + 1));
  }

  /** A call has succeeded with its first attempt. */
  void succeededAtOnce(Name name) {
    count(name, usage -> usage.setFirstTrySuccesses(usage.getFirstTrySuccesses() + 1));
  }

  /** A call has succeeded with a later attempt; {@code last} is the class of the last failed one. */
  void succeededLater(Name name, FailureClass last) {
    count(name, usage -> {
      usage.setRetriedSuccesses(usage.getRetriedSuccesses() + 1);
      switch (last) {
        case FAILURE_CLASS_TRANSIENT -> usage.setRetriedTransient(usage.getRetriedTransient() + 1);
        case FAILURE_CLASS_THROTTLING -> usage.setRetriedThrottling(usage.getRetriedThrottling() + 1);
        case FAILURE_CLASS_TIMEOUT -> usage.setRetriedTimeout(usage.getRetriedTimeout() + 1);
        case FAILURE_CLASS_UNSPECIFIED, UNRECOGNIZED -> {}
      }
    });
  }

  /** All that has been counted of one name; nothing is left of it. */
  Taken take(Name name) {
    Counts taken = counts.remove(name);
    return new Taken(name, taken, taken == null ? Usage.getDefaultInstance() : withPeriod(taken));
  }

  /** All that has been counted. */
  List<Taken> takeAll() {
    List<Taken> all = new ArrayList<>();
    for (Name name : counts.keySet()) {
      Taken taken = take(name);
      if (taken.counts() != null) {
        all.add(taken);
      }
    }
    return all;
  }

  /** Keeps counts that retryd has surely not counted for the next time. */
  void putBack(Taken taken) {
    if (taken.counts() != null) {
      counts.compute(taken.name(), (name, newer) -> newer == null ? limited(taken.counts()) : sum(taken.counts(), newer));
    }
  }

  private void count(Name name, Consumer<Usage.Builder> event) {
    if (!name.isKnowable()) {
      return;
    }
    counts.compute(name, (same, before) -> {
      if (before == null) {
        before = limited(new Counts(Usage.getDefaultInstance(), nanoTime.getAsLong()));
      }
      if (before == null || isFull(before.usage())) {
        return before;
      }
      Usage.Builder usage = before.usage().toBuilder();
      event.accept(usage);
      return new Counts(usage.build(), before.sinceNanos());
    });
  }

  private Counts limited(Counts added) {
    return counts.mappingCount() < NAMES_MAX ? added : null;
  }

  private Usage withPeriod(Counts taken) {
    long period = Math.max(1, nanoTime.getAsLong() - taken.sinceNanos());
    return taken.usage().toBuilder().setPeriod(Durations.ofNanos(period)).build();
  }

  private static Counts sum(Counts older, Counts newer) {
    Usage a = older.usage();
    Usage b = newer.usage();
    Usage sum = Usage.newBuilder()
        .setRequests(a.getRequests() + b.getRequests())
        .setFirstTrySuccesses(a.getFirstTrySuccesses() + b.getFirstTrySuccesses())
        .setRetriedSuccesses(a.getRetriedSuccesses() + b.getRetriedSuccesses())
        .setRetriedTransient(a.getRetriedTransient() + b.getRetriedTransient())
        .setRetriedThrottling(a.getRetriedThrottling() + b.getRetriedThrottling())
        .setRetriedTimeout(a.getRetriedTimeout() + b.getRetriedTimeout())
        .build();
    // Beyond what can be told, the older part is dropped.
    boolean tooMuch = COUNT_MAX < sum.getRequests()
        || COUNT_MAX < sum.getFirstTrySuccesses()
        || COUNT_MAX < sum.getRetriedSuccesses();
    return tooMuch ? newer : new Counts(sum, Math.min(older.sinceNanos(), newer.sinceNanos()));
  }

  private static boolean isFull(Usage usage) {
    return COUNT_MAX <= Math.max(usage.getRequests(), usage.getFirstTrySuccesses() + usage.getRetriedSuccesses());
  }
}

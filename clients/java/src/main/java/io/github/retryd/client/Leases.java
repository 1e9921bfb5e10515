package io.github.retryd.client;

import io.github.retryd.v1.AcquireRetriesRequest;
import io.github.retryd.v1.AcquireRetriesResponse;
import io.github.retryd.v1.ReleaseRetriesRequest;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Retries that were taken ahead, by tenant and operation. */
final class Leases {
  private static final long ACQUIRE_EVERY_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Budgets budgets;
  private final LongSupplier nanoTime;
  private final Map<UsageLedger.Name, Lease> leases = new ConcurrentHashMap<>();

  Leases(Budgets budgets, LongSupplier nanoTime) {
    this.budgets = budgets;
    this.nanoTime = nanoTime;
  }

  /** Sees to it, in the background, that there are retries to spend. Asked when a call starts: who is idle takes none. */
  void keep(UsageLedger.Name name, int wanted) {
    if (0 < wanted && name.isKnowable() && (leases.size() < UsageLedger.NAMES_MAX || leases.containsKey(name))) {
      leases.computeIfAbsent(name, Lease::new).keep(wanted);
    }
  }

  /** Takes one retry, if there is one. What comes back gives it back. */
  Optional<Runnable> spend(UsageLedger.Name name) {
    Lease lease = leases.get(name);
    return lease == null ? Optional.empty() : lease.spend();
  }

  /** Gives back all that was not spent. */
  void close() {
    leases.values().forEach(Lease::close);
  }

  private final class Lease {
    private final UsageLedger.Name name;
    private String id = "";
    private int unused;
    private long lostAt;
    private long acquireAt = nanoTime.getAsLong();

    Lease(UsageLedger.Name name) {
      this.name = name;
    }

    synchronized void keep(int wanted) {
      long now = nanoTime.getAsLong();
      if (isSpendable() || now - acquireAt < 0) {
        return;
      }
      acquireAt = now + ACQUIRE_EVERY_NANOS;
      AcquireRetriesRequest request = AcquireRetriesRequest.newBuilder()
          .setTenant(name.tenant()).setOperation(name.operation()).setWanted(wanted).build();
      budgets.acquire(request, response -> take(response, now));
    }

    /** Its time counts from the question. A policy that only observes has granted nothing. */
    private synchronized void take(AcquireRetriesResponse response, long askedAt) {
      if (!response.getShadow()) {
        id = response.getLease();
        unused = response.getGranted();
        lostAt = askedAt + Durations.toJava(response.getValidFor()).toNanos();
      }
    }

    synchronized Optional<Runnable> spend() {
      if (!isSpendable()) {
        return Optional.empty();
      }
      unused--;
      String spent = id;
      return Optional.of(() -> putBack(spent));
    }

    private synchronized void putBack(String spent) {
      if (spent.equals(id)) {
        unused++;
      }
    }

    synchronized void close() {
      if (isSpendable()) {
        budgets.release(ReleaseRetriesRequest.newBuilder()
            .setTenant(name.tenant()).setOperation(name.operation()).setUnused(unused).setLease(id).build());
        unused = 0;
      }
    }

    private boolean isSpendable() {
      return 0 < unused && nanoTime.getAsLong() - lostAt < 0;
    }
  }
}

package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.google.protobuf.Duration;
import io.github.retryd.client.UsageLedger.Name;
import io.github.retryd.client.UsageLedger.Taken;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.Usage;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class UsageLedgerTest {
  private static final Name NAME = new Name("shop-1", "charge");

  private final AtomicLong now = new AtomicLong();
  private final UsageLedger usage = new UsageLedger(now::get);

  @Test
  void whatWasCountedIsToldOnce() {
    usage.started(NAME);
    usage.started(NAME);
    usage.succeededAtOnce(NAME);
    usage.succeededLater(NAME, FailureClass.FAILURE_CLASS_TIMEOUT);
    now.set(1_500_000_000);
    assertEquals(
        Usage.newBuilder().setRequests(2).setFirstTrySuccesses(1).setRetriedSuccesses(1).setRetriedTimeout(1)
            .setPeriod(Duration.newBuilder().setSeconds(1).setNanos(500_000_000)).build(),
        usage.take(NAME).usage());
    assertNull(usage.take(NAME).counts());
  }

  @Test
  void everySuccessIsCountedUnderItsClass() {
    usage.succeededLater(NAME, FailureClass.FAILURE_CLASS_TRANSIENT);
    usage.succeededLater(NAME, FailureClass.FAILURE_CLASS_THROTTLING);
    usage.succeededLater(NAME, FailureClass.FAILURE_CLASS_TIMEOUT);
    usage.succeededLater(NAME, FailureClass.FAILURE_CLASS_UNSPECIFIED);
    assertEquals(
        Usage.newBuilder().setRetriedSuccesses(4)
            .setRetriedTransient(1).setRetriedThrottling(1).setRetriedTimeout(1).build(),
        usage.take(NAME).usage().toBuilder().clearPeriod().build());
  }

  @Test
  void whatIsPutBackIsToldWithWhatCameMeanwhile() {
    usage.started(NAME);
    now.set(1_000_000_000);
    Taken taken = usage.take(NAME);
    usage.started(NAME);
    usage.putBack(taken);
    now.set(3_000_000_000L);
    assertEquals(
        Usage.newBuilder().setRequests(2).setPeriod(Duration.newBuilder().setSeconds(3)).build(),
        usage.take(NAME).usage());
  }

  @Test
  void aPeriodIsNeverZero() {
    usage.started(NAME);
    assertEquals(Duration.newBuilder().setNanos(1).build(), usage.take(NAME).usage().getPeriod());
  }

  @Test
  void nothingIsPutBackWhereNothingWasTaken() {
    usage.putBack(usage.take(NAME));
    assertEquals(0, usage.takeAll().size());
  }

  @Test
  void furtherNamesAreNotCounted() {
    for (int name = 0; name < UsageLedger.NAMES_MAX; name++) {
      usage.started(new Name("shop-" + name, "charge"));
    }
    Name further = new Name("further", "charge");
    usage.started(further);
    usage.started(new Name("shop-0", "charge"));
    assertNull(usage.take(further).counts());
    assertEquals(2, usage.take(new Name("shop-0", "charge")).usage().getRequests());
    usage.started(further);
    assertEquals(1, usage.take(further).usage().getRequests());
  }

  @Test
  void namesThatRetrydRefusesAreNotCounted() {
    for (Name refused : List.of(new Name("", "charge"), new Name("shop-1", ""), new Name("shop\n1", "charge"),
        new Name("ä".repeat(65), "charge"), new Name("shop-1", "x".repeat(257)))) {
      usage.started(refused);
      usage.succeededAtOnce(refused);
    }
    assertEquals(0, usage.takeAll().size());
  }

  @Test
  void noCountIsMoreThanRetrydTakes() {
    Usage full = Usage.newBuilder().setRequests(UsageLedger.COUNT_MAX).build();
    usage.putBack(new Taken(NAME, new UsageLedger.Counts(full, 0), full));
    usage.started(NAME);
    Taken taken = usage.take(NAME);
    assertEquals(UsageLedger.COUNT_MAX, taken.usage().getRequests());
    usage.started(NAME);
    usage.putBack(taken);
    assertEquals(1, usage.take(NAME).usage().getRequests());
  }
}

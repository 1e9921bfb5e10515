package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.retryd.client.UsageLedger.Name;
import io.github.retryd.v1.AcquireRetriesRequest;
import io.github.retryd.v1.ReleaseRetriesRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LeasesTest {
  private static final Name NAME = new Name("shop-1", "charge");

  private final AtomicLong now = new AtomicLong();
  private FakeRetryd fake;
  private ManagedChannel channel;
  private Leases leases;

  @BeforeEach
  void start() throws Exception {
    fake = new FakeRetryd(question -> FakeRetryd.retryAfter(1));
    channel = Grpc.newChannelBuilder(fake.address(), InsecureChannelCredentials.create()).build();
    leases = new Leases(new Budgets(channel), now::get);
  }

  @AfterEach
  void stop() throws Exception {
    channel.shutdownNow();
    fake.close();
  }

  @Test
  void asManyAreSpentAsWereGranted() throws Exception {
    acquire(2);
    assertTrue(leases.spend(NAME).isPresent());
    assertTrue(leases.spend(NAME).isPresent());
    assertFalse(leases.spend(NAME).isPresent());
  }

  @Test
  void whatWasSpentInVainIsThereAgain() throws Exception {
    acquire(1);
    leases.spend(NAME).orElseThrow().run();
    assertTrue(leases.spend(NAME).isPresent());
  }

  @Test
  void theirTimeEnds() throws Exception {
    acquire(2);
    now.addAndGet(TimeUnit.SECONDS.toNanos(10) - 1);
    assertTrue(leases.spend(NAME).isPresent());
    now.incrementAndGet();
    assertFalse(leases.spend(NAME).isPresent());
    leases.close();
    acquire(2);
    assertTrue(leases.spend(NAME).isPresent());
    assertEquals(0, fake.releases.size());
  }

  @Test
  void theyAreAskedForOnceASecond() throws Exception {
    acquire(1);
    leases.spend(NAME);
    now.addAndGet(TimeUnit.SECONDS.toNanos(1) - 1);
    leases.keep(NAME, 1);
    assertFalse(leases.spend(NAME).isPresent());
    now.incrementAndGet();
    acquire(1);
    assertEquals(0, fake.acquires.size());
  }

  @Test
  void noneAreAskedForWhileSomeAreLeft() throws Exception {
    acquire(1);
    now.addAndGet(TimeUnit.SECONDS.toNanos(5));
    leases.keep(NAME, 1);
    leases.spend(NAME);
    acquire(1);
    assertEquals(0, fake.acquires.size());
  }

  @Test
  void theRestIsGivenBack() throws Exception {
    acquire(3);
    leases.spend(NAME);
    leases.close();
    assertEquals(
        ReleaseRetriesRequest.newBuilder()
            .setTenant("shop-1").setOperation("charge").setUnused(2).setLease("lease").build(),
        FakeRetryd.next(fake.releases));
    assertFalse(leases.spend(NAME).isPresent());
  }

  @Test
  void whatAPolicyOnlyObservesIsNotSpent() throws Exception {
    fake.observing = true;
    leases.keep(NAME, 1);
    FakeRetryd.next(fake.acquires);
    channel.shutdown();
    assertTrue(channel.awaitTermination(20, TimeUnit.SECONDS));
    assertFalse(leases.spend(NAME).isPresent());
  }

  /** Asks for retries, and waits until they are there. */
  private void acquire(int wanted) throws Exception {
    leases.keep(NAME, wanted);
    assertEquals(
        AcquireRetriesRequest.newBuilder()
            .setTenant("shop-1").setOperation("charge").setWanted(wanted).build(),
        FakeRetryd.next(fake.acquires));
    while (true) {
      var spent = leases.spend(NAME);
      if (spent.isPresent()) {
        spent.get().run();
        return;
      }
      Thread.onSpinWait();
    }
  }
}

package io.github.retryd.client;

import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptor;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Repeats failed unary calls when retryd allows it. One for each process is enough: it holds one connection to retryd,
 * the usage that retryd has not been told yet, and the leases.
 *
 * <pre>{@code
 * try (Retryd retryd = Retryd.newBuilder().target("dns:///retryd:50051").tenant("shop-1").build()) {
 *   Channel payments = ClientInterceptors.intercept(channel, retryd.interceptor());
 *   // ...
 * }
 * }</pre>
 */
public final class Retryd implements AutoCloseable {
  /** Whose budget pays for the retries of a call, in place of {@link Builder#tenant}. 1 to 128 bytes. */
  public static final CallOptions.Key<String> TENANT = CallOptions.Key.create("io.github.retryd.client.tenant");

  /** What a call is, in place of its full method name: selects the policy. 1 to 256 bytes; no ids in it. */
  public static final CallOptions.Key<String> OPERATION = CallOptions.Key.create("io.github.retryd.client.operation");

  private static final Logger log = Logger.getLogger(Retryd.class.getName());
  private static final Duration SETTLE = Duration.ofSeconds(1);

  private final Settings settings;
  private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, daemons("retryd-timer"));
  // Its threads end by themselves, so that calls which outlive close() can still be finished.
  private final Executor executor =
      new ThreadPoolExecutor(0, Integer.MAX_VALUE, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), daemons("retryd"));
  private final UsageLedger usage = new UsageLedger(System::nanoTime);
  private final Throttles throttles = new Throttles();
  private final Waits waits = new Waits(timer);
  private final RetrydChannel channel;
  private final Questions questions;
  private final Reports reports;
  private final Leases leases;
  private final Judge judge;
  private volatile boolean draining;

  private Retryd(Settings settings) {
    this.settings = settings;
    timer.setRemoveOnCancelPolicy(true);
    channel = new RetrydChannel(settings.target(), settings.credentials(), executor, timer);
    Budgets budgets = new Budgets(channel.get());
    reports = new Reports(budgets, usage);
    leases = new Leases(budgets, System::nanoTime);
    questions = new Questions(channel.get(), usage);
    judge = new Judge(settings, questions, leases, budgets);
    long every = settings.reportEvery().toNanos();
    timer.scheduleAtFixedRate(this::report, every, every, TimeUnit.NANOSECONDS);
    settings.operations().forEach((operation, known) ->
        leases.keep(new UsageLedger.Name(settings.tenant(), operation), known.lease()));
  }

  /** Settings with their defaults; {@link Builder#target} and {@link Builder#tenant} are required. */
  public static Builder newBuilder() {
    return new Builder();
  }

  /** Repeats the unary calls of the channels that it is put on; streams pass untouched. */
  public ClientInterceptor interceptor() {
    return new RetryInterceptor(this);
  }

  /** Says that this process is shutting down: from now on nothing is repeated. */
  public void drain() {
    draining = true;
  }

  /**
   * Ends the calls that wait for their next attempt with their failure, reports the usage that is left, gives unused
   * leases back, and closes the connection to retryd. Takes no longer than a question may, and a few seconds. Calls
   * that are still under way, or are made later, go on without retryd.
   */
  @Override
  public void close() {
    timer.shutdownNow();
    waits.close();
    try {
      questions.settle(settings.askTimeout().plus(SETTLE));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    reports.send();
    leases.close();
    channel.close();
  }

  /** What is thrown here would end the reports for ever. */
  private void report() {
    try {
      reports.send();
    } catch (RuntimeException | Error fault) {
      log.log(Level.WARNING, "usage could not be reported", fault);
    }
  }

  Settings settings() {
    return settings;
  }

  Throttles throttles() {
    return throttles;
  }

  Waits waits() {
    return waits;
  }

  Judge judge() {
    return judge;
  }

  UsageLedger usage() {
    return usage;
  }

  Leases leases() {
    return leases;
  }

  /** Runs the callbacks of calls that bring no executor of their own. */
  Executor executor() {
    return executor;
  }

  boolean isDraining() {
    return draining;
  }

  private static ThreadFactory daemons(String name) {
    AtomicInteger made = new AtomicInteger();
    return work -> {
      Thread thread = new Thread(work, name + "-" + made.getAndIncrement());
      thread.setDaemon(true);
      return thread;
    };
  }

  /** Settings of a {@link Retryd}. */
  public static final class Builder {
    private final Settings.Draft draft = new Settings.Draft();

    private Builder() {}

    /** Address of retryd, such as {@code dns:///retryd:50051}. Required. */
    public Builder target(String target) {
      draft.target = target;
      return this;
    }

    /** How to reach it: in plain text unless this says otherwise. */
    public Builder credentials(ChannelCredentials credentials) {
      draft.credentials = credentials;
      return this;
    }

    /** Whose budget pays, unless a call says otherwise by {@link Retryd#TENANT}. Required: 1 to 128 bytes. */
    public Builder tenant(String tenant) {
      draft.tenant = tenant;
      return this;
    }

    /** How long one question may take: 1 ms to 10 s, 20 ms by default; never more than a tenth of what remains. */
    public Builder askTimeout(Duration askTimeout) {
      draft.askTimeout = askTimeout;
      return this;
    }

    /** How long one attempt may take: more than 0; none by default. The call's own deadline holds all the same. */
    public Builder attemptTimeout(Duration attemptTimeout) {
      draft.attemptTimeout = attemptTimeout;
      return this;
    }

    /** Whether one retry is allowed where retryd does not answer and nothing was sent: on by default. */
    public Builder fallback(boolean fallback) {
      draft.fallback = fallback;
      return this;
    }

    /** How often usage is reported: 100 ms to 10 s, 5 s by default. */
    public Builder reportEvery(Duration reportEvery) {
      draft.reportEvery = reportEvery;
      return this;
    }

    /** What is known of an operation, such as {@code payments.v1.Payments/Charge}. */
    public Builder operation(String name, Operation operation) {
      draft.operations.put(name, operation);
      return this;
    }

    /** What happens under a policy that only observes: by default nothing is repeated. */
    public Builder ownRules(OwnRules ownRules) {
      draft.ownRules = ownRules;
      return this;
    }

    /**
     * Connects to retryd, in the background.
     *
     * @throws IllegalArgumentException if settings are missing or out of range; the message names all of them
     */
    public Retryd build() {
      return new Retryd(draft.check());
    }
  }
}

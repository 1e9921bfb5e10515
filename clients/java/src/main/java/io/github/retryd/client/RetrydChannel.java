package io.github.retryd.client;

import io.grpc.ChannelCredentials;
import io.grpc.ConnectivityState;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** The connection to retryd. It is always there, as far as that can be: a question has no time to wait for it. */
final class RetrydChannel {
  private static final long RECONNECT_EVERY_MS = 1000;
  private static final long CLOSE_MS = 6000;

  private final ManagedChannel channel;

  RetrydChannel(String target, ChannelCredentials credentials, Executor executor, ScheduledExecutorService timer) {
    channel = Grpc.newChannelBuilder(target, credentials)
        .executor(executor)
        // A question is asked once.
        .disableRetry()
        // Behind a name of several addresses, every retryd gets its share.
        .defaultLoadBalancingPolicy("round_robin")
        // So long that it never comes.
        .idleTimeout(Long.MAX_VALUE, TimeUnit.DAYS)
        .build();
    timer.scheduleWithFixedDelay(this::connect, 0, RECONNECT_EVERY_MS, TimeUnit.MILLISECONDS);
  }

  ManagedChannel get() {
    return channel;
  }

  /** Lets the calls that are under way end; each has its own deadline. */
  void close() {
    channel.shutdown();
    try {
      channel.awaitTermination(CLOSE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      channel.shutdownNow();
    }
  }

  /** By itself the library would notice a returned retryd only after its own backoff, up to two minutes. */
  private void connect() {
    if (channel.getState(true) == ConnectivityState.TRANSIENT_FAILURE) {
      channel.resetConnectBackoff();
    }
  }
}

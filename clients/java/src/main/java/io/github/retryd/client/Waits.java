package io.github.retryd.client;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** The waits of all calls for their next attempts. They hold no thread. */
final class Waits {
  private final ScheduledExecutorService timer;
  private final Set<Runnable> ends = ConcurrentHashMap.newKeySet();

  Waits(ScheduledExecutorService timer) {
    this.timer = timer;
  }

  /** A wait that is under way, or is over. */
  interface Wait {
    void stop();
  }

  /** Runs {@code wake} after {@code delay}, or {@code end} when the timer is shut down before that. */
  Wait begin(Duration delay, Runnable wake, Runnable end) {
    ends.add(end);
    try {
      Future<?> alarm = timer.schedule(wake, TimeUnit.NANOSECONDS.convert(delay), TimeUnit.NANOSECONDS);
      return () -> {
        ends.remove(end);
        alarm.cancel(false);
      };
    } catch (RejectedExecutionException closed) {
      ends.remove(end);
      end.run();
      return () -> {};
    }
  }

  /** Ends every wait. The timer is shut down before, so that no other begins. */
  void close() {
    ends.forEach(Runnable::run);
  }
}

package io.github.retryd.client;

import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.ListenableFuture;
import com.google.common.util.concurrent.MoreExecutors;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.RetryServiceGrpc;
import io.grpc.Channel;
import io.grpc.Context;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Puts questions to retryd: each once, with the usage that has gathered. */
final class Questions {
  private static final Logger log = Logger.getLogger(Questions.class.getName());

  private final RetryServiceGrpc.RetryServiceFutureStub retryd;
  private final UsageLedger usage;
  private int open;

  Questions(Channel channel, UsageLedger usage) {
    this.retryd = RetryServiceGrpc.newFutureStub(channel);
    this.usage = usage;
  }

  /** How a question ended: with a decision, or with an error status and none. */
  record Answer(Status status, Decision decision) {}

  /** Asks about a failed attempt. Never completes exceptionally, and no later than {@code timeout}. */
  CompletableFuture<Answer> ask(RetryContext attempt, Duration timeout) {
    UsageLedger.Taken taken = usage.take(new UsageLedger.Name(attempt.getTenant(), attempt.getOperation()));
    RetryContext.Builder question = attempt.toBuilder();
    if (taken.counts() != null) {
      question.setUsage(taken.usage());
    }
    CompletableFuture<Answer> answer = new CompletableFuture<>();
    begin();
    Futures.addCallback(decide(question.build(), timeout), new FutureCallback<>() {
      @Override
      public void onSuccess(Decision decision) {
        answer.complete(new Answer(Status.OK, decision));
        end();
      }

      @Override
      public void onFailure(Throwable error) {
        // After any other end nobody knows whether the usage was counted: it is dropped.
        if (ErrorDetails.isOfRetryd(Status.trailersFromThrowable(error))) {
          usage.putBack(taken);
        }
        answer.complete(new Answer(reported(Status.fromThrowable(error)), null));
        end();
      }
    }, MoreExecutors.directExecutor());
    return answer;
  }

  /** Waits until all that was asked is answered, and what follows from the answers is done; no longer than {@code most}. */
  synchronized void settle(Duration most) throws InterruptedException {
    long until = System.nanoTime() + most.toNanos();
    for (long left = most.toNanos(); 0 < open && 0 < left; left = until - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
  }

  private synchronized void begin() {
    open++;
  }

  private synchronized void end() {
    open--;
    notifyAll();
  }

  /** The end of the application's call does not reach the question: its answer may bring a grant that must go back. */
  private ListenableFuture<Decision> decide(RetryContext question, Duration timeout) {
    Context outer = Context.ROOT.attach();
    try {
      return retryd.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS).decide(question);
    } finally {
      Context.ROOT.detach(outer);
    }
  }

  private static Status reported(Status status) {
    switch (status.getCode()) {
      case INVALID_ARGUMENT, PERMISSION_DENIED ->
          log.log(Level.WARNING, "retryd refuses the question, so that nothing is repeated: {0}", status);
      default -> log.log(Level.FINE, "no answer from retryd: {0}", status);
    }
    return status;
  }
}

package io.github.retryd.client;

import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.ListenableFuture;
import com.google.common.util.concurrent.MoreExecutors;
import io.github.retryd.v1.AcquireRetriesRequest;
import io.github.retryd.v1.AcquireRetriesResponse;
import io.github.retryd.v1.BudgetServiceGrpc;
import io.github.retryd.v1.BudgetServiceGrpc.BudgetServiceFutureStub;
import io.github.retryd.v1.DecidedAttempt;
import io.github.retryd.v1.ReleaseRetriesRequest;
import io.github.retryd.v1.ReportUsageRequest;
import io.github.retryd.v1.ReportUsageResponse;
import io.github.retryd.v1.RetryContext;
import io.grpc.Channel;
import io.grpc.Context;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.logging.Logger;

/** The calls to retryd that nobody waits for. */
final class Budgets {
  private static final Logger log = Logger.getLogger(Budgets.class.getName());
  private static final long TIMEOUT_MS = 5000;

  private final BudgetServiceFutureStub retryd;

  Budgets(Channel channel) {
    this.retryd = BudgetServiceGrpc.newFutureStub(channel);
  }

  void report(ReportUsageRequest request, Consumer<ReportUsageResponse> then, Consumer<Throwable> failed) {
    call(stub -> stub.reportUsage(request), then, failed);
  }

  void acquire(AcquireRetriesRequest request, Consumer<AcquireRetriesResponse> then) {
    call(stub -> stub.acquireRetries(request), then, error -> {});
  }

  /** Gives back retries that will not be sent. */
  void release(ReleaseRetriesRequest request) {
    call(stub -> stub.releaseRetries(request), response -> {}, error -> {});
  }

  /** Gives back the retry that was granted after {@code attempt}. */
  void releaseGrant(RetryContext attempt) {
    release(ReleaseRetriesRequest.newBuilder()
        .setTenant(attempt.getTenant())
        .setOperation(attempt.getOperation())
        .setUnused(1)
        .setDecided(DecidedAttempt.newBuilder()
            .setCallId(attempt.getCallId())
            .setAttemptsMade(attempt.getAttemptsMade()))
        .build());
  }

  private <T> void call(
      Function<BudgetServiceFutureStub, ListenableFuture<T>> start, Consumer<T> then, Consumer<Throwable> failed) {
    // Such a call belongs to no call of the application, whose end must not reach it.
    Context outer = Context.ROOT.attach();
    try {
      ListenableFuture<T> answer = start.apply(retryd.withDeadlineAfter(TIMEOUT_MS, TimeUnit.MILLISECONDS));
      Futures.addCallback(answer, new FutureCallback<>() {
        @Override
        public void onSuccess(T response) {
          then.accept(response);
        }

        @Override
        public void onFailure(Throwable error) {
          log.log(Level.FINE, "retryd was not reached", error);
          failed.accept(error);
        }
      }, MoreExecutors.directExecutor());
    } finally {
      Context.ROOT.detach(outer);
    }
  }
}

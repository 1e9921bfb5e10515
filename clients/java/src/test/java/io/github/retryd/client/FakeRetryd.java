package io.github.retryd.client;

import com.google.protobuf.Duration;
import io.github.retryd.v1.AcquireRetriesRequest;
import io.github.retryd.v1.AcquireRetriesResponse;
import io.github.retryd.v1.BudgetServiceGrpc;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.ReleaseRetriesRequest;
import io.github.retryd.v1.ReleaseRetriesResponse;
import io.github.retryd.v1.ReportUsageRequest;
import io.github.retryd.v1.ReportUsageResponse;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.RetryServiceGrpc;
import io.github.retryd.v1.Usage;
import io.github.retryd.v1.UsageResult;
import io.github.retryd.v1.Verdict;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Server;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** A retryd that says what a test wants, and remembers what it was told. */
final class FakeRetryd implements AutoCloseable {
  final BlockingQueue<RetryContext> questions = new LinkedBlockingQueue<>();
  final BlockingQueue<ReleaseRetriesRequest> releases = new LinkedBlockingQueue<>();
  final BlockingQueue<AcquireRetriesRequest> acquires = new LinkedBlockingQueue<>();
  final Semaphore answers = new Semaphore(Integer.MAX_VALUE);
  volatile boolean observing;
  private final Server server;
  private final Function<RetryContext, Decision> decide;
  private final Usage.Builder usage = Usage.newBuilder();

  FakeRetryd(Function<RetryContext, Decision> decide) throws IOException {
    this.decide = decide;
    server = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
        .addService(new Decider()).addService(new Budgets()).build().start();
  }

  static Decision retryAfter(long ms) {
    return Decision.newBuilder()
        .setVerdict(Verdict.VERDICT_RETRY)
        .setDelay(Durations.ofNanos(TimeUnit.MILLISECONDS.toNanos(ms)))
        .setFailureClass(FailureClass.FAILURE_CLASS_TRANSIENT)
        .build();
  }

  String address() {
    return "127.0.0.1:" + server.getPort();
  }

  Retryd.Builder client() {
    return Retryd.newBuilder().target(address()).tenant("shop-1")
        .askTimeout(java.time.Duration.ofSeconds(10));
  }

  /** All that was told, in sum. */
  synchronized Usage usage() {
    return usage.build();
  }

  static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
    T next = queue.poll(20, TimeUnit.SECONDS);
    if (next == null) {
      throw new AssertionError("retryd was not called");
    }
    return next;
  }

  @Override
  public void close() {
    server.shutdownNow();
  }

  private synchronized void earn(Usage told) {
    usage.setRequests(usage.getRequests() + told.getRequests())
        .setFirstTrySuccesses(usage.getFirstTrySuccesses() + told.getFirstTrySuccesses())
        .setRetriedSuccesses(usage.getRetriedSuccesses() + told.getRetriedSuccesses())
        .setRetriedTransient(usage.getRetriedTransient() + told.getRetriedTransient());
  }

  private final class Decider extends RetryServiceGrpc.RetryServiceImplBase {
    @Override
    public void decide(RetryContext question, StreamObserver<Decision> answer) {
      questions.add(question);
      answers.acquireUninterruptibly();
      answers.release();
      earn(question.getUsage());
      FakeRetryd.answer(answer, decide.apply(question));
    }
  }

  private final class Budgets extends BudgetServiceGrpc.BudgetServiceImplBase {
    @Override
    public void reportUsage(ReportUsageRequest request, StreamObserver<ReportUsageResponse> answer) {
      ReportUsageResponse.Builder response = ReportUsageResponse.newBuilder();
      request.getUsageList().forEach(entry -> {
        earn(entry.getUsage());
        response.addResults(UsageResult.getDefaultInstance());
      });
      FakeRetryd.answer(answer, response.build());
    }

    @Override
    public void acquireRetries(AcquireRetriesRequest request, StreamObserver<AcquireRetriesResponse> answer) {
      FakeRetryd.answer(answer, AcquireRetriesResponse.newBuilder()
          .setShadow(observing).setGranted(request.getWanted()).setLease("lease").setValidFor(Duration.newBuilder().setSeconds(10)).build());
      acquires.add(request);
    }

    @Override
    public void releaseRetries(ReleaseRetriesRequest request, StreamObserver<ReleaseRetriesResponse> answer) {
      releases.add(request);
      FakeRetryd.answer(answer, ReleaseRetriesResponse.getDefaultInstance());
    }
  }

  private static <T> void answer(StreamObserver<T> answer, T value) {
    answer.onNext(value);
    answer.onCompleted();
  }
}

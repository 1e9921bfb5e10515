import com.google.common.util.concurrent.ListenableFuture;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.Failure;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.RetryServiceGrpc;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Calls Decide at a fixed rate until standard input ends: {@code Caller [--wait-for-ready] ADDRESS RATE}. Prints
 * {@code calling} when it has had its first answer, and a tally at the end.
 */
public final class Caller {
  private static final int DEADLINE_SECONDS = 30;

  public static void main(String[] arguments) throws Exception {
    String address = arguments[arguments.length - 2];
    double rate = Double.parseDouble(arguments[arguments.length - 1]);
    boolean waitForReady = List.of(arguments).contains("--wait-for-ready");
    var channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
    var stub = RetryServiceGrpc.newFutureStub(channel);
    if (waitForReady) {
      stub = stub.withWaitForReady();
    }
    var question = RetryContext.newBuilder()
        .setTenant("rollout").setOperation("java").setAttemptsMade(1).setBodyReplayable(true)
        .setFailure(Failure.newBuilder().setGrpcCode(Status.Code.RESOURCE_EXHAUSTED.value()))
        .build();
    stub.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS).decide(question).get();
    System.out.println("calling");

    var decide = stub;
    var calls = new ArrayList<Call>();
    var timer = Executors.newSingleThreadScheduledExecutor();
    var due = timer.scheduleAtFixedRate(
        () -> calls.add(new Call(decide.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS).decide(question))),
        0, (long) (1e9 / rate), TimeUnit.NANOSECONDS);
    System.in.readAllBytes();
    due.cancel(false);
    timer.shutdown();
    timer.awaitTermination(1, TimeUnit.MINUTES);

    var failed = new ArrayList<String>();
    for (Call call : calls) {
      call.failure().ifPresent(failed::add);
    }
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    System.out.println("{\"calls\": " + calls.size() + ", \"failed\": " + failed + "}");
  }

  private static final class Call {
    private final long beganMs = System.currentTimeMillis();
    private final CompletableFuture<Long> endedMs = new CompletableFuture<>();
    private final ListenableFuture<Decision> answer;

    Call(ListenableFuture<Decision> answer) {
      this.answer = answer;
      answer.addListener(() -> endedMs.complete(System.currentTimeMillis()), Runnable::run);
    }

    /** As JSON. */
    Optional<String> failure() throws InterruptedException {
      long ended = endedMs.join();
      try {
        answer.get();
        return Optional.empty();
      } catch (ExecutionException e) {
        Status status = Status.fromThrowable(e);
        String text = (status.getCode() + ": " + status.getDescription()).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
        return Optional.of("{\"text\": \"" + text + "\", \"began_ms\": " + beganMs + ", \"ended_ms\": " + ended + "}");
      }
    }
  }
}

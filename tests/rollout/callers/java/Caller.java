import io.github.retryd.v1.Failure;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.RetryServiceGrpc;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * Calls Decide at a fixed rate until standard input ends: {@code Caller [--wait-for-ready] ADDRESS RATE}. Prints
 * {@code calling} when it has had its first answer, and a tally at the end.
 */
public final class Caller {
  private static final int DEADLINE_SECONDS = 5;

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
    var calls = new ArrayList<Future<?>>();
    var timer = Executors.newSingleThreadScheduledExecutor();
    var due = timer.scheduleAtFixedRate(
        () -> calls.add(decide.withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS).decide(question)),
        0, (long) (1e9 / rate), TimeUnit.NANOSECONDS);
    System.in.readAllBytes();
    due.cancel(false);
    timer.shutdown();
    timer.awaitTermination(1, TimeUnit.MINUTES);

    var failed = new TreeMap<String, Integer>();
    for (Future<?> call : calls) {
      try {
        call.get();
      } catch (ExecutionException e) {
        Status status = Status.fromThrowable(e);
        failed.merge(status.getCode() + ": " + status.getDescription(), 1, Integer::sum);
      }
    }
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    System.out.println("{\"calls\": " + calls.size() + ", \"failed\": " + json(failed) + "}");
  }

  private static String json(TreeMap<String, Integer> counts) {
    var entries = new ArrayList<String>();
    counts.forEach((text, count) -> entries.add("\"" + text.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\": " + count));
    return "{" + String.join(", ", entries) + "}";
  }
}

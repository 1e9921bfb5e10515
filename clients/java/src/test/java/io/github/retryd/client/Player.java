package io.github.retryd.client;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.protobuf.Message;
import io.github.retryd.v1.AcquireRetriesRequest;
import io.github.retryd.v1.AcquireRetriesResponse;
import io.github.retryd.v1.BudgetServiceGrpc;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.GetBudgetRequest;
import io.github.retryd.v1.ListBudgetsRequest;
import io.github.retryd.v1.ListBudgetsResponse;
import io.github.retryd.v1.ReleaseRetriesRequest;
import io.github.retryd.v1.ReportUsageRequest;
import io.github.retryd.v1.ReportUsageResponse;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.RetryServiceGrpc;
import io.github.retryd.v1.Verdict;
import io.grpc.Channel;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;

/** Plays one sequence of steps, and tells everything that differs. */
final class Player {
  private final RetryServiceGrpc.RetryServiceBlockingStub decider;
  private final BudgetServiceGrpc.BudgetServiceBlockingStub budgets;
  private final Vectors vectors;
  private final Vectors.Play play;
  /** Leases and page tokens, by the names that steps gave them. */
  private final Map<String, String> named = new HashMap<>();
  private final List<String> differences = new ArrayList<>();
  private int granted;

  Player(Channel channel, Vectors vectors, Vectors.Play play) {
    this.decider = RetryServiceGrpc.newBlockingStub(channel);
    this.budgets = BudgetServiceGrpc.newBlockingStub(channel);
    this.vectors = vectors;
    this.play = play;
  }

  List<String> play() {
    play.steps().forEach(this::step);
    return differences.stream().distinct().toList();
  }

  private void step(JsonObject step) {
    granted = 0;
    int times = step.has("repeat") ? step.get("repeat").getAsInt() : 1;
    for (int time = 0; time < times; time++) {
      step.asMap().forEach((kind, calls) -> {
        switch (kind) {
          case "ask", "report", "reports", "acquire", "release", "budget", "list" ->
              Vectors.objects(calls).forEach(call -> call(kind, call.getAsJsonObject(), step));
          case "repeat", "granted", "as", "expect", "error" -> {}
          default -> throw new IllegalArgumentException("`" + kind + "` needs a run in process");
        }
      });
    }
    if (step.has("granted") && step.get("granted").getAsInt() != granted) {
      differences.add("granted " + granted + ", expected " + step.get("granted"));
    }
  }

  private void call(String kind, JsonObject call, JsonObject step) {
    JsonObject filled = Messages.merged(play.names(), call);
    switch (kind) {
      case "ask" -> ask(step, Messages.context(Messages.merged(play.names(), Messages.laid(vectors.base(), call))));
      case "report" -> {
        ReportUsageRequest request = ReportUsageRequest.newBuilder().addUsage(Messages.usage(filled)).build();
        judge(step, () -> budgets.reportUsage(request).getResults(0),
            result -> Laws.report(List.of(result), step.has("expect")));
      }
      case "reports" -> {
        ReportUsageRequest request = Messages.report(call, play.names());
        judge(step, () -> budgets.reportUsage(request),
            (ReportUsageResponse answer) -> Laws.report(answer.getResultsList(), step.has("expect")));
      }
      case "acquire" -> acquire(step, Messages.parse(filled, AcquireRetriesRequest.newBuilder()).build());
      case "release" -> {
        ReleaseRetriesRequest request =
            Messages.parse(withNamed(filled, "lease"), ReleaseRetriesRequest.newBuilder()).build();
        judge(step, () -> budgets.releaseRetries(request),
            answer -> Laws.release(answer.getReleased(), request.getUnused()));
      }
      case "budget" -> {
        GetBudgetRequest request = Messages.parse(filled, GetBudgetRequest.newBuilder()).build();
        judge(step, () -> budgets.getBudget(request), answer -> List.of());
      }
      default -> list(step, Messages.parse(withNamed(call, "pageToken"), ListBudgetsRequest.newBuilder()).build());
    }
  }

  private void ask(JsonObject step, RetryContext context) {
    judge(step, () -> decider.decide(context), (Decision decision) -> {
      granted += decision.getVerdict() == Verdict.VERDICT_RETRY ? 1 : 0;
      return Laws.decision(decision, context.getExplain(), isShadow(step), vectors.revision());
    });
  }

  private void acquire(JsonObject step, AcquireRetriesRequest request) {
    judge(step, () -> budgets.acquireRetries(request), (AcquireRetriesResponse answer) -> {
      keep(step, answer.getLease());
      return Laws.acquire(answer, request.getWanted(), isShadow(step));
    });
  }

  private void list(JsonObject step, ListBudgetsRequest request) {
    judge(step, () -> budgets.listBudgets(request), (ListBudgetsResponse answer) -> {
      keep(step, answer.getNextPageToken());
      return List.of();
    });
  }

  /** Without an expectation any answer will do, but no error. */
  private <A extends Message> void judge(JsonObject step, Supplier<A> call, Function<A, List<String>> laws) {
    A answer;
    try {
      answer = call.get();
    } catch (StatusRuntimeException error) {
      differences.addAll(step.has("error")
          ? Laws.refusal(error, step.getAsJsonObject("error"))
          : List.of("ended with " + error.getStatus()));
      return;
    }
    differences.addAll(laws.apply(answer));
    JsonObject got = Messages.print(answer);
    if (step.has("error")) {
      differences.add("no error, but " + got);
    }
    if (step.has("expect")) {
      differences.addAll(Subset.differences(step.getAsJsonObject("expect"), got));
    }
  }

  private void keep(JsonObject step, String brought) {
    if (step.has("as")) {
      named.put(step.get("as").getAsString(), brought);
    }
  }

  /** {@code {"as": "name"}} replaced by what was kept under that name. */
  private JsonObject withNamed(JsonObject json, String key) {
    JsonElement value = json.get(key);
    if (value == null || !value.isJsonObject()) {
      return json;
    }
    JsonObject replaced = json.deepCopy();
    replaced.addProperty(key, named.get(value.getAsJsonObject().get("as").getAsString()));
    return replaced;
  }

  private static boolean isShadow(JsonObject step) {
    return step.has("expect") && step.getAsJsonObject("expect").has("shadow")
        && step.getAsJsonObject("expect").get("shadow").getAsBoolean();
  }
}

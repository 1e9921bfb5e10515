package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Plays clients/scenarios/calls.json. */
class CallsTest {
  @TestFactory
  Stream<DynamicTest> calls() {
    return play("java-grpc-calls-", CallsTest::isOverGrpc);
  }

  /** Where nobody listens it is all the same over what. */
  @TestFactory
  Stream<DynamicTest> callsToAClosedPort() {
    return play("java-grpc-closed-", scenario ->
        scenario.has("target") && scenario.get("target").getAsString().equals("closed") && !isOverGrpc(scenario));
  }

  private static Stream<DynamicTest> play(String prefix, Predicate<JsonObject> chosen) {
    JsonArray cases = Testbed.scenarios("calls.json").getAsJsonArray("cases");
    return IntStream.range(0, cases.size())
        .filter(place -> chosen.test(cases.get(place).getAsJsonObject()))
        .mapToObj(place -> {
          JsonObject scenario = cases.get(place).getAsJsonObject();
          return DynamicTest.dynamicTest(scenario.get("name").getAsString(), () ->
              assertEquals(List.of(), differences(scenario, new Run(prefix + place, scenario).play())));
        });
  }

  static boolean isOverGrpc(JsonObject scenario) {
    return scenario.getAsJsonArray("over").contains(new JsonPrimitive("grpc"));
  }

  private static List<String> differences(JsonObject scenario, Run.Seen seen) {
    JsonObject expect = scenario.getAsJsonObject("expect");
    List<String> differences = new ArrayList<>();
    expect.asMap().forEach((key, wanted) -> {
      switch (key) {
        case "outcome" -> outcome(wanted, seen.status(), differences);
        case "attempts" -> compare(key, wanted.getAsInt(), seen.attempts(), differences);
        case "arrivals", "questions" ->
            compare(key, wanted.getAsInt(), seen.play().getAsJsonArray(key).size(), differences);
        case "waits_ms" -> waits(wanted.getAsJsonArray(), seen.play().getAsJsonArray("arrivals"), differences);
        case "within_ms" -> {
          if (wanted.getAsLong() <= seen.tookMs()) {
            differences.add("took " + seen.tookMs() + " ms");
          }
        }
        case "headers" -> seen.play().getAsJsonArray("arrivals").forEach(arrival -> differences.addAll(
            Subset.differences(wanted.getAsJsonObject(), arrival.getAsJsonObject().getAsJsonObject("headers"))));
        case "reasons" -> compare(key, wanted, reasons(seen.play()), differences);
        case "contexts" -> contexts(wanted.getAsJsonArray(), seen.play().getAsJsonArray("questions"), differences);
        case "usage" -> compare(key, wanted, seen.play().get(key), differences);
        case "released_of_call" -> compare(key, wanted.getAsInt(), released(seen.play(), "decided"), differences);
        case "released_of_lease" -> compare(key, wanted.getAsInt(), released(seen.play(), "lease"), differences);
        default -> differences.add("unknown expectation `" + key + "`");
      }
    });
    return differences;
  }

  private static void outcome(JsonElement wanted, Status got, List<String> differences) {
    boolean holds = wanted instanceof JsonObject code
        ? code.get("grpc").getAsInt() == got.getCode().value()
        : got.isOk() == wanted.getAsString().equals("ok");
    if (!holds) {
      differences.add("outcome: " + got + ", expected " + wanted);
    }
  }

  private static void waits(JsonArray wanted, JsonArray arrivals, List<String> differences) {
    if (arrivals.size() != wanted.size() + 1) {
      differences.add("waits_ms: " + arrivals.size() + " arrivals");
      return;
    }
    for (int place = 0; place < wanted.size(); place++) {
      double waited = atMs(arrivals.get(place + 1)) - atMs(arrivals.get(place));
      if (waited < wanted.get(place).getAsDouble()) {
        differences.add("wait " + place + ": " + waited + " ms, expected " + wanted.get(place));
      }
    }
  }

  private static void contexts(JsonArray wanted, JsonArray questions, List<String> differences) {
    for (int place = 0; place < wanted.size(); place++) {
      if (questions.size() <= place) {
        differences.add("no question " + place);
        return;
      }
      JsonObject context = questions.get(place).getAsJsonObject().getAsJsonObject("context");
      differences.addAll(Subset.differences(wanted.get(place).getAsJsonObject(), context));
    }
  }

  private static JsonArray reasons(JsonObject play) {
    JsonArray reasons = new JsonArray();
    for (JsonElement question : play.getAsJsonArray("questions")) {
      JsonObject decision = question.getAsJsonObject().getAsJsonObject("decision");
      reasons.add(decision == null ? null : decision.get("reason"));
    }
    return reasons;
  }

  private static int released(JsonObject play, String grant) {
    int released = 0;
    for (JsonElement release : play.getAsJsonArray("releases")) {
      if (release.getAsJsonObject().getAsJsonObject("request").has(grant)) {
        JsonElement count = release.getAsJsonObject().getAsJsonObject("response").get("released");
        released += count == null ? 0 : count.getAsInt();
      }
    }
    return released;
  }

  private static double atMs(JsonElement arrival) {
    return arrival.getAsJsonObject().get("at_ms").getAsDouble();
  }

  private static void compare(String what, Object wanted, Object got, List<String> differences) {
    if (!wanted.equals(got)) {
      differences.add(what + ": " + got + ", expected " + wanted);
    }
  }
}

package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.nio.file.Path;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Holds what the kit says of clients/scenarios/failures.json against evidence.json. */
class FailuresTest {
  private final JsonObject evidence = Testbed.json(Path.of("evidence.json")).getAsJsonObject("grpc-java");

  @TestFactory
  Stream<DynamicTest> failures() {
    JsonArray failures = Testbed.scenarios("failures.json").getAsJsonArray("failures");
    return IntStream.range(0, failures.size())
        .filter(place -> CallsTest.isOverGrpc(failures.get(place).getAsJsonObject()))
        .mapToObj(place -> {
          JsonObject failure = failures.get(place).getAsJsonObject();
          String name = failure.get("name").getAsString();
          return DynamicTest.dynamicTest(name, () -> {
            JsonObject wanted = evidence.getAsJsonObject(name).deepCopy();
            wanted.remove("how");
            Run.Seen seen = new Run("java-grpc-failures-" + place, failure).play();
            assertEquals(wanted, told(seen.play()));
          });
        });
  }

  /** Even the library's very own words prove nothing when the server says them. */
  @TestFactory
  Stream<DynamicTest> wordsOfTheLibraryFromTheServer() {
    return Stream.concat(Failures.REFUSALS.stream(), Failures.LOSSES.stream())
        .map(words -> DynamicTest.dynamicTest(words, () -> {
          Run.Seen seen = new Run("java-grpc-words-" + words.replaceAll("\\W", ""), Testbed.parsed(
              "{'script': [{'grpc': 14, 'message': '" + words + "'}]}")).play();
          assertEquals(words, seen.status().getDescription());
          assertEquals(Testbed.parsed("{'category': 'STATUS', 'status': 'grpc 14'}"), told(seen.play()));
        }));
  }

  @Test
  void aProxyMaySayWhenToComeBack() throws Exception {
    Run.Seen seen = new Run("java-grpc-retry-after", Testbed.parsed(
        "{'script': [{'http': 503, 'headers': {'retry-after': '7', 'date': 'Wed, 21 Oct 2026 07:28:00 GMT'}}]}")).play();
    assertEquals(
        Testbed.parsed("{'retryAfterHeader': '7', 'dateHeader': 'Wed, 21 Oct 2026 07:28:00 GMT'}"),
        seen.play().getAsJsonArray("questions").get(0).getAsJsonObject().getAsJsonObject("context").get("hint"));
  }

  /** The first question, in the words of evidence.json. */
  private static JsonObject told(JsonObject play) {
    JsonObject context = play.getAsJsonArray("questions").get(0).getAsJsonObject().getAsJsonObject("context");
    JsonObject failure = context.getAsJsonObject("failure");
    JsonObject told = new JsonObject();
    told.addProperty("category", failure.get("category").getAsString().replace("FAILURE_CATEGORY_", ""));
    if (context.has("evidence")) {
      told.addProperty("evidence", context.get("evidence").getAsString().replace("EVIDENCE_", ""));
    }
    told.addProperty("status", "grpc " + failure.get("grpcCode"));
    return told;
  }
}

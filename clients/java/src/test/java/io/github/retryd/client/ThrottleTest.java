package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Plays clients/scenarios/throttle.json. */
class ThrottleTest {
  private final JsonObject scenarios = Testbed.scenarios("throttle.json");

  @TestFactory
  Stream<DynamicTest> sequences() {
    return each("sequences", sequence -> {
      Throttle throttle = new Throttle();
      for (JsonElement step : sequence.getAsJsonArray("steps")) {
        step.getAsJsonObject().asMap().forEach((what, value) -> {
          switch (what) {
            case "failures" -> times(value.getAsInt(), throttle::failure);
            case "successes" -> times(value.getAsInt(), throttle::success);
            case "grants" -> assertEquals(value.getAsBoolean(), throttle.grants());
            default -> throw new IllegalArgumentException("unknown step `" + what + "`");
          }
        });
      }
    });
  }

  @TestFactory
  Stream<DynamicTest> counts() {
    return each("counts", row -> assertEquals(
        row.get("counts").getAsBoolean(), Unasked.counts(Messages.context(row.getAsJsonObject("context")))));
  }

  static void times(int count, Runnable event) {
    IntStream.range(0, count).forEach(time -> event.run());
  }

  private interface Play {
    void play(JsonObject scenario);
  }

  private Stream<DynamicTest> each(String list, Play play) {
    return StreamSupport.stream(scenarios.getAsJsonArray(list).spliterator(), false).map(JsonElement::getAsJsonObject)
        .map(row -> DynamicTest.dynamicTest(row.get("name").getAsString(), () -> play.play(row)));
  }
}

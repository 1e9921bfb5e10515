package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.github.retryd.v1.RetryContext;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Plays clients/scenarios/unasked.json. */
class UnaskedTest {
  /** A wait is drawn: so often it must lie within its bounds. */
  private static final int DRAWS = 200;

  private final JsonObject scenarios = Testbed.scenarios("unasked.json");

  @TestFactory
  Stream<DynamicTest> unasked() {
    JsonArray cases = scenarios.getAsJsonArray("cases");
    return StreamSupport.stream(cases.spliterator(), false).map(JsonElement::getAsJsonObject)
        .map(scenario -> DynamicTest.dynamicTest(scenario.get("name").getAsString(), () -> play(scenario)));
  }

  private void play(JsonObject scenario) {
    RetryContext attempt = Messages.context(
        Messages.merged(scenarios.getAsJsonObject("base"), scenario.getAsJsonObject("context")));
    Status.Code ended = Status.Code.valueOf(scenario.get("ended").getAsString());
    JsonObject expect = scenario.getAsJsonObject("expect");
    for (int draw = 0; draw < DRAWS; draw++) {
      Throttle throttle = throttle(scenario);
      throttle.failure();
      Optional<Duration> delay = Unasked.isUnanswered(ended) ? Unasked.delay(attempt, throttle) : Optional.empty();
      assertEquals(expect.get("retry").getAsBoolean(), delay.isPresent());
      delay.map(Duration::toMillis).ifPresent(ms -> assertTrue(
          expect.get("least_ms").getAsLong() <= ms && ms <= expect.get("most_ms").getAsLong(), ms + " ms"));
    }
  }

  private static Throttle throttle(JsonObject scenario) {
    Throttle throttle = new Throttle();
    if (scenario.has("tokens")) {
      ThrottleTest.times(10, throttle::failure);
      ThrottleTest.times((int) Math.round(scenario.get("tokens").getAsDouble() * 10), throttle::success);
    }
    return throttle;
  }
}

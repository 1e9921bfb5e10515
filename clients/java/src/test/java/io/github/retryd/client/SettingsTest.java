package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class SettingsTest {
  @Test
  void allFaultsAreToldTogether() {
    Retryd.Builder builder = Retryd.newBuilder()
        .askTimeout(Duration.ZERO)
        .attemptTimeout(Duration.ZERO)
        .reportEvery(Duration.ofSeconds(11))
        .operation("charge", Operation.DEFAULT.withKeyHeader("no header").withLease(1001));
    assertEquals(
        "settings of retryd: `target` is missing; `tenant` is missing; `askTimeout` is 0 ms, not 1 to 10000; "
            + "`attemptTimeout` is not more than 0; `reportEvery` is 11000 ms, not 100 to 10000; "
            + "`keyHeader` of `charge` is no name of a header; `lease` of `charge` is 1001, not 0 to 1000",
        refusal(builder));
  }

  @Test
  void namesHaveTheLimitsOfTheContract() {
    assertEquals(
        "settings of retryd: `tenant` is no text of 1 to 128 bytes without control characters; "
            + "`operation` is no text of 1 to 256 bytes without control characters",
        refusal(Retryd.newBuilder().target("127.0.0.1:1").tenant("ä".repeat(65))
            .operation("\n" + "x".repeat(256), Operation.DEFAULT)));
  }

  @Test
  void limitsAreInRange() {
    for (Duration[] limits : new Duration[][] {
        {Duration.ofMillis(1), Duration.ofMillis(100)}, {Duration.ofSeconds(10), Duration.ofSeconds(10)}}) {
      Retryd.newBuilder().target("127.0.0.1:1").tenant("x".repeat(128))
          .askTimeout(limits[0]).reportEvery(limits[1])
          .operation("charge", Operation.DEFAULT.withLease(1000)).build().close();
    }
  }

  private static String refusal(Retryd.Builder builder) {
    return assertThrows(IllegalArgumentException.class, builder::build).getMessage();
  }
}

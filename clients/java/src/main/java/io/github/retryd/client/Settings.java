package io.github.retryd.client;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Settings that have been checked. What they mean stands at {@link Retryd.Builder}. */
record Settings(
    String target,
    ChannelCredentials credentials,
    String tenant,
    Duration askTimeout,
    Optional<Duration> attemptTimeout,
    boolean fallback,
    Duration reportEvery,
    Map<String, Operation> operations,
    OwnRules ownRules) {
  static final int LEASE_MAX = 1000;

  Operation operation(String name) {
    return operations.getOrDefault(name, Operation.DEFAULT);
  }

  /** Settings as they come, with the defaults. */
  static final class Draft {
    String target;
    ChannelCredentials credentials = InsecureChannelCredentials.create();
    String tenant;
    Duration askTimeout = Duration.ofMillis(20);
    Duration attemptTimeout;
    boolean fallback = true;
    Duration reportEvery = Duration.ofSeconds(5);
    final Map<String, Operation> operations = new HashMap<>();
    OwnRules ownRules = (attempt, decision) -> Optional.empty();

    private final List<String> faults = new ArrayList<>();

    Settings check() {
      faults.clear();
      present("target", target);
      present("tenant", tenant);
      if (tenant != null && !tenant.isEmpty()) {
        name("tenant", tenant, UsageLedger.Name.TENANT_BYTES_MAX);
      }
      range("askTimeout", askTimeout, Duration.ofMillis(1), Duration.ofSeconds(10));
      if (attemptTimeout != null) {
        require(!attemptTimeout.isNegative() && !attemptTimeout.isZero(), "`attemptTimeout` is not more than 0");
      }
      range("reportEvery", reportEvery, Duration.ofMillis(100), Duration.ofSeconds(10));
      operations.forEach(this::operation);
      if (!faults.isEmpty()) {
        throw new IllegalArgumentException("settings of retryd: " + String.join("; ", faults));
      }
      return new Settings(target, credentials, tenant, askTimeout, Optional.ofNullable(attemptTimeout), fallback,
          reportEvery, Map.copyOf(operations), ownRules);
    }

    private void operation(String name, Operation operation) {
      name("operation", name, UsageLedger.Name.OPERATION_BYTES_MAX);
      operation.keyHeader().ifPresent(header -> require(isHeader(header),
          "`keyHeader` of `" + name + "` is no name of a header"));
      require(0 <= operation.lease() && operation.lease() <= LEASE_MAX,
          "`lease` of `" + name + "` is " + operation.lease() + ", not 0 to " + LEASE_MAX);
    }

    private void present(String setting, String value) {
      require(value != null && !value.isEmpty(), "`" + setting + "` is missing");
    }

    private void name(String setting, String value, int most) {
      require(UsageLedger.Name.isName(value, most),
          "`" + setting + "` is no text of 1 to " + most + " bytes without control characters");
    }

    private void range(String setting, Duration value, Duration least, Duration most) {
      require(value.compareTo(least) >= 0 && value.compareTo(most) <= 0,
          "`" + setting + "` is " + value.toMillis() + " ms, not " + least.toMillis() + " to " + most.toMillis());
    }

    private void require(boolean holds, String fault) {
      if (!holds) {
        faults.add(fault);
      }
    }

    private static boolean isHeader(String name) {
      try {
        Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
        return true;
      } catch (IllegalArgumentException unfit) {
        return false;
      }
    }
  }
}

package io.github.retryd.client;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.Duration;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.util.JsonFormat;
import io.github.retryd.v1.ReportUsageRequest;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.TenantUsage;
import java.util.Optional;

/** Proto-JSON, and the little beyond it that vectors may say (tests/vectors/README.md, "Call"). */
final class Messages {
  /** {@code over} on top of {@code base}, at the top level only. null removes a key. */
  static JsonObject merged(JsonObject base, JsonObject over) {
    JsonObject merged = laid(base, over);
    merged.asMap().values().removeIf(JsonElement::isJsonNull);
    return merged;
  }

  /** The same, with null still in it. */
  static JsonObject laid(JsonObject base, JsonObject over) {
    JsonObject laid = base.deepCopy();
    over.asMap().forEach((key, value) -> laid.add(key, value.deepCopy()));
    return laid;
  }

  static RetryContext context(JsonObject json) {
    JsonObject plain = json.deepCopy();
    Optional<Duration> remaining = takeDuration(plain, "remainingDeadline");
    Optional<Duration> retryAfter = takeDuration(child(plain, "hint"), "retryAfter");
    Optional<Duration> period = takeDuration(child(plain, "usage"), "period");
    RetryContext.Builder context = parse(plain, RetryContext.newBuilder());
    remaining.ifPresent(context::setRemainingDeadline);
    retryAfter.ifPresent(value -> context.getHintBuilder().setRetryAfter(value));
    period.ifPresent(value -> context.getUsageBuilder().setPeriod(value));
    return context.build();
  }

  static TenantUsage usage(JsonObject json) {
    JsonObject plain = json.deepCopy();
    Optional<Duration> period = takeDuration(child(plain, "usage"), "period");
    TenantUsage.Builder usage = parse(plain, TenantUsage.newBuilder());
    period.ifPresent(value -> usage.getUsageBuilder().setPeriod(value));
    return usage.build();
  }

  /** A report as a whole; {@code names} lies under each of its entries. */
  static ReportUsageRequest report(JsonObject json, JsonObject names) {
    JsonObject plain = json.deepCopy();
    JsonArray entries = plain.remove("usage").getAsJsonArray();
    ReportUsageRequest.Builder report = parse(plain, ReportUsageRequest.newBuilder());
    entries.forEach(entry -> report.addUsage(usage(merged(names, entry.getAsJsonObject()))));
    return report.build();
  }

  static <B extends Message.Builder> B parse(JsonObject json, B builder) {
    try {
      JsonFormat.parser().merge(json.toString(), builder);
      return builder;
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException(json.toString(), error);
    }
  }

  static JsonObject print(MessageOrBuilder message) {
    try {
      return JsonParser.parseString(JsonFormat.printer().print(message)).getAsJsonObject();
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException(error);
    }
  }

  private static JsonObject child(JsonObject json, String key) {
    return json.has(key) ? json.getAsJsonObject(key) : new JsonObject();
  }

  /** Out of range a duration is no proto-JSON: it is set on the message itself. */
  private static Optional<Duration> takeDuration(JsonObject json, String key) {
    JsonElement value = json.remove(key);
    if (value == null) {
      return Optional.empty();
    }
    if (value instanceof JsonPrimitive text) {
      return Optional.of(parse(text));
    }
    JsonObject parts = value.getAsJsonObject();
    return Optional.of(Duration.newBuilder()
        .setSeconds(parts.has("seconds") ? parts.get("seconds").getAsLong() : 0)
        .setNanos(parts.has("nanos") ? parts.get("nanos").getAsInt() : 0)
        .build());
  }

  private static Duration parse(JsonPrimitive text) {
    Duration.Builder duration = Duration.newBuilder();
    try {
      JsonFormat.parser().merge(text.toString(), duration);
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException(text.toString(), error);
    }
    return duration.build();
  }

  private Messages() {}
}

package io.github.retryd.client;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.protobuf.StringValue;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** One call of the scenarios: made by the kit, and seen by the testbed. */
final class Run {
  static final String OPERATION = "payments.v1.Payments/Charge";

  static final MethodDescriptor<StringValue, StringValue> METHOD = MethodDescriptor.<StringValue, StringValue>newBuilder()
      .setType(MethodDescriptor.MethodType.UNARY)
      .setFullMethodName(OPERATION)
      .setRequestMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
      .setResponseMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
      .build();

  private static final Metadata.Key<String> PLAY = key("x-play");
  private static final Metadata.Key<String> SCRIPT = key("x-script");
  private static final Metadata.Key<String> IDEMPOTENCY_KEY = key("idempotency-key");

  /** How the call ended, what the testbed saw, and how many attempts there were beneath the kit. */
  record Seen(Status status, int attempts, long tookMs, JsonObject play) {}

  private final String name;
  private final JsonObject scenario;
  private final JsonObject call;
  private final AtomicInteger attempts = new AtomicInteger();

  Run(String name, JsonObject scenario) {
    this.name = name;
    this.scenario = scenario;
    this.call = scenario.has("call") ? scenario.getAsJsonObject("call") : new JsonObject();
  }

  Seen play() throws Exception {
    ManagedChannel channel = Grpc.newChannelBuilder(
        Testbed.service(text(scenario, "target").orElse("faulty")), InsecureChannelCredentials.create()).build();
    Status status;
    long began;
    long took;
    try (Retryd retryd = retryd()) {
      awaitLease();
      if (call.has("draining")) {
        retryd.drain();
      }
      Channel counted = ClientInterceptors.intercept(channel, new Counting());
      began = System.nanoTime();
      status = charge(ClientInterceptors.intercept(counted, retryd.interceptor()));
      took = System.nanoTime() - began;
    } finally {
      channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    }
    return new Seen(status, attempts.get(), TimeUnit.NANOSECONDS.toMillis(took), Testbed.play(name));
  }

  private Retryd retryd() {
    Operation operation = Operation.DEFAULT
        .withDeclared(call.has("declared"))
        .withLease(number("lease").orElse(0L).intValue());
    if (call.has("key_header")) {
      operation = operation.withKeyHeader(call.get("key_header").getAsString());
    }
    String retryd = text(scenario, "retryd").orElse("asked");
    Retryd.Builder builder = Retryd.newBuilder()
        .target(Testbed.retryd(retryd))
        .tenant(name)
        .operation(text(call, "operation").orElse(OPERATION), operation)
        .fallback(!call.has("fallback"));
    number("attempt_timeout_ms").map(Duration::ofMillis).ifPresent(builder::attemptTimeout);
    number("ask_timeout_ms").or(() -> Optional.of(5000L).filter(asked -> retryd.equals("asked")))
        .map(Duration::ofMillis).ifPresent(builder::askTimeout);
    number("own_rules_ms").map(Duration::ofMillis)
        .ifPresent(delay -> builder.ownRules((attempt, decision) -> Optional.of(delay)));
    return builder.build();
  }

  /** A lease of the scenarios is there when the call starts. */
  private void awaitLease() throws InterruptedException {
    while (call.has("lease") && Testbed.play(name).getAsJsonArray("acquires").isEmpty()) {
      Thread.sleep(10);
    }
  }

  /** Where a Decision is expected, the time until the caller gives up counts from it. */
  private void awaitDecision() throws InterruptedException {
    boolean expected = scenario.has("expect") && scenario.getAsJsonObject("expect").has("reasons");
    while (expected && !hasDecision(Testbed.play(name))) {
      Thread.sleep(10);
    }
  }

  private static boolean hasDecision(JsonObject play) {
    JsonArray questions = play.getAsJsonArray("questions");
    return !questions.isEmpty() && questions.get(0).getAsJsonObject().has("decision");
  }

  private Status charge(Channel channel) throws Exception {
    Metadata headers = new Metadata();
    headers.put(PLAY, name);
    headers.put(SCRIPT, scenario.get("script").toString());
    text(call, "key").ifPresent(key -> headers.put(IDEMPOTENCY_KEY, key));
    Channel spoken = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(headers));

    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    try (Context.CancellableContext context = Context.current().withCancellation()) {
      number("cancel_after_ms").ifPresent(after -> timer.submit(() -> {
        awaitDecision();
        Thread.sleep(after);
        return context.cancel(null);
      }));
      return context.call(() -> {
        try {
          ClientCalls.blockingUnaryCall(spoken, METHOD, options(), StringValue.of("do"));
          return Status.OK;
        } catch (StatusRuntimeException error) {
          return error.getStatus();
        }
      });
    } finally {
      timer.shutdownNow();
    }
  }

  private CallOptions options() {
    CallOptions options = CallOptions.DEFAULT;
    if (call.has("timeout_ms")) {
      options = options.withDeadlineAfter(call.get("timeout_ms").getAsLong(), TimeUnit.MILLISECONDS);
    }
    boolean unnamed = call.has("operation") && call.get("operation").isJsonNull();
    return unnamed ? options : options.withOption(Retryd.OPERATION, text(call, "operation").orElse(OPERATION));
  }

  private Optional<Long> number(String key) {
    return Optional.ofNullable(call.get(key)).map(JsonElement::getAsLong);
  }

  private static Optional<String> text(JsonObject json, String key) {
    return Optional.ofNullable(json.get(key)).filter(value -> !value.isJsonNull()).map(JsonElement::getAsString);
  }

  private static Metadata.Key<String> key(String header) {
    return Metadata.Key.of(header, Metadata.ASCII_STRING_MARSHALLER);
  }

  /** Sits beneath the kit. */
  private final class Counting implements ClientInterceptor {
    @Override
    public <ReqT, RespT> ClientCall<ReqT, RespT> interceptCall(
        MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel next) {
      attempts.incrementAndGet();
      return next.newCall(method, options);
    }
  }
}

package io.github.retryd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.Any;
import com.google.protobuf.StringValue;
import com.google.rpc.RetryInfo;
import io.github.retryd.client.FakeService.Answer;
import io.github.retryd.v1.Decision;
import io.github.retryd.v1.Evidence;
import io.github.retryd.v1.ReleaseRetriesRequest;
import io.github.retryd.v1.RetryContext;
import io.github.retryd.v1.Usage;
import io.github.retryd.v1.Verdict;
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
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What calls.json does not reach: the contract of a {@link ClientCall}, and what happens at the same time. */
@Timeout(60)
class RetryingCallTest {
  private static final Function<RetryContext, Decision> AT_ONCE = question -> FakeRetryd.retryAfter(1);
  private static final Function<RetryContext, Decision> IN_HALF_AN_HOUR = question -> FakeRetryd.retryAfter(1_800_000);

  @Test
  void onlyTheAttemptThatEndsTheCallIsHeardOf() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.UNAVAILABLE, new Answer(1, Status.ABORTED), Answer.OK);
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call = start(service.through(retryd), CallOptions.DEFAULT, recorder);
      call.request(2);
      say(call);
      assertEquals(Status.OK, recorder.closed.get());
      assertEquals(List.of("headers 3", "answer 3", "closed"), recorder.events);
      assertEquals(List.of(StringValue.of("do"), StringValue.of("do"), StringValue.of("do")), service.requests);
    }
  }

  @Test
  void everyAttemptCarriesTheSameHeaders() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK);
        Retryd retryd = fake.client().build()) {
      Metadata.Key<String> key = Metadata.Key.of("idempotency-key", Metadata.ASCII_STRING_MARSHALLER);
      Metadata headers = new Metadata();
      headers.put(key, "k1");
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call =
          service.through(retryd).newCall(Run.METHOD, CallOptions.DEFAULT);
      call.start(recorder, headers);
      call.request(2);
      say(call);
      recorder.closed.get();
      List<List<String>> arrived = new ArrayList<>();
      service.arrivals.forEach(arrival -> {
        List<String> values = new ArrayList<>();
        arrival.getAll(key).forEach(values::add);
        arrived.add(values);
      });
      assertEquals(List.of(List.of("k1"), List.of("k1")), arrived);
    }
  }

  @Test
  void theFailureIsHandedOnAsItIs() throws Exception {
    Decision no = Decision.newBuilder().setVerdict(Verdict.VERDICT_DO_NOT_RETRY).build();
    try (FakeRetryd fake = new FakeRetryd(question -> no);
        FakeService service = new FakeService(new Answer(1, Status.UNAVAILABLE.withDescription("of the server")));
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call = start(service.through(retryd), CallOptions.DEFAULT, recorder);
      call.request(2);
      say(call);
      assertEquals("of the server", recorder.closed.get().getDescription());
      assertEquals(List.of("headers 1", "answer 1", "closed"), recorder.events);
    }
  }

  @Test
  void aCancellationEndsTheWaitAndGivesTheGrantBack() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(IN_HALF_AN_HOUR);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call = start(service.through(retryd), CallOptions.DEFAULT, recorder);
      call.request(2);
      say(call);
      RetryContext question = FakeRetryd.next(fake.questions);
      call.cancel("enough", null);
      assertEquals(Status.Code.UNAVAILABLE, recorder.closed.get().getCode());
      assertGivenBack(question, FakeRetryd.next(fake.releases));
      assertEquals(1, service.arrivals.size());
    }
  }

  @Test
  void aGrantThatComesTooLateIsGivenBack() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(IN_HALF_AN_HOUR);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build()) {
      fake.answers.drainPermits();
      ListenableFuture<StringValue> answer = charge(service.through(retryd), CallOptions.DEFAULT);
      RetryContext question = FakeRetryd.next(fake.questions);
      answer.cancel(true);
      fake.answers.release();
      assertGivenBack(question, FakeRetryd.next(fake.releases));
    }
  }

  @Test
  void theDeadlineOfTheContextEndsTheWait() throws Exception {
    ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
    try (FakeRetryd fake = new FakeRetryd(IN_HALF_AN_HOUR);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build();
        Context.CancellableContext context = Context.current().withDeadlineAfter(2, TimeUnit.SECONDS, timer)) {
      ListenableFuture<StringValue> answer =
          context.call(() -> charge(service.through(retryd), CallOptions.DEFAULT));
      assertEquals(Status.Code.UNAVAILABLE, failure(answer).getCode());
      RetryContext question = FakeRetryd.next(fake.questions);
      assertTrue(question.hasRemainingDeadline());
      assertGivenBack(question, FakeRetryd.next(fake.releases));
    } finally {
      timer.shutdownNow();
    }
  }

  @Test
  void theDeadlineOfTheCallEndsTheWait() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(IN_HALF_AN_HOUR);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build()) {
      ListenableFuture<StringValue> answer =
          charge(service.through(retryd), CallOptions.DEFAULT.withDeadlineAfter(2, TimeUnit.SECONDS));
      assertEquals(Status.Code.UNAVAILABLE, failure(answer).getCode());
      assertGivenBack(FakeRetryd.next(fake.questions), FakeRetryd.next(fake.releases));
    }
  }

  @Test
  void closingEndsTheWait() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(IN_HALF_AN_HOUR);
        FakeService service = new FakeService(Answer.UNAVAILABLE)) {
      ListenableFuture<StringValue> answer;
      RetryContext question;
      try (Retryd retryd = fake.client().build()) {
        answer = charge(service.through(retryd), CallOptions.DEFAULT);
        question = FakeRetryd.next(fake.questions);
      }
      assertEquals("of the server", failure(answer).getDescription());
      assertGivenBack(question, FakeRetryd.next(fake.releases));
    }
  }

  @Test
  void aCallThatWasCancelledBeforeItsRequestIsNotSent() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.OK);
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call = start(service.through(retryd), CallOptions.DEFAULT, recorder);
      call.cancel("never mind", null);
      assertEquals(Status.Code.CANCELLED, recorder.closed.get().getCode());
      say(call);
      assertEquals(List.of(), service.arrivals);
    }
  }

  @Test
  void anAnswerWaitsForTheDemandOfTheApplication() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK);
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call = start(service.through(retryd), CallOptions.DEFAULT, recorder);
      say(call);
      while (service.arrivals.size() < 2) {
        Thread.onSpinWait();
      }
      assertEquals(List.of(), recorder.events);
      call.request(1);
      assertEquals(Status.OK, recorder.closed.get());
    }
  }

  @Test
  void oneMessageTooManyIsTheStubsToJudge() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(new Answer(3, Status.OK));
        Retryd retryd = fake.client().build()) {
      Status without = failure(charge(service.channel, CallOptions.DEFAULT));
      Status with = failure(charge(service.through(retryd), CallOptions.DEFAULT));
      assertEquals(without.getCode(), with.getCode());
    }
  }

  @Test
  void anApplicationThatFailsOverItsAnswerHearsOfIt() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.OK);
        Retryd retryd = fake.client().build()) {
      CompletableFuture<Throwable> heard = new CompletableFuture<>();
      ClientCalls.asyncUnaryCall(service.through(retryd).newCall(Run.METHOD, CallOptions.DEFAULT), StringValue.of("do"),
          new StreamObserver<>() {
            @Override
            public void onNext(StringValue answer) {
              throw new IllegalStateException("cannot read it");
            }

            @Override
            public void onError(Throwable error) {
              heard.complete(error);
            }

            @Override
            public void onCompleted() {}
          });
      assertEquals(Status.Code.CANCELLED, Status.fromThrowable(heard.get()).getCode());
    }
  }

  @Test
  void theApplicationIsCalledOnItsOwnExecutor() throws Exception {
    ExecutorService own = Executors.newSingleThreadExecutor(work -> new Thread(work, "own"));
    Decision no = Decision.newBuilder().setVerdict(Verdict.VERDICT_DO_NOT_RETRY).build();
    try (FakeRetryd fake = new FakeRetryd(question -> question.getAttemptsMade() == 1 ? FakeRetryd.retryAfter(1) : no);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build()) {
      Recorder recorder = new Recorder();
      ClientCall<StringValue, StringValue> call =
          start(service.through(retryd), CallOptions.DEFAULT.withExecutor(own), recorder);
      call.request(2);
      say(call);
      recorder.closed.get();
      assertEquals(List.of("own", "own"), recorder.threads);
    } finally {
      own.shutdownNow();
    }
  }

  @Test
  void streamsPassUntouched() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE); Retryd retryd = fake.client().build()) {
      for (MethodDescriptor.MethodType type : MethodDescriptor.MethodType.values()) {
        FakeChannel channel = new FakeChannel();
        ClientCall<?, ?> call = retryd.interceptor()
            .interceptCall(Run.METHOD.toBuilder().setType(type).build(), CallOptions.DEFAULT, channel);
        assertEquals(type != MethodDescriptor.MethodType.UNARY, call == channel.made, type.name());
      }
    }
  }

  @Test
  void ownRulesThatFailRepeatNothing() throws Exception {
    Decision observed = FakeRetryd.retryAfter(1).toBuilder().setShadow(true).build();
    try (FakeRetryd fake = new FakeRetryd(question -> observed);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().ownRules((attempt, decision) -> {
          throw new IllegalStateException("of the caller");
        }).build()) {
      assertEquals("of the server", failure(charge(service.through(retryd), CallOptions.DEFAULT)).getDescription());
      assertEquals(1, service.arrivals.size());
    }
  }

  @Test
  void ownRulesWithoutAnAnswerRepeatNothing() throws Exception {
    Decision observed = FakeRetryd.retryAfter(1).toBuilder().setShadow(true).build();
    try (FakeRetryd fake = new FakeRetryd(question -> observed);
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().ownRules((attempt, decision) -> null).build()) {
      assertEquals("of the server", failure(charge(service.through(retryd), CallOptions.DEFAULT)).getDescription());
    }
  }

  @Test
  void anEmptyKeyIsNone() throws Exception {
    Metadata.Key<String> key = Metadata.Key.of("idempotency-key", Metadata.ASCII_STRING_MARSHALLER);
    Operation charge = Operation.DEFAULT.withKeyHeader("idempotency-key");
    for (String value : List.of("", "k1")) {
      try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
          FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK);
          Retryd retryd = fake.client().operation(Run.METHOD.getFullMethodName(), charge).build()) {
        Metadata headers = new Metadata();
        headers.put(key, value);
        Channel channel =
            ClientInterceptors.intercept(service.through(retryd), MetadataUtils.newAttachHeadersInterceptor(headers));
        charge(channel, CallOptions.DEFAULT).get();
        assertEquals(!value.isEmpty(), FakeRetryd.next(fake.questions).getIdempotency().getKeySent());
      }
    }
  }

  @Test
  void anInterceptorThatCallsAgainLeavesNothingProven() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK);
        Retryd retryd = fake.client().build()) {
      ManagedChannel closed =
          Grpc.newChannelBuilder("127.0.0.1:1", InsecureChannelCredentials.create()).build();
      try {
        // The service has worked on the first; the second finds nobody.
        ClientInterceptor again = new ClientInterceptor() {
          @Override
          public <ReqT, RespT> ClientCall<ReqT, RespT> interceptCall(
              MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel next) {
            if (service.arrivals.isEmpty()) {
              ClientCalls.futureUnaryCall(next.newCall(Run.METHOD, options), StringValue.of("do"));
              while (service.arrivals.isEmpty()) {
                Thread.onSpinWait();
              }
              return closed.newCall(method, options);
            }
            return next.newCall(method, options);
          }
        };
        charge(ClientInterceptors.intercept(service.channel, again, retryd.interceptor()), CallOptions.DEFAULT).get();
        assertEquals(Evidence.EVIDENCE_UNSPECIFIED, FakeRetryd.next(fake.questions).getEvidence());
      } finally {
        closed.shutdownNow();
      }
    }
  }

  @Test
  void aGrantAfterTheEndIsGivenBack() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE); Retryd retryd = fake.client().build()) {
      RetryContext told = RetryContext.newBuilder().setTenant("shop-1").setOperation("charge").setCallId("1").setAttemptsMade(2).build();
      retryd.judge().tell(told, new Throttle());
      assertGivenBack(told, FakeRetryd.next(fake.releases));
    }
  }

  @Test
  void aContextThatIsCancelledEndsALaterWaitToo() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(
            question -> FakeRetryd.retryAfter(question.getAttemptsMade() == 1 ? 1 : 1_800_000));
        FakeService service = new FakeService(Answer.UNAVAILABLE);
        Retryd retryd = fake.client().build();
        Context.CancellableContext context = Context.current().withCancellation()) {
      ListenableFuture<StringValue> answer =
          context.call(() -> charge(service.through(retryd), CallOptions.DEFAULT));
      FakeRetryd.next(fake.questions);
      RetryContext second = FakeRetryd.next(fake.questions);
      context.cancel(null);
      assertEquals("of the server", failure(answer).getDescription());
      assertGivenBack(second, FakeRetryd.next(fake.releases));
    }
  }

  @Test
  void aHintThatCannotBeToldIsNone() {
    com.google.rpc.Status status = com.google.rpc.Status.newBuilder()
        .addDetails(Any.pack(RetryInfo.newBuilder()
            .setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(1).setNanos(-1)).build()))
        .build();
    Metadata trailers = new Metadata();
    trailers.put(Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER), status.toByteArray());
    assertEquals(Optional.empty(), Failures.hint(trailers));
  }

  @Test
  void aCallSaysWhoseItIs() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK);
        Retryd retryd = fake.client().build()) {
      CallOptions options = CallOptions.DEFAULT.withOption(Retryd.TENANT, "shop-2").withOption(Retryd.OPERATION, "charge");
      charge(service.through(retryd), options).get();
      RetryContext question = FakeRetryd.next(fake.questions);
      assertEquals("shop-2 charge", question.getTenant() + " " + question.getOperation());
    }
  }

  @Test
  void manyCallsAtOnceAreAllCounted() throws Exception {
    int calls = 300;
    Usage told;
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE);
        FakeService service = new FakeService(Answer.OK);
        FakeService flaky = new FakeService(refusals(calls))) {
      try (Retryd retryd = fake.client().build()) {
        List<ListenableFuture<StringValue>> answers = new ArrayList<>();
        for (int call = 0; call < calls; call++) {
          answers.add(charge(flaky.through(retryd), CallOptions.DEFAULT));
          answers.add(charge(service.through(retryd), CallOptions.DEFAULT));
        }
        for (ListenableFuture<StringValue> answer : answers) {
          answer.get();
        }
      }
      told = fake.usage();
      assertEquals(2 * calls, flaky.arrivals.size());
    }
    assertEquals(2 * calls, told.getRequests());
    assertEquals(2 * calls, told.getFirstTrySuccesses() + told.getRetriedSuccesses());
    assertEquals(told.getRetriedSuccesses(), told.getRetriedTransient());
    assertTrue(0 < told.getRetriedSuccesses());
  }

  @Test
  void nothingIsLeftRunning() throws Exception {
    try (FakeRetryd fake = new FakeRetryd(AT_ONCE); FakeService service = new FakeService(Answer.UNAVAILABLE, Answer.OK)) {
      try (Retryd retryd = fake.client().build()) {
        charge(service.through(retryd), CallOptions.DEFAULT).get();
      }
    }
    while (Thread.getAllStackTraces().keySet().stream().anyMatch(thread -> thread.getName().startsWith("retryd"))) {
      Thread.sleep(50);
    }
  }

  private static Answer[] refusals(int count) {
    Answer[] script = new Answer[count + 1];
    Arrays.fill(script, Answer.UNAVAILABLE);
    script[count] = Answer.OK;
    return script;
  }

  private static ListenableFuture<StringValue> charge(Channel channel, CallOptions options) {
    return ClientCalls.futureUnaryCall(channel.newCall(Run.METHOD, options), StringValue.of("do"));
  }

  private static ClientCall<StringValue, StringValue> start(Channel channel, CallOptions options, Recorder recorder) {
    ClientCall<StringValue, StringValue> call = channel.newCall(Run.METHOD, options);
    call.start(recorder, new Metadata());
    return call;
  }

  private static void say(ClientCall<StringValue, StringValue> call) {
    call.sendMessage(StringValue.of("do"));
    call.halfClose();
  }

  private static Status failure(ListenableFuture<StringValue> answer) {
    Throwable error = assertThrows(ExecutionException.class, answer::get).getCause();
    return ((StatusRuntimeException) error).getStatus();
  }

  private static void assertGivenBack(RetryContext question, ReleaseRetriesRequest release) {
    assertEquals(question.getCallId(), release.getDecided().getCallId());
    assertEquals(question.getAttemptsMade(), release.getDecided().getAttemptsMade());
    assertEquals(1, release.getUnused());
  }

  private static final class Recorder extends ClientCall.Listener<StringValue> {
    final List<String> events = new ArrayList<>();
    final List<String> threads = new ArrayList<>();
    final CompletableFuture<Status> closed = new CompletableFuture<>();

    @Override
    public void onHeaders(Metadata headers) {
      note("headers " + headers.get(FakeService.ANSWERED));
    }

    @Override
    public void onMessage(StringValue message) {
      note(message.getValue());
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      note("closed");
      closed.complete(status);
    }

    private void note(String event) {
      events.add(event);
      threads.add(Thread.currentThread().getName());
    }
  }

  private static final class FakeChannel extends Channel {
    ClientCall<?, ?> made;

    @Override
    public <ReqT, RespT> ClientCall<ReqT, RespT> newCall(MethodDescriptor<ReqT, RespT> method, CallOptions options) {
      ClientCall<ReqT, RespT> call = new UnusedCall<>();
      made = call;
      return call;
    }

    @Override
    public String authority() {
      return "fake";
    }
  }

  private static final class UnusedCall<ReqT, RespT> extends ClientCall<ReqT, RespT> {
    @Override
    public void start(Listener<RespT> listener, Metadata headers) {}

    @Override
    public void request(int messages) {}

    @Override
    public void cancel(String message, Throwable cause) {}

    @Override
    public void halfClose() {}

    @Override
    public void sendMessage(ReqT message) {}
  }
}

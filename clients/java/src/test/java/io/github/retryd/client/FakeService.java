package io.github.retryd.client;

import com.google.protobuf.StringValue;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.InsecureServerCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A service whose every attempt is answered by a script: see {@link Answer}. */
final class FakeService implements AutoCloseable {
  static final Metadata.Key<String> ANSWERED = Metadata.Key.of("answered", Metadata.ASCII_STRING_MARSHALLER);

  /** One attempt's answer: response headers, so many messages, and a status. */
  record Answer(int messages, Status status) {
    static final Answer OK = new Answer(1, Status.OK);
    static final Answer UNAVAILABLE = new Answer(0, Status.UNAVAILABLE.withDescription("of the server"));
  }

  /** What arrived, attempt by attempt. */
  final List<Metadata> arrivals = new CopyOnWriteArrayList<>();
  final List<StringValue> requests = new CopyOnWriteArrayList<>();
  final ManagedChannel channel;
  private final Server server;

  /** The last answer holds for all further attempts. */
  FakeService(Answer... script) throws IOException {
    // On the wire a unary method and one that streams its answer are alike: so the server can send what it must not.
    MethodDescriptor<StringValue, StringValue> method =
        Run.METHOD.toBuilder().setType(MethodDescriptor.MethodType.SERVER_STREAMING).build();
    server = Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
        .addService(ServerServiceDefinition.builder("payments.v1.Payments")
            .addMethod(method, (call, headers) -> answer(call, headers, script)).build())
        .build().start();
    channel = Grpc.newChannelBuilder("127.0.0.1:" + server.getPort(), InsecureChannelCredentials.create()).build();
  }

  /** The way to the service, with a kit on it. */
  Channel through(Retryd retryd) {
    return ClientInterceptors.intercept(channel, retryd.interceptor());
  }

  @Override
  public void close() {
    channel.shutdownNow();
    server.shutdownNow();
  }

  private ServerCall.Listener<StringValue> answer(
      ServerCall<StringValue, StringValue> call, Metadata headers, Answer[] script) {
    int attempt;
    synchronized (arrivals) {
      attempt = arrivals.size();
      arrivals.add(headers);
    }
    Answer answer = script[Math.min(attempt, script.length - 1)];
    call.request(2);
    return new ServerCall.Listener<>() {
      @Override
      public void onMessage(StringValue message) {
        requests.add(message);
      }

      @Override
      public void onHalfClose() {
        Metadata answered = new Metadata();
        answered.put(ANSWERED, String.valueOf(attempt + 1));
        call.sendHeaders(answered);
        for (int message = 0; message < answer.messages(); message++) {
          call.sendMessage(StringValue.of("answer " + (attempt + 1)));
        }
        call.close(answer.status(), new Metadata());
      }
    };
  }
}

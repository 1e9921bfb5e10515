package io.github.retryd.client;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.util.function.Function;

/** A unary call as the application sees it. Its request is kept until it is complete; {@link Attempts} do the rest. */
final class RetryingCall<ReqT, RespT> extends ClientCall<ReqT, RespT> {
  private final Function<Listener<RespT>, Attempts<ReqT, RespT>> start;
  private volatile Attempts<ReqT, RespT> attempts;
  private Metadata headers;
  private ReqT message;
  private boolean compressed = true;

  RetryingCall(Retryd retryd, MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel channel) {
    Context context = Context.current();
    this.start = listener -> new Attempts<>(retryd, method, options, channel, context, listener);
  }

  @Override
  public void start(Listener<RespT> listener, Metadata headers) {
    if (attempts != null) {
      throw new IllegalStateException("the call was started before");
    }
    this.headers = headers;
    attempts = start.apply(listener);
  }

  @Override
  public void setMessageCompression(boolean enabled) {
    compressed = enabled;
  }

  @Override
  public boolean isReady() {
    return message == null;
  }

  @Override
  public void sendMessage(ReqT message) {
    this.message = message;
  }

  @Override
  public void halfClose() {
    attempts.begin(new Request<>(headers, message, compressed));
  }

  @Override
  public void request(int messages) {
    attempts.outgoing().request(messages);
  }

  @Override
  public void cancel(String message, Throwable cause) {
    if (attempts != null) {
      attempts.cancel(message, cause);
    }
  }

  @Override
  public Attributes getAttributes() {
    return attempts == null ? Attributes.EMPTY : attempts.outgoing().attributes();
  }
}

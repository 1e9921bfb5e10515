package io.github.retryd.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.MethodDescriptor;

/** Puts a {@link RetryingCall} in the place of every unary call. */
final class RetryInterceptor implements ClientInterceptor {
  private final Retryd retryd;

  RetryInterceptor(Retryd retryd) {
    this.retryd = retryd;
  }

  @Override
  public <ReqT, RespT> ClientCall<ReqT, RespT> interceptCall(
      MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel next) {
    return method.getType() == MethodDescriptor.MethodType.UNARY
        ? new RetryingCall<>(retryd, method, options, next)
        : next.newCall(method, options);
  }
}

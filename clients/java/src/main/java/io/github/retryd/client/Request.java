package io.github.retryd.client;

import io.grpc.ClientCall;
import io.grpc.Metadata;
import java.io.InputStream;

/** What the application has said, to be said again with each attempt. {@code message} is null if there is none. */
record Request<ReqT>(Metadata headers, ReqT message, boolean compressed) {
  /** A message that is read while it is sent cannot be sent again. */
  boolean isReplayable() {
    return !(message instanceof InputStream);
  }

  /** The whole request. */
  <RespT> void send(ClientCall<ReqT, RespT> call, ClientCall.Listener<RespT> listener) {
    // What lies beneath adds headers of its own to each attempt.
    Metadata copy = new Metadata();
    copy.merge(headers);
    call.start(listener, copy);
    if (!compressed) {
      call.setMessageCompression(false);
    }
    if (message != null) {
      call.sendMessage(message);
    }
    call.halfClose();
  }
}

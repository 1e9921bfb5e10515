package io.github.retryd.client;

import io.grpc.Attributes;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;

/**
 * What the library did for one attempt. This, and no text of a status, proves what reached the server, and which part of
 * a failure the server itself has said.
 */
final class AttemptTrace extends ClientStreamTracer.Factory {
  private volatile Stream last;
  private volatile boolean repeated;

  @Override
  public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
    // The server has not touched what was repeated transparently. A retryPolicy, hedging, or an interceptor that calls
    // again repeats other streams too.
    repeated |= 0 < info.getPreviousAttempts() || info.isHedging() || last != null && !info.isTransparentRetry();
    last = new Stream();
    return last;
  }

  /** The library has said what it does: it is there, and has not repeated anything that the server may have seen. */
  boolean isKnown() {
    return last != null && !repeated;
  }

  /** A connection was ready and took the request: some of it may have been sent. */
  boolean isOpened() {
    return last != null && last.opened;
  }

  /** A whole message of the response has arrived. */
  boolean hasMessage() {
    return last != null && last.message;
  }

  /** The status came from the server, with whatever text. Without trailers the library made it. */
  boolean hasTrailers() {
    return last != null && last.trailers;
  }

  private static final class Stream extends ClientStreamTracer {
    private volatile boolean opened;
    private volatile boolean message;
    private volatile boolean trailers;

    @Override
    public void streamCreated(Attributes transport, Metadata headers) {
      opened = true;
    }

    @Override
    public void inboundMessageRead(int number, long wireSize, long size) {
      message = true;
    }

    @Override
    public void inboundTrailers(Metadata trailers) {
      this.trailers = true;
    }
  }
}

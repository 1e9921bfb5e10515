package io.github.retryd.client;

import io.grpc.Attributes;
import io.grpc.ClientCall;

/** What the application does to its call, passed on to the attempt that is under way, and to those that follow. */
final class Outgoing<ReqT, RespT> {
  // Guarded by this, while which is held nothing foreign is called.
  private int requested;
  private Cancellation cancellation;
  private Attempt<RespT> attempt;
  private ClientCall<ReqT, RespT> running;

  private record Cancellation(String message, Throwable cause) {}

  /** The application takes so many messages more. */
  void request(int messages) {
    ClientCall<ReqT, RespT> now;
    synchronized (this) {
      requested += messages;
      now = running;
    }
    if (now != null) {
      now.request(messages);
    }
  }

  /** The application gives the call up. False if it had done so before. */
  boolean cancel(String message, Throwable cause) {
    ClientCall<ReqT, RespT> now;
    synchronized (this) {
      if (cancellation != null) {
        return false;
      }
      cancellation = new Cancellation(message, cause);
      now = running;
    }
    if (now != null) {
      now.cancel(message, cause);
    }
    return true;
  }

  /** An attempt begins. It is not open to the application before it is {@link #started}. */
  synchronized void begin(Attempt<RespT> next) {
    attempt = next;
    running = null;
  }

  /** The attempt has its request: from now on all that the application does reaches it; here is what came before. */
  void started(Attempt<RespT> started, ClientCall<ReqT, RespT> call) {
    int due;
    Cancellation cancelled;
    synchronized (this) {
      // It may have ended meanwhile, and another may have followed.
      if (attempt == started) {
        running = call;
      }
      due = requested;
      cancelled = cancellation;
    }
    if (0 < due) {
      call.request(due);
    }
    if (cancelled != null) {
      call.cancel(cancelled.message(), cancelled.cause());
    }
  }

  synchronized boolean isCancelled() {
    return cancellation != null;
  }

  Attributes attributes() {
    ClientCall<ReqT, RespT> now;
    synchronized (this) {
      now = running;
    }
    return now == null ? Attributes.EMPTY : now.getAttributes();
  }
}

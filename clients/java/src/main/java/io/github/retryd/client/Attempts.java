package io.github.retryd.client;

import com.google.common.util.concurrent.MoreExecutors;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.RetryContext;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The attempts of one call, one after the other. The application hears of one of them only: the one that ends the call.
 */
final class Attempts<ReqT, RespT> {
  private static final Logger log = Logger.getLogger(Attempts.class.getName());

  /** Nothing is sent yet; an attempt is under way; its failure is judged; the next one is waited for. */
  private enum Phase { UNSENT, SENDING, ASKING, WAITING, OVER }

  private final Retryd retryd;
  private final MethodDescriptor<ReqT, RespT> method;
  private final CallOptions options;
  private final Channel channel;
  private final Context context;
  private final Context.CancellationListener cancelled = context -> giveUp();
  private final Executor executor;
  private final CallFacts facts;
  private final Throttle throttle;
  private final ClientCall.Listener<RespT> listener;
  private final Outgoing<ReqT, RespT> outgoing = new Outgoing<>();
  private Request<ReqT> request;

  // Guarded by this, while which is held nothing foreign is called.
  private Phase phase = Phase.UNSENT;
  private int attempts;
  private Attempt<RespT> attempt;
  private FailureClass failureClass = FailureClass.FAILURE_CLASS_UNSPECIFIED;
  private Judge.Grant grant;
  private Waits.Wait wait;

  Attempts(Retryd retryd, MethodDescriptor<ReqT, RespT> method, CallOptions options, Channel channel, Context context,
      ClientCall.Listener<RespT> listener) {
    this.retryd = retryd;
    this.method = method;
    this.options = options;
    this.channel = channel;
    this.context = context;
    this.listener = listener;
    this.executor = options.getExecutor() == null ? retryd.executor() : options.getExecutor();
    this.facts = new CallFacts(retryd.settings(), method, options, context);
    this.throttle = retryd.throttles().of(channel.authority());
  }

  /** Sends the first attempt. */
  void begin(Request<ReqT> request) {
    this.request = request;
    context.run(this::send);
  }

  /** The application's demand, and its cancellation, of whatever attempt is under way. */
  Outgoing<ReqT, RespT> outgoing() {
    return outgoing;
  }

  /** The application gives the call up. */
  void cancel(String message, Throwable cause) {
    if (!outgoing.cancel(message, cause)) {
      return;
    }
    boolean unsent;
    synchronized (this) {
      unsent = phase == Phase.UNSENT;
      phase = unsent ? Phase.OVER : phase;
    }
    if (unsent) {
      Status status = Status.CANCELLED.withDescription(message).withCause(cause);
      executor.execute(context.wrap(() -> listener.onClose(status, new Metadata())));
    }
    giveUp();
  }

  /** Sends the next attempt, unless the call was given up meanwhile. */
  private void send() {
    Attempt<RespT> next = new Attempt<>(listener, retryd.settings().attemptTimeout(), this::closed);
    boolean first;
    synchronized (this) {
      if (phase != Phase.UNSENT && phase != Phase.WAITING) {
        return;
      }
      first = phase == Phase.UNSENT;
      phase = Phase.SENDING;
      attempts++;
      attempt = next;
      grant = null;
      wait = null;
    }
    // While an attempt is under way, it hears of the context by itself.
    context.removeListener(cancelled);
    outgoing.begin(next);
    if (first) {
      retryd.usage().started(facts.name());
      retryd.leases().keep(facts.name(), facts.operation().lease());
    }
    ClientCall<ReqT, RespT> call = channel.newCall(method, next.options(options));
    try {
      request.send(call, next);
    } catch (RuntimeException | Error fault) {
      call.cancel("the request could not be sent", fault);
      throw fault;
    }
    outgoing.started(next, call);
  }

  private void closed(Attempt<RespT> ended) {
    if (ended.status().isOk()) {
      succeeded(ended);
      return;
    }
    boolean givenUp = outgoing.isCancelled() || context.isCancelled();
    RetryContext.Builder asked = facts.question(ended, request, givenUp).setRuntimeDraining(retryd.isDraining());
    RetryContext question;
    boolean over;
    synchronized (this) {
      if (phase != Phase.SENDING) {
        return;
      }
      question = asked.setAttemptsMade(attempts).build();
      // Who cancels from here on finds the call in the next phase, and ends it.
      over = givenUp || outgoing.isCancelled() || facts.isDeadlinePassed() || ended.isDelivered();
      phase = over ? Phase.OVER : Phase.ASKING;
    }
    if (over) {
      retryd.judge().tell(question, throttle);
      ended.end();
      return;
    }
    // Called at once if the context is cancelled already.
    context.addListener(cancelled, MoreExecutors.directExecutor());
    if (isOver()) {
      // Given up in between. A context may outlive its calls by far.
      context.removeListener(cancelled);
    }
    retryd.judge().next(question, throttle).thenAccept(granted -> judged(ended, granted));
  }

  private void succeeded(Attempt<RespT> ended) {
    boolean atOnce;
    synchronized (this) {
      phase = Phase.OVER;
      atOnce = attempts == 1;
    }
    throttle.success();
    if (atOnce) {
      retryd.usage().succeededAtOnce(facts.name());
    } else {
      retryd.usage().succeededLater(facts.name(), failureClass);
    }
    ended.end();
  }

  private void judged(Attempt<RespT> failed, Optional<Judge.Grant> judged) {
    Phase after;
    synchronized (this) {
      if (phase == Phase.ASKING) {
        phase = judged.isPresent() ? Phase.WAITING : Phase.OVER;
        grant = judged.orElse(null);
        failureClass = judged.map(Judge.Grant::failureClass).orElse(failureClass);
        after = phase;
      } else {
        after = null;
      }
    }
    // Nobody waits any more.
    if (after == null) {
      judged.ifPresent(granted -> granted.giveBack().run());
    } else if (after == Phase.OVER) {
      end(failed);
    } else {
      judged.ifPresent(this::await);
    }
  }

  private void await(Judge.Grant granted) {
    Waits.Wait begun = retryd.waits().begin(
        facts.withinDeadline(granted.delay()), () -> executor.execute(context.wrap(this::resume)), this::giveUp);
    synchronized (this) {
      if (grant == granted && phase == Phase.WAITING) {
        wait = begun;
        return;
      }
    }
    begun.stop();
  }

  /** The wait is over. */
  private void resume() {
    Waits.Wait ended;
    Attempt<RespT> failed;
    synchronized (this) {
      ended = wait;
      failed = attempt;
    }
    if (ended != null) {
      ended.stop();
    }
    if (facts.isDeadlinePassed()) {
      giveUp();
      return;
    }
    try {
      send();
    } catch (RuntimeException | Error fault) {
      log.log(Level.WARNING, "the next attempt could not be sent", fault);
      synchronized (this) {
        phase = Phase.OVER;
      }
      end(failed);
    }
  }

  /** Ends a call that is judged or waits; an attempt under way ends by itself. */
  private void giveUp() {
    Judge.Grant unused;
    Waits.Wait stopped;
    Attempt<RespT> failed;
    synchronized (this) {
      if (phase != Phase.ASKING && phase != Phase.WAITING) {
        return;
      }
      phase = Phase.OVER;
      unused = grant;
      stopped = wait;
      failed = attempt;
    }
    if (stopped != null) {
      stopped.stop();
    }
    if (unused != null) {
      unused.giveBack().run();
    }
    end(failed);
  }

  private synchronized boolean isOver() {
    return phase == Phase.OVER;
  }

  private void end(Attempt<RespT> last) {
    context.removeListener(cancelled);
    executor.execute(context.wrap(last::end));
  }
}

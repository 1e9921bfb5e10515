package io.github.retryd.client;

import com.google.common.util.concurrent.MoreExecutors;
import io.github.retryd.v1.FailureClass;
import io.github.retryd.v1.RetryContext;
import io.grpc.Attributes;
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
  private Request<ReqT> request;

  // Guarded by this, while which is held nothing foreign is called.
  private Phase phase = Phase.UNSENT;
  private Cancellation cancellation;
  private int requested;
  private int attempts;
  private Attempt<RespT> attempt;
  private ClientCall<ReqT, RespT> sent;
  private FailureClass failureClass = FailureClass.FAILURE_CLASS_UNSPECIFIED;
  private Judge.Grant grant;
  private Retryd.Wait wait;

  private record Cancellation(String message, Throwable cause) {}

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
    this.throttle = retryd.throttle(channel.authority());
  }

  /** Sends the first attempt. */
  void begin(Request<ReqT> request) {
    this.request = request;
    context.run(this::send);
  }

  /** The application takes so many messages more. */
  void request(int messages) {
    ClientCall<ReqT, RespT> running;
    synchronized (this) {
      requested += messages;
      running = sent;
    }
    if (running != null) {
      running.request(messages);
    }
  }

  /** The application gives the call up. */
  void cancel(String message, Throwable cause) {
    Phase before;
    ClientCall<ReqT, RespT> running;
    synchronized (this) {
      if (cancellation != null) {
        return;
      }
      cancellation = new Cancellation(message, cause);
      before = phase;
      running = sent;
      if (phase == Phase.UNSENT) {
        phase = Phase.OVER;
      }
    }
    if (before == Phase.UNSENT) {
      Status status = Status.CANCELLED.withDescription(message).withCause(cause);
      executor.execute(context.wrap(() -> listener.onClose(status, new Metadata())));
    }
    if (before == Phase.SENDING && running != null) {
      running.cancel(message, cause);
    }
    giveUp();
  }

  Attributes attributes() {
    synchronized (this) {
      return sent == null ? Attributes.EMPTY : sent.getAttributes();
    }
  }

  /** Sends the next attempt, unless the call was given up meanwhile. */
  private void send() {
    Attempt<RespT> started = new Attempt<>(listener, retryd.settings().attemptTimeout(), this::closed);
    boolean first;
    synchronized (this) {
      if (phase != Phase.UNSENT && phase != Phase.WAITING) {
        return;
      }
      first = phase == Phase.UNSENT;
      phase = Phase.SENDING;
      attempts++;
      attempt = started;
      sent = null;
      grant = null;
      wait = null;
    }
    if (first) {
      retryd.usage().started(facts.name());
      retryd.leases().keep(facts.name(), facts.operation().lease());
    }
    ClientCall<ReqT, RespT> call = channel.newCall(method, started.options(options));
    try {
      request.send(call, started);
    } catch (RuntimeException | Error fault) {
      call.cancel("the request could not be sent", fault);
      throw fault;
    }
    hand(started, call);
  }

  /** From now on the application's own demand and cancellation reach the attempt; here is what came before. */
  private void hand(Attempt<RespT> started, ClientCall<ReqT, RespT> call) {
    int due;
    Cancellation cancelled;
    synchronized (this) {
      if (attempt == started) {
        sent = call;
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

  private void closed(Attempt<RespT> ended) {
    if (ended.status().isOk()) {
      succeeded(ended);
      return;
    }
    RetryContext question = question(ended);
    boolean over;
    synchronized (this) {
      if (phase != Phase.SENDING) {
        return;
      }
      over = isGivenUp() || facts.isDeadlinePassed() || ended.isDelivered();
      phase = over ? Phase.OVER : Phase.ASKING;
    }
    if (over) {
      retryd.judge().tell(question, throttle);
      context.removeListener(cancelled);
      ended.end();
      return;
    }
    if (question.getAttemptsMade() == 1) {
      context.addListener(cancelled, MoreExecutors.directExecutor());
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
      context.removeListener(cancelled);
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
    Retryd.Wait begun = retryd.await(
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
    Retryd.Wait ended;
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
    Retryd.Wait stopped;
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

  private void end(Attempt<RespT> last) {
    context.removeListener(cancelled);
    executor.execute(context.wrap(last::end));
  }

  private RetryContext question(Attempt<RespT> failed) {
    Failures.End end = Failures.End.OTHER;
    int made;
    synchronized (this) {
      made = attempts;
      if (failed.status().getCode() == Status.Code.CANCELLED && isGivenUp()) {
        end = Failures.End.CANCELLED_BY_CALLER;
      } else if (failed.isTimedOut() && !facts.isDeadlinePassed()) {
        end = Failures.End.ATTEMPT_TIMED_OUT;
      }
    }
    Failures.Described described = Failures.describe(failed.status(), failed.trace(), end);
    RetryContext.Builder question = facts.question(request.headers())
        .setAttemptsMade(made)
        .setBodyReplayable(request.isReplayable())
        .setFirstByteDelivered(failed.isDelivered())
        .setRuntimeDraining(retryd.isDraining())
        .setFailure(described.failure())
        .setEvidence(described.evidence());
    Failures.hint(failed.trailers()).ifPresent(question::setHint);
    return question.build();
  }

  private boolean isGivenUp() {
    return cancellation != null || context.isCancelled();
  }
}

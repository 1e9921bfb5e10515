import type { EventEmitter } from "node:events";
import {
  InterceptingCall,
  type InterceptingListener,
  type Interceptor,
  type InterceptorOptions,
  Metadata,
  type NextCall,
  type StatusObject,
  propagate,
  status,
} from "@grpc/grpc-js";
import { Call } from "./call.js";
import { describe } from "./grpc-evidence.js";
import type { Kit } from "./kit.js";
import * as overrides from "./overrides.js";

type Attempt = ReturnType<NextCall>;
type MessageContext = Parameters<Attempt["sendMessageWithContext"]>[0];

/** What an attempt brought. */
interface Outcome {
  headers?: Metadata;
  message?: unknown;
  status: StatusObject;
}

/** Repeats unary calls; streams pass untouched. */
export function interceptor(kit: Kit): Interceptor {
  return (options, nextCall) => {
    const { requestStream, responseStream } = options.method_definition;
    const isUnary = !requestStream && !responseStream;
    return new InterceptingCall(
      isUnary ? new RepeatedCall(kit, options, nextCall) : nextCall(options),
    );
  };
}

/**
 * A call that may be sent several times. It is held back until its message is complete, and the application sees only
 * the attempt that ends it.
 */
class RepeatedCall implements Attempt {
  readonly #kit: Kit;
  readonly #options: InterceptorOptions;
  readonly #nextCall: NextCall;
  readonly #call: Call;
  readonly #gaveUp = new AbortController();
  #metadata = new Metadata();
  #listener: Partial<InterceptingListener> = {};
  #message: [MessageContext, unknown] = [{}, undefined];
  #attempt: Attempt | undefined;
  #isUnderWay = false;
  #isOver = false;
  #target = "";
  #leaveParent = () => {};

  constructor(kit: Kit, options: InterceptorOptions, nextCall: NextCall) {
    this.#kit = kit;
    this.#options = options;
    serializeOnce(options.method_definition);
    this.#nextCall = nextCall;
    const { tenant, operation } = overrides.current();
    this.#call = new Call(kit, {
      tenant: tenant ?? kit.settings.tenant,
      operation: operation ?? options.method_definition.path.replace(/^\//, ""),
      target: () => this.#target,
      deadlineMs: deadlineMs(options),
      bodyReplayable: true,
      hasHeader: (name) => this.#metadata.get(name).length > 0,
      gaveUp: this.#gaveUp.signal,
    });
    if (inherits(options, propagate.CANCELLATION)) {
      const parent: EventEmitter | undefined = options.parent;
      const cancel = () => this.cancelWithStatus(status.CANCELLED, "Cancelled by parent call");
      parent?.once("cancelled", cancel);
      this.#leaveParent = () => void parent?.off("cancelled", cancel);
    }
  }

  start(metadata: Metadata, listener: Partial<InterceptingListener> = {}): void {
    // The application may use its metadata again: the next attempt must not carry the key of another call.
    this.#metadata = metadata.clone();
    this.#listener = listener;
  }

  sendMessageWithContext(context: MessageContext, message: unknown): void {
    this.#message = [context, message];
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  halfClose(): void {
    if (!this.#isOver) {
      this.#send();
    }
  }

  /** Every attempt reads at once; nothing is passed on before it is over. */
  startRead(): void {}

  cancelWithStatus(code: status, details: string): void {
    this.#gaveUp.abort();
    if (this.#isUnderWay) {
      this.#attempt?.cancelWithStatus(code, details);
    } else {
      this.#deliver({ status: { code, details, metadata: new Metadata() } });
    }
  }

  getPeer(): string {
    return this.#attempt?.getPeer() ?? "unknown";
  }

  getAuthContext(): ReturnType<Attempt["getAuthContext"]> {
    return this.#attempt?.getAuthContext() ?? null;
  }

  #send(): void {
    const deadline = this.#call.attempt();
    const attempt = this.#nextCall({ ...this.#options, deadline });
    // Before it starts a call has no other peer than the target of its channel.
    this.#target = attempt.getPeer();
    this.#attempt = attempt;
    this.#isUnderWay = true;
    const outcome: Partial<Outcome> = {};
    attempt.start(this.#metadata.clone(), {
      onReceiveMetadata: (headers) => void (outcome.headers = headers),
      onReceiveMessage: (message: unknown) => void (outcome.message = message),
      onReceiveStatus: (status) => {
        if (this.#isUnderWay && attempt === this.#attempt) {
          this.#isUnderWay = false;
          void this.#ended(attempt, { ...outcome, status }, deadline);
        }
      },
    });
    attempt.sendMessageWithContext(...this.#message);
    attempt.halfClose();
  }

  async #ended(attempt: Attempt, outcome: Outcome, attemptDeadlineMs: number): Promise<void> {
    if (outcome.status.code === status.OK) {
      this.#call.succeeded();
      this.#deliver(outcome);
      return;
    }
    const failed = describe({
      status: outcome.status,
      headersCame: outcome.headers !== undefined,
      streamOpened:
        attempt instanceof InterceptingCall ? undefined : attempt.getAuthContext() !== null,
      timedOut:
        outcome.status.code === status.DEADLINE_EXCEEDED &&
        attemptDeadlineMs < deadlineMs(this.#options) &&
        // A timer may go off a millisecond early.
        attemptDeadlineMs <= Date.now() + 1,
      gaveUp: this.#gaveUp.signal.aborted,
    });
    if ((await this.#call.failed(failed)) && !this.#isOver) {
      try {
        this.#send();
        return;
      } catch (error) {
        this.#kit.warn(`the call is not repeated: ${String(error)}`);
      }
    }
    this.#deliver(outcome);
  }

  /** Ends the call. What the application throws must not be mistaken for a failure of the kit. */
  #deliver({ headers, message, status }: Outcome): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#leaveParent();
    process.nextTick(() => {
      if (headers !== undefined) {
        this.#listener.onReceiveMetadata?.(headers);
      }
      this.#listener.onReceiveMessage?.(message ?? null);
      this.#listener.onReceiveStatus?.(status);
    });
  }
}

/**
 * Every attempt sends the same bytes, though the application may change its message meanwhile. grpc-js makes a
 * definition for each call, and serializes by it beneath all interceptors.
 */
function serializeOnce(definition: InterceptorOptions["method_definition"]): void {
  const serialize = definition.requestSerialize;
  let known: { message: unknown; bytes: Buffer } | undefined;
  definition.requestSerialize = (message) => {
    if (known === undefined || known.message !== message) {
      known = { message, bytes: serialize(message) };
    }
    return known.bytes;
  };
}

/** When the call must be over, in milliseconds since the epoch: its own deadline, or that of the call it serves. */
function deadlineMs(options: InterceptorOptions): number {
  const inherited = inherits(options, propagate.DEADLINE) && options.parent?.getDeadline();
  return Math.min(Number(options.deadline ?? Infinity), Number(inherited || Infinity));
}

function inherits({ propagate_flags = propagate.DEFAULTS }: InterceptorOptions, flag: propagate) {
  return (propagate_flags & flag) !== 0;
}

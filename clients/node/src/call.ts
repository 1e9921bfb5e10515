import { randomUUID } from "node:crypto";
import { type MessageInitShape, create } from "@bufbuild/protobuf";
import {
  Evidence,
  type FailureClass,
  type FailureSchema,
  type RetryContext,
  RetryContextSchema,
  type ServerHintSchema,
  Verdict,
} from "../gen/retryd/v1/retryd_pb.js";
import type { Kit } from "./kit.js";
import { type Throttle, throttles } from "./throttle.js";
import { fromDuration, sleep, toDuration, unlessAborted } from "./time.js";
import { counts, isAbsence, unaskedWaitMs } from "./unasked.js";

/** With less left there is no time to ask: a question has a tenth of it, and at least 1 ms. */
const REMAINING_LEAST_MS = 10;

/** What is known of a call before its first attempt. */
export interface CallFacts {
  tenant: string;
  operation: string;
  /** Whom it calls: every target has a local throttle. Known once an attempt was made. */
  target(): string;
  /** When the caller's deadline passes, in milliseconds since the epoch; Infinity without one. */
  deadlineMs: number;
  bodyReplayable: boolean;
  /** Of the request that is sent. */
  hasHeader(name: string): boolean;
  /** The caller has given the call up. */
  gaveUp: AbortSignal;
}

/** What the library knows of a failed attempt. */
export interface Failed {
  failure: MessageInitShape<typeof FailureSchema>;
  evidence?: Evidence;
  hint?: MessageInitShape<typeof ServerHintSchema>;
}

/** A retry that may be sent: after which wait, and what to do with the grant if it is not sent. */
interface Granted {
  waitMs: number;
  giveBack(): void;
}

/** One call, from its first attempt to its last: counts them, and says whether there is a next one. */
export class Call {
  readonly #kit: Kit;
  readonly #facts: CallFacts;
  readonly #id = randomUUID();
  #attemptsMade = 0;
  #failureClass: FailureClass | undefined;

  constructor(kit: Kit, facts: CallFacts) {
    this.#kit = kit;
    this.#facts = facts;
  }

  /** An attempt is sent. Returns when it must be over, in milliseconds since the epoch. */
  attempt(): number {
    const { tenant, operation, deadlineMs } = this.#facts;
    this.#attemptsMade += 1;
    if (this.#attemptsMade === 1) {
      this.#kit.usage.callStarted(tenant, operation);
      this.#kit.lease(tenant, operation)?.renew();
    }
    return Math.min(deadlineMs, Date.now() + (this.#kit.settings.attemptTimeoutMs ?? Infinity));
  }

  succeeded(): void {
    const { tenant, operation } = this.#facts;
    this.#throttle.success();
    if (this.#attemptsMade === 1) {
      this.#kit.usage.firstTrySucceeded(tenant, operation);
    } else {
      this.#kit.usage.retrySucceeded(tenant, operation, this.#failureClass);
    }
  }

  /** An attempt has failed. Waits and returns true if there shall be another. Never rejects. */
  async failed(failed: Failed): Promise<boolean> {
    try {
      const granting = this.#granted(this.#context(failed));
      const granted = await unlessAborted(granting, this.#facts.gaveUp);
      if (granted === undefined) {
        // A caller that gives up does not wait for the answer. What it may bring is given back.
        this.#kit.inBackground(async () => (await granting)?.giveBack());
        return false;
      }
      return await this.#waited(granted);
    } catch (error) {
      this.#kit.warn(`the call is not repeated: ${String(error)}`);
      return false;
    }
  }

  async #granted(context: RetryContext): Promise<Granted | undefined> {
    if (counts(context)) {
      this.#throttle.failure();
    }
    if (this.#facts.gaveUp.aborted || this.#remainingMs() < REMAINING_LEAST_MS) {
      this.#kit.tell(context);
      return undefined;
    }
    return this.#leased(context) ?? (await this.#asked(context));
  }

  #leased(context: RetryContext): Granted | undefined {
    const lease = this.#kit.lease(context.tenant, context.operation);
    const waitMs = lease && unaskedWaitMs(context, this.#throttle);
    const spent = waitMs === undefined ? undefined : lease?.spend(waitMs);
    if (spent === undefined || waitMs === undefined) {
      return undefined;
    }
    const { tenant, operation } = context;
    const grant = { case: "lease", value: spent.lease } as const;
    const giveBack = () =>
      void (spent.giveBack() || this.#kit.release({ tenant, operation, unused: 1, grant }));
    return { waitMs, giveBack };
  }

  async #asked(context: RetryContext): Promise<Granted | undefined> {
    const { askTimeoutMs, fallback, ownRules } = this.#kit.settings;
    const asked = await this.#kit.ask(context, Math.min(askTimeoutMs, this.#remainingMs() / 10));
    if ("ended" in asked) {
      const now = this.#withDeadline(context);
      const waitMs =
        fallback && isAbsence(asked.ended) ? unaskedWaitMs(now, this.#throttle) : undefined;
      return waitMs === undefined ? undefined : { waitMs, giveBack() {} };
    }
    const { decision } = asked;
    this.#failureClass = decision.failureClass;
    if (decision.verdict !== Verdict.RETRY && decision.verdict !== Verdict.DO_NOT_RETRY) {
      return undefined;
    }
    if (decision.shadow) {
      const waitMs = ownRules?.(context, decision);
      return waitMs === undefined ? undefined : { waitMs, giveBack() {} };
    }
    if (decision.verdict === Verdict.DO_NOT_RETRY) {
      return undefined;
    }
    const { tenant, operation, callId, attemptsMade } = context;
    const grant = { case: "decided", value: { callId, attemptsMade } } as const;
    const giveBack = () => this.#kit.release({ tenant, operation, unused: 1, grant });
    return { waitMs: fromDuration(decision.delay), giveBack };
  }

  /** Waits for the next attempt. Gives the grant back if the caller or its deadline comes first. */
  async #waited({ waitMs, giveBack }: Granted): Promise<boolean> {
    const { bodyReplayable, gaveUp } = this.#facts;
    const fits = waitMs < this.#remainingMs();
    const goesOn =
      bodyReplayable &&
      (await sleep(Math.min(waitMs, this.#remainingMs()), gaveUp)) &&
      fits &&
      0 < this.#remainingMs();
    if (!goesOn) {
      giveBack();
    }
    return goesOn;
  }

  #context({ failure, evidence, hint }: Failed): RetryContext {
    const { tenant, operation, bodyReplayable, hasHeader } = this.#facts;
    const { declared = false, keyHeader } = this.#kit.settings.operations[operation] ?? {};
    const keyRegistered = keyHeader !== undefined;
    const keySent = keyRegistered && hasHeader(keyHeader);
    const context = create(RetryContextSchema, {
      tenant,
      operation,
      attemptsMade: this.#attemptsMade,
      bodyReplayable,
      runtimeDraining: this.#kit.draining,
      idempotency: { declared, keyRegistered, keySent },
      failure,
      evidence: evidence ?? Evidence.UNSPECIFIED,
      ...(hint && { hint }),
      callId: this.#id,
    });
    return this.#withDeadline(context);
  }

  #withDeadline(context: RetryContext): RetryContext {
    const remainingMs = this.#remainingMs();
    return remainingMs === Infinity
      ? context
      : { ...context, remainingDeadline: toDuration(remainingMs) };
  }

  #remainingMs(): number {
    return this.#facts.deadlineMs - Date.now();
  }

  get #throttle(): Throttle {
    return throttles.of(this.#facts.target());
  }
}

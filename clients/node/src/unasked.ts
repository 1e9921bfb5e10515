import { status } from "@grpc/grpc-js";
import { FailureCategory, type RetryContext } from "../gen/retryd/v1/retryd_pb.js";
import * as hint from "./hint.js";
import type { Throttle } from "./throttle.js";
import { fromDuration } from "./time.js";

const BACKOFF_MS = 100;
const ATTEMPT_MS = 50;

/** Failures that prove by themselves that no server worked on the call. */
const UNTOUCHED = [
  FailureCategory.NAME_RESOLUTION,
  FailureCategory.CONNECT,
  FailureCategory.STREAM_REFUSED,
];

const RETRYABLE_CATEGORIES = [
  ...UNTOUCHED,
  FailureCategory.TLS_HANDSHAKE,
  FailureCategory.CONNECTION_RESET,
  FailureCategory.ATTEMPT_TIMEOUT,
];

const RETRYABLE_HTTP = [408, 421, 425, 429, 500, 502, 503, 504];

/** Whether the fallback may stand in for retryd, by the status that the question ended with. */
export function isAbsence(ended: status): boolean {
  return ended === status.UNAVAILABLE || ended === status.DEADLINE_EXCEEDED;
}

/**
 * The one retry without a question: how long to wait for it, in milliseconds; undefined if it is not allowed.
 * `throttle` has counted this failure already.
 */
export function unaskedWaitMs(failed: RetryContext, throttle: Throttle): number | undefined {
  const { forbids, unread, waitMs: hintMs } = hint.read(failed.hint);
  const mayRepeat =
    failed.attemptsMade === 1 &&
    failed.bodyReplayable &&
    !failed.firstByteDelivered &&
    !failed.runtimeDraining &&
    UNTOUCHED.includes(failed.failure?.category ?? FailureCategory.UNSPECIFIED) &&
    !forbids &&
    !unread &&
    throttle.grants();
  const waitMs = Math.max(1 + Math.floor(Math.random() * BACKOFF_MS), hintMs ?? 0);
  const remaining = failed.remainingDeadline;
  const fits = remaining === undefined || waitMs + ATTEMPT_MS < fromDuration(remaining);
  return mayRepeat && fits ? waitMs : undefined;
}

/** Whether the local throttle counts this failure: those of the default `retry_on`, and what a pushback forbids. */
export function counts({ failure, hint: given }: RetryContext): boolean {
  const { forbids, waitMs } = hint.read(given);
  if (forbids) {
    return true;
  }
  const category = failure?.category ?? FailureCategory.UNSPECIFIED;
  if (category !== FailureCategory.UNSPECIFIED && category !== FailureCategory.STATUS) {
    return RETRYABLE_CATEGORIES.includes(category);
  }
  switch (failure?.status.case) {
    case "httpStatus":
      return RETRYABLE_HTTP.includes(failure.status.value);
    case "grpcCode":
      return (
        failure.status.value === status.UNAVAILABLE ||
        (failure.status.value === status.RESOURCE_EXHAUSTED && waitMs !== undefined)
      );
    default:
      return false;
  }
}

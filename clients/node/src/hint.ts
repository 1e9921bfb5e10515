import type { ServerHint } from "../gen/retryd/v1/retryd_pb.js";
import { fromDuration } from "./time.js";

/** How far the kit itself can read a hint: retryd reads more. */
export interface ReadHint {
  /** The server said not to come back, or something unreadable where it would say so. */
  forbids: boolean;
  /** Something that only retryd reads, such as a date. */
  unread: boolean;
  /** The longest of the waits that were named; undefined if none was. */
  waitMs: number | undefined;
}

const PUSHBACK_MAX_MS = 2 ** 31 - 1;

export function read(hint: ServerHint | undefined): ReadHint {
  const pushback = hint?.grpcRetryPushbackMs;
  const pushbackMs = pushback === undefined ? undefined : readPushback(pushback);
  const retryAfter = hint?.retryAfterHeader?.replace(/^[ \t]+|[ \t]+$/g, "") ?? "";
  const isSeconds = /^[0-9]+$/.test(retryAfter);
  const waitsMs = [
    ...(hint?.retryAfter === undefined ? [] : [fromDuration(hint.retryAfter)]),
    ...(isSeconds ? [Number(retryAfter) * 1000] : []),
    ...(pushbackMs === undefined ? [] : [pushbackMs]),
  ];
  return {
    forbids: pushback !== undefined && pushbackMs === undefined,
    unread: retryAfter !== "" && !isSeconds,
    waitMs: waitsMs.length === 0 ? undefined : Math.max(...waitsMs),
  };
}

/** A pushback is digits without a sign or leading zeros; everything else forbids (gRFC A6). */
function readPushback(text: string): number | undefined {
  const isPlain = /^(0|[1-9][0-9]*)$/.test(text);
  return isPlain && Number(text) <= PUSHBACK_MAX_MS ? Number(text) : undefined;
}

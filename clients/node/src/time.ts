import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";

/** The longest time that a timer can be set to; a longer one would go off at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Of a Duration of protobuf. */
const SECONDS_MAX = 315_576_000_000n;

/**
 * Waits, and tells whether it waited to the end: `gaveUp` ends it at once. The timer holds the process, as a call under
 * way does: somebody waits for its outcome.
 */
export async function sleep(ms: number, gaveUp: AbortSignal): Promise<boolean> {
  if (gaveUp.aborted) {
    return false;
  }
  return new Promise((resolve) => {
    const end = (waited: boolean) => {
      clearTimeout(timer);
      gaveUp.removeEventListener("abort", abort);
      resolve(waited);
    };
    const abort = () => end(false);
    const timer = setTimeout(end, Math.min(ms, TIMER_MAX_MS), true);
    gaveUp.addEventListener("abort", abort);
  });
}

/** What `task` comes to; undefined as soon as `gaveUp` is aborted. */
export async function unlessAborted<T>(
  task: Promise<T>,
  gaveUp: AbortSignal,
): Promise<T | undefined> {
  let abort = () => {};
  const aborted = new Promise<undefined>((resolve) => (abort = () => resolve(undefined)));
  gaveUp.addEventListener("abort", abort);
  try {
    return await Promise.race([task, aborted]);
  } finally {
    gaveUp.removeEventListener("abort", abort);
  }
}

/** Whole milliseconds as a Duration, below zero too. */
export function toDuration(ms: number): Duration {
  const whole = Math.trunc(ms);
  return create(DurationSchema, {
    seconds: BigInt(Math.trunc(whole / 1000)),
    nanos: (whole % 1000) * 1_000_000,
  });
}

/** A Duration that retryd takes, from one that anybody may have sent; what is below zero is no time at all. */
export function inRange({ seconds, nanos }: Duration): Duration {
  const inNanos = Math.min(Math.max(0, nanos), 999_999_999);
  const inSeconds = seconds < SECONDS_MAX ? seconds : SECONDS_MAX;
  return seconds < 0n
    ? create(DurationSchema)
    : create(DurationSchema, { seconds: inSeconds, nanos: inNanos });
}

/** A Duration in milliseconds, rounded up, never below zero. */
export function fromDuration(duration: Duration | undefined): number {
  const { seconds, nanos } = duration ?? { seconds: 0n, nanos: 0 };
  return Math.max(0, Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000));
}

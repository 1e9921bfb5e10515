import { ChannelCredentials, credentials } from "@grpc/grpc-js";
import type { Decision, RetryContext } from "../gen/retryd/v1/retryd_pb.js";

/** How a client is set up. Times are in milliseconds. */
export interface Settings {
  /** Address of retryd, such as `dns:///retryd:50051`. */
  target: string;
  /** Whose budget pays, unless a call says otherwise. */
  tenant: string;
  /** The longest wait for an answer: 1 to 10 000, 20 by default. At most a tenth of the call's remaining time. */
  askTimeoutMs?: number;
  /** The longest time of one attempt, at least 1. None by default; the call's deadline holds anyway. */
  attemptTimeoutMs?: number;
  /** Whether one attempt that never reached a server may be repeated while retryd does not answer. True by default. */
  fallback?: boolean;
  /** How often usage is reported: 100 to 10 000, 5000 by default. */
  reportEveryMs?: number;
  /** What is known of single operations, by their names. */
  operations?: Record<string, Operation>;
  /** Decides in place of a policy that only observes (`shadow`). By default such calls are not repeated. */
  ownRules?: OwnRules;
  /** For the connection to retryd. Without TLS by default. */
  credentials?: ChannelCredentials;
}

export interface Operation {
  /** The operation may be repeated by its contract. */
  declared?: boolean;
  /** The header that carries its idempotency key. */
  keyHeader?: string;
  /** Take so many retries ahead: 1 to 1000. */
  lease?: number;
}

/** The delay in milliseconds before the next attempt, or undefined for none. */
export type OwnRules = (failed: RetryContext, decision: Decision) => number | undefined;

export type CheckedSettings = Required<Omit<Settings, "attemptTimeoutMs" | "ownRules">> &
  Pick<Settings, "attemptTimeoutMs" | "ownRules">;

/**
 * The settings with their defaults.
 *
 * @throws RangeError that names everything that is wrong.
 */
export function checked(settings: Settings): CheckedSettings {
  const full = {
    ...settings,
    askTimeoutMs: settings.askTimeoutMs ?? 20,
    fallback: settings.fallback ?? true,
    reportEveryMs: settings.reportEveryMs ?? 5000,
    operations: settings.operations ?? {},
    credentials: settings.credentials ?? credentials.createInsecure(),
  };
  const wrong: string[] = [];
  const check = (holds: boolean, complaint: string) => void (holds || wrong.push(complaint));
  check(isText(full.target), "`target` is required");
  check(isText(full.tenant), "`tenant` is required");
  check(isName(full.tenant ?? "", 128), "`tenant` has more than 128 bytes, or a control character");
  check(isWithin(full.askTimeoutMs, 1, 10_000), "`askTimeoutMs` is not 1 to 10 000");
  check(
    full.attemptTimeoutMs === undefined || isWithin(full.attemptTimeoutMs, 1, 2 ** 31 - 1),
    "`attemptTimeoutMs` is not 1 to 2 147 483 647",
  );
  check(isWithin(full.reportEveryMs, 100, 10_000), "`reportEveryMs` is not 100 to 10 000");
  for (const [name, { keyHeader, lease }] of Object.entries(full.operations)) {
    const path = `operations[${JSON.stringify(name)}]`;
    check(
      isText(name) && isName(name, 256),
      `the name of \`${path}\` is empty, has more than 256 bytes, or a control character`,
    );
    check(keyHeader === undefined || isText(keyHeader), `\`${path}.keyHeader\` is empty`);
    check(
      lease === undefined || (Number.isInteger(lease) && isWithin(lease, 1, 1000)),
      `\`${path}.lease\` is not 1 to 1000`,
    );
  }
  if (wrong.length > 0) {
    throw new RangeError(`retryd client: ${wrong.join("; ")}`);
  }
  return full;
}

/** Whether retryd takes this name. */
export function isName(text: string, bytesMax: number): boolean {
  return Buffer.byteLength(text) <= bytesMax && !/[\u0000-\u001f\u007f-\u009f]/.test(text);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && least <= value && value <= most;
}

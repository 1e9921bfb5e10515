import { Evidence, FailureCategory } from "../gen/retryd/v1/retryd_pb.js";
import type { Failed } from "./call.js";
import type { Trace } from "./http-trace.js";

/** How an attempt ended without a response. */
export interface FailedFetch {
  error: unknown;
  trace: Trace;
  /** It ran into the time-out of the attempt, or of the call. */
  timedOut: boolean;
  /** The caller had given it up. */
  gaveUp: boolean;
}

/** The parts of Node's and undici's errors that are read. */
interface Cause {
  code?: unknown;
  syscall?: unknown;
  errors?: Cause[];
}

/** Describes a response that is a failure. */
export function describeResponse({ status, headers }: Response): Failed {
  const retryAfterHeader = headers.get("retry-after");
  const dateHeader = headers.get("date") ?? "";
  const category = FailureCategory.STATUS;
  return {
    failure: { category, status: { case: "httpStatus", value: status } },
    ...(retryAfterHeader !== null && { hint: { retryAfterHeader, dateHeader } }),
  };
}

/** Describes an attempt that brought no response. */
export function describeError(failed: FailedFetch): Failed {
  const { timedOut, gaveUp, trace } = failed;
  const cause = causeOf(failed.error);
  const unsent = trace.isKnown && !trace.isSent ? beforeSending(cause) : undefined;
  if (!gaveUp && !timedOut && unsent !== undefined) {
    return { failure: { category: unsent }, evidence: Evidence.NOT_SENT };
  }
  const category = gaveUp
    ? FailureCategory.CANCELLED
    : timedOut
      ? FailureCategory.ATTEMPT_TIMEOUT
      : whileSending(cause);
  return { failure: { category }, evidence: Evidence.MAYBE_PROCESSED };
}

/** What keeps a connection from being made. */
function beforeSending({ code, syscall }: Cause): FailureCategory | undefined {
  if (syscall === "getaddrinfo") {
    return FailureCategory.NAME_RESOLUTION;
  }
  if (syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT") {
    return FailureCategory.CONNECT;
  }
  if (typeof code === "string" && /^ERR_TLS_CERT_|CERT|^UNABLE_TO_/.test(code)) {
    return FailureCategory.CERTIFICATE_REJECTED;
  }
  if (typeof code === "string" && /^(ERR_SSL_|EPROTO$)/.test(code)) {
    return FailureCategory.TLS_HANDSHAKE;
  }
  return undefined;
}

function whileSending({ code }: Cause): FailureCategory {
  switch (code) {
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return FailureCategory.ATTEMPT_TIMEOUT;
    case "UND_ERR_HEADERS_OVERFLOW":
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return FailureCategory.RESPONSE_UNREADABLE;
  }
  if (typeof code === "string" && code.startsWith("HPE_")) {
    return FailureCategory.PROTOCOL_VIOLATION;
  }
  // `fetch` itself refuses a request without any code: a bad port, an unknown scheme, too many redirects.
  return typeof code === "string" && /^E[A-Z]+$|^UND_ERR_SOCKET$|^ERR_SSL_/.test(code)
    ? FailureCategory.CONNECTION_RESET
    : FailureCategory.REQUEST_REJECTED;
}

/** Of several addresses that were tried, the first one's error stands for all. */
function causeOf(error: unknown): Cause {
  const cause = error instanceof Error ? (error.cause as Cause | undefined) : undefined;
  return cause?.errors?.[0] ?? cause ?? {};
}

import { type Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { RetryInfoSchema } from "../gen/google/rpc/details_pb.js";
import { Evidence, FailureCategory } from "../gen/retryd/v1/retryd_pb.js";
import type { Failed } from "./call.js";
import { detailOf } from "./details.js";
import { inRange } from "./time.js";

/** How an attempt ended, and what was seen of it. */
export interface EndedAttempt {
  status: StatusObject;
  /** Response headers had come before. */
  headersCame: boolean;
  /** An HTTP/2 stream had been opened for it; undefined if another interceptor stands between, which may say anything. */
  streamOpened: boolean | undefined;
  /** It ran into the time-out of the attempt, not of the call. */
  timedOut: boolean;
  /** The caller had given it up. */
  gaveUp: boolean;
}

type Kind = Pick<Failed, "evidence"> & { category: FailureCategory };

/** Describes a failed attempt. */
export function describe(ended: EndedAttempt): Failed {
  const { code, metadata } = ended.status;
  const { category, ...evidence } = kindOf(ended);
  // A server can send any number as its status; retryd takes those that gRPC defines.
  const value = code in status ? code : status.UNKNOWN;
  return {
    failure: { category, status: { case: "grpcCode", value } },
    ...evidence,
    ...hintOf(metadata),
  };
}

function kindOf(ended: EndedAttempt): Kind {
  if (ended.streamOpened === false) {
    return { category: unopened(ended), evidence: Evidence.NOT_SENT };
  }
  const evidence = Evidence.MAYBE_PROCESSED;
  if (ended.gaveUp) {
    return { category: FailureCategory.CANCELLED, evidence };
  }
  if (ended.timedOut) {
    return { category: FailureCategory.ATTEMPT_TIMEOUT, evidence };
  }
  if (ended.streamOpened && isOfLibrary(ended)) {
    // grpc-js keeps no code of a reset stream, but writes its own text for it.
    switch (ended.status.details) {
      case "Stream refused by server":
        return { category: FailureCategory.STREAM_REFUSED, evidence: Evidence.REFUSED };
      case "Connection dropped":
      case "read ECONNRESET":
        return { category: FailureCategory.CONNECTION_RESET, evidence };
    }
  }
  return { category: FailureCategory.STATUS };
}

/** Without a stream there was no server to write the text: it is grpc-js's own. */
function unopened({ status: { details }, gaveUp, timedOut }: EndedAttempt): FailureCategory {
  if (gaveUp) {
    return FailureCategory.CANCELLED;
  }
  if (timedOut) {
    return FailureCategory.ATTEMPT_TIMEOUT;
  }
  if (details.startsWith("Name resolution failed for target ")) {
    return FailureCategory.NAME_RESOLUTION;
  }
  if (/^No connection established\. Last error: (Error: )?connect E[A-Z]+ /.test(details)) {
    return FailureCategory.CONNECT;
  }
  return FailureCategory.STATUS;
}

/**
 * Whether grpc-js made the status. A status that came over the wire brings at least the `content-type` of the response,
 * in the headers before it or, where it came alone, beside it.
 */
function isOfLibrary({ status: { metadata }, headersCame }: EndedAttempt): boolean {
  return !headersCame && Object.keys(metadata.getMap()).length === 0;
}

function hintOf(metadata: Metadata): Pick<Failed, "hint"> {
  const pushback = metadata.get("grpc-retry-pushback-ms").join(",");
  const retryDelay = detailOf(metadata, RetryInfoSchema)?.retryDelay;
  const retryAfter = retryDelay && inRange(retryDelay);
  const hint = {
    ...(metadata.get("grpc-retry-pushback-ms").length > 0 && { grpcRetryPushbackMs: pushback }),
    ...(retryAfter && { retryAfter }),
  };
  return Object.keys(hint).length > 0 ? { hint } : {};
}

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Evidence, FailureCategory } from "../gen/retryd/v1/retryd_pb.js";
import { describeError } from "../src/http-evidence.js";

const { NOT_SENT, MAYBE_PROCESSED } = Evidence;
const UNSENT = { isKnown: true, isSent: false };
const SENT = { isKnown: true, isSent: true };
const UNSEEN = { isKnown: false, isSent: false };

// What the testbed cannot make: the codes of Node and undici, as they document them.
describe("an error of fetch", () => {
  for (const [cause, trace, category, evidence] of [
    [{ code: "EAI_AGAIN", syscall: "getaddrinfo" }, UNSENT, "NAME_RESOLUTION", NOT_SENT],
    [{ code: "UND_ERR_CONNECT_TIMEOUT" }, UNSENT, "CONNECT", NOT_SENT],
    [{ code: "EHOSTUNREACH", syscall: "connect" }, UNSENT, "CONNECT", NOT_SENT],
    [{ errors: [{ code: "ECONNREFUSED", syscall: "connect" }] }, UNSENT, "CONNECT", NOT_SENT],
    [{ code: "ECONNREFUSED", syscall: "connect" }, SENT, "CONNECTION_RESET", MAYBE_PROCESSED],
    [{ code: "ECONNREFUSED", syscall: "connect" }, UNSEEN, "CONNECTION_RESET", MAYBE_PROCESSED],
    [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, UNSENT, "CERTIFICATE_REJECTED", NOT_SENT],
    [{ code: "CERT_HAS_EXPIRED" }, UNSENT, "CERTIFICATE_REJECTED", NOT_SENT],
    [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, UNSENT, "CERTIFICATE_REJECTED", NOT_SENT],
    [{ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }, UNSENT, "CERTIFICATE_REJECTED", NOT_SENT],
    [{ code: "ERR_SSL_WRONG_VERSION_NUMBER" }, UNSENT, "TLS_HANDSHAKE", NOT_SENT],
    [
      { code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" },
      SENT,
      "CONNECTION_RESET",
      MAYBE_PROCESSED,
    ],
    // Nothing was seen of a request that an older undici sends over HTTP/2.
    [{ code: "UND_ERR_SOCKET" }, UNSENT, "CONNECTION_RESET", MAYBE_PROCESSED],
    [{ code: "UND_ERR_SOCKET" }, SENT, "CONNECTION_RESET", MAYBE_PROCESSED],
    [{ code: "EPIPE", syscall: "write" }, SENT, "CONNECTION_RESET", MAYBE_PROCESSED],
    [{ code: "UND_ERR_HEADERS_TIMEOUT" }, SENT, "ATTEMPT_TIMEOUT", MAYBE_PROCESSED],
    [{ code: "UND_ERR_HEADERS_OVERFLOW" }, SENT, "RESPONSE_UNREADABLE", MAYBE_PROCESSED],
    [{ code: "HPE_INVALID_CONSTANT" }, SENT, "PROTOCOL_VIOLATION", MAYBE_PROCESSED],
    [new Error("redirect count exceeded"), SENT, "REQUEST_REJECTED", MAYBE_PROCESSED],
  ] as const) {
    const shown = JSON.stringify(cause);
    test(`${shown}, ${trace.isSent ? "sent" : trace.isKnown ? "not sent" : "unseen"}: ${category}`, () => {
      const error = new TypeError("fetch failed", { cause });
      const told = describeError({ error, trace, timedOut: false, gaveUp: false });
      assert.equal(told.failure.category, FailureCategory[category]);
      assert.equal(told.evidence, evidence);
    });
  }
});

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { differs } from "./compare.js";
import { type Played, type Scenario, play } from "./scenario.js";
import { type Json, type Testbed, readJson, startTestbed } from "./testbed.js";

let testbed: Testbed;
before(async () => void (testbed = await startTestbed()));
after(async () => testbed.stop());

const KNOWN = [
  ...[
    "outcome",
    "attempts",
    "arrivals",
    "waits_ms",
    "within_ms",
    "headers",
    "questions",
    "reasons",
  ],
  ...["contexts", "usage", "released_of_call", "released_of_lease"],
];
const OVER = ["grpc", "http"] as const;

describe("calls, from the first attempt to the last", { concurrency: 4 }, () => {
  const cases: Scenario[] = readJson("clients/scenarios/calls.json").cases;
  assert.notEqual(cases.length, 0);
  for (const [place, scenario] of cases.entries()) {
    for (const over of OVER.filter((one) => scenario.over.includes(one))) {
      test(`${over}: ${scenario.name}`, async () => {
        const played = await play(testbed, over, scenario, `node-${over}-call-${place}`);
        assert.deepEqual(unexpected(scenario.expect!, played, over), []);
      });
    }
  }
});

describe("what is told of a failure is what the library can prove", { concurrency: 4 }, () => {
  const failures: Scenario[] = readJson("clients/scenarios/failures.json").failures;
  const evidence: Record<string, Record<string, Json>> = readJson("clients/node/evidence.json");
  const libraries = { grpc: evidence["grpc-js"]!, http: evidence["fetch"]! };
  for (const [place, failure] of failures.entries()) {
    for (const over of OVER.filter((one) => failure.over.includes(one))) {
      test(`${over}: ${failure.name}`, async () => {
        const row = libraries[over][failure.name];
        assert.ok(row, "evidence.json has no row for it");
        const played = await play(testbed, over, failure, `node-${over}-failure-${place}`);
        assert.deepEqual(told(played), {
          category: row["category"],
          evidence: row["evidence"],
          status: row["status"],
        });
      });
    }
  }
  test("evidence.json has no row for anything else", () => {
    for (const over of OVER) {
      const known = failures.filter((failure) => failure.over.includes(over));
      const names = known.map(({ name }) => name);
      assert.deepEqual(Object.keys(libraries[over]).sort(), names.sort());
    }
  });
});

/** The first question's words for the failure, as evidence.json has them. */
function told({ questions }: Played): Json {
  const { failure, evidence } = questions[0]!.context as Json;
  const { grpcCode, httpStatus } = failure;
  return {
    category: failure.category.replace("FAILURE_CATEGORY_", ""),
    evidence: evidence?.replace("EVIDENCE_", ""),
    status: grpcCode ? `grpc ${grpcCode}` : httpStatus ? `http ${httpStatus}` : undefined,
  };
}

/** Everything in which a call did not go as the scenario says. */
function unexpected(expect: Json, played: Played, over: string): string[] {
  const found: string[] = [];
  const check = (what: string, wanted: unknown, got: unknown) => {
    if (wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(got)) {
      found.push(`${what} ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
    }
  };
  const strange = Object.keys(expect).filter((key) => !KNOWN.includes(key));
  check("unknown keys", [], strange);
  const failed =
    expect["outcome"] === "failed" && (over === "grpc" ? played.outcome !== "ok" : true);
  check(
    "outcome",
    expect["outcome"],
    failed && played.outcome !== "ok" ? "failed" : played.outcome,
  );
  check("attempts", expect["attempts"], played.attempts);
  check("arrivals", expect["arrivals"], played.arrivals.length);
  const { waits_ms: waits = [], within_ms: within = Infinity } = expect;
  for (const [place, least] of waits.entries()) {
    const waited = played.arrivals[place + 1]!.at_ms - played.arrivals[place]!.at_ms;
    check(`wait ${place} of ${waited} ms is long enough`, true, least <= waited);
  }
  check(`${played.tookMs} ms are within ${within}`, true, played.tookMs <= within);
  for (const { headers } of played.arrivals) {
    found.push(...differs(expect["headers"] ?? {}, headers));
  }
  const { reasons, contexts = [], questions = reasons?.length } = expect;
  check("questions", questions, played.questions.length);
  check(
    "reasons",
    reasons,
    played.questions.map(({ decision }) => decision?.["reason"]),
  );
  for (const [place, wanted] of contexts.entries()) {
    found.push(...differs(wanted, played.questions[place]?.context ?? {}));
  }
  if (expect["usage"]) {
    const { period: _, ...usage } = played.usage;
    check("usage", sorted(expect["usage"]), sorted(usage));
  }
  check("released of the call", expect["released_of_call"], released(played, "decided"));
  check("released of the lease", expect["released_of_lease"], released(played, "lease"));
  return found;
}

function released({ releases }: Played, grant: string): number {
  const ofGrant = releases.filter(({ request }) => grant in request!);
  return ofGrant.reduce((sum, { response }) => sum + (response["released"] ?? 0), 0);
}

function sorted(object: Json): Json {
  return Object.fromEntries(Object.entries(object).sort());
}

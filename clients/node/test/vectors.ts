import {
  type DescMessage,
  type DescMethodUnary,
  type JsonValue,
  type MessageShape,
  fromJson,
  toJson,
} from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/details_pb.js";
import { BudgetService, RetryService } from "../gen/retryd/v1/retryd_pb.js";
import { detailOf } from "../src/details.js";
import type { Retryd } from "../src/retryd.js";
import { differs } from "./compare.js";
import type { Json } from "./testbed.js";

const TIMEOUT_MS = 30_000;
const DURATIONS = ["remainingDeadline", "retryAfter", "period"];
const TERMS = ["repeat", "granted", "as", "expect", "error"];

/** What a case names beside the tenant and operation of its calls, and how it goes over the wire. */
const METHODS = {
  ask: RetryService.method.decide,
  report: BudgetService.method.reportUsage,
  reports: BudgetService.method.reportUsage,
  acquire: BudgetService.method.acquireRetries,
  release: BudgetService.method.releaseRetries,
  budget: BudgetService.method.getBudget,
  list: BudgetService.method.listBudgets,
};

/** Plays the steps of one case. */
export class Player {
  readonly #retryd: Retryd;
  readonly #base: Json;
  readonly #names: Json;
  readonly #revision: string;
  /** Leases and page tokens, by the names that steps gave them. */
  readonly #named = new Map<string, string>();

  constructor(retryd: Retryd, base: Json, names: Json, revision: string) {
    this.#retryd = retryd;
    this.#base = base;
    this.#names = names;
    this.#revision = revision;
  }

  /** Everything that differs. */
  async play(steps: Json[]): Promise<string[]> {
    const found: string[] = [];
    for (const [place, step] of steps.entries()) {
      found.push(...(await this.#step(step)).map((it) => `step ${place}: ${it}`));
    }
    return found;
  }

  async #step(step: Json): Promise<string[]> {
    const [action, ...more] = Object.keys(step).filter((key) => !TERMS.includes(key));
    if (action === undefined || !(action in METHODS) || more.length > 0) {
      return [`a step that the test does not know: ${JSON.stringify(step)}`];
    }
    const found: string[] = [];
    let granted = 0;
    for (let turn = 0; turn < (step["repeat"] ?? 1); turn += 1) {
      for (const call of [step[action]].flat()) {
        const { answer, request, error } = await this.#call(action as keyof typeof METHODS, call);
        granted += answer?.["verdict"] === "VERDICT_RETRY" ? 1 : 0;
        this.#name(step["as"], answer);
        const differs = judge(action, step, { answer, request, error, revision: this.#revision });
        found.push(...differs.map((it) => `${it} (call ${JSON.stringify(call)})`));
      }
    }
    if (step["granted"] !== undefined && step["granted"] !== granted) {
      found.push(`granted ${granted}, expected ${step["granted"]}`);
    }
    return found;
  }

  async #call(action: keyof typeof METHODS, call: Json): Promise<Omit<Answered, "revision">> {
    const request = this.#request(action, call);
    const method: DescMethodUnary = METHODS[action];
    try {
      const answer = await this.#retryd.call(method, message(method.input, request), TIMEOUT_MS);
      return { request, answer: toJson(method.output, answer) as Json };
    } catch (error) {
      return { request, error: error as ServiceError };
    }
  }

  #request(action: keyof typeof METHODS, call: Json): Json {
    switch (action) {
      case "ask":
        return this.#filled({ ...this.#base, ...call });
      case "report":
        return { usage: [this.#filled(call)] };
      case "reports":
        return { ...call, usage: call["usage"].map((entry: Json) => this.#filled(entry)) };
      case "release":
        return this.#withNamed(this.#filled(call), "lease");
      case "list":
        return this.#withNamed(call, "pageToken");
      default:
        return this.#filled(call);
    }
  }

  /** A call with the names of the case, unless it gives others. null leaves a key out. */
  #filled(call: Json): Json {
    const entries = Object.entries({ ...this.#names, ...call });
    return Object.fromEntries(entries.filter(([, value]) => value !== null));
  }

  #withNamed(call: Json, key: string): Json {
    const label = call[key]?.as;
    return label === undefined ? call : { ...call, [key]: this.#named.get(label) };
  }

  #name(label: string | undefined, answer: Json | undefined): void {
    if (label !== undefined && answer !== undefined) {
      this.#named.set(label, answer["lease"] ?? answer["nextPageToken"] ?? "");
    }
  }
}

/** A call, and what came of it. */
interface Answered {
  request: Json;
  answer?: Json | undefined;
  error?: ServiceError | undefined;
  /** Of the policy in force. */
  revision: string;
}

/** Without an expectation any answer will do, but no error. */
function judge(action: string, { expect, error: refusal }: Json, answered: Answered): string[] {
  const { answer, error } = answered;
  if (error !== undefined) {
    return refusal ? refusalDiffers(error, refusal) : [`ended with ${error.message}`];
  }
  const got = action === "report" ? answer!["results"][0] : answer!;
  const broken = laws(action, expect, answered).filter(([, holds]) => !holds);
  return [
    ...differs(expect ?? {}, got),
    ...broken.map(([law]) => `broken: ${law}; got ${JSON.stringify(answer)}`),
    ...(refusal ? [`no error, but ${JSON.stringify(answer)}`] : []),
  ];
}

type Law = [string, boolean];

function laws(action: string, expect: Json | undefined, answered: Answered): Law[] {
  const { request, answer = {} } = answered;
  const isShadow: Law = [
    "shadow where that is expected",
    (answer["shadow"] ?? false) === (expect?.["shadow"] === true),
  ];
  switch (action) {
    case "ask":
      return [...decisionLaws(answered), isShadow];
    case "report":
    case "reports": {
      const results: Json[] = answer["results"] ?? [];
      const isRefused = results.some((result) => "refusal" in result);
      return [
        ["an entry is refused only where that is expected", !isRefused || expect !== undefined],
        ["every entry has a result", results.length === request["usage"].length],
      ];
    }
    case "acquire": {
      const { granted = 0, lease, validFor } = answer;
      const validSeconds = Number.parseFloat(validFor ?? "0s");
      return [
        ["no more is granted than was wanted", granted <= request["wanted"]],
        ["a lease comes with retries", (granted !== 0) === (lease !== undefined)],
        ["valid for 1 s to 10 s", 1 <= validSeconds && validSeconds <= 10],
        isShadow,
      ];
    }
    case "release":
      return [
        ["no more is released than was unused", (answer["released"] ?? 0) <= request["unused"]],
      ];
    default:
      return [];
  }
}

/** What holds for every decision. */
function decisionLaws({ request, answer = {}, revision }: Answered): Law[] {
  const retries = answer["verdict"] === "VERDICT_RETRY";
  const explain = request["explain"] === true;
  const steps: Json[] = answer["steps"] ?? [];
  const last = steps.at(-1);
  const objections = steps.filter((step) => step["objected"]).length;
  // Proto-JSON of whole milliseconds has three digits behind the point, or none.
  const waits = /^[0-9]+(\.[0-9]{3})?s$/.test(answer["delay"] ?? "") && answer["delay"] !== "0s";
  return [
    ["the verdict is one of the two", retries || answer["verdict"] === "VERDICT_DO_NOT_RETRY"],
    ["the reason is told", answer["reason"] !== undefined],
    ["RETRY and RETRYABLE come together", retries === (answer["reason"] === "REASON_RETRYABLE")],
    ["RETRY has a delay of whole milliseconds, at least one", !retries || waits],
    ["only RETRY has a delay", retries === "delay" in answer],
    ["only RETRY has a source of the delay", retries === "delaySource" in answer],
    ["the class is told", "failureClass" in answer],
    ["the policy is told", "policy" in answer],
    ["the revision is the file's", answer["policyRevision"] === revision],
    ["nothing is degraded", !answer["degraded"]],
    ["detail comes with explain", explain === "detail" in answer],
    ["steps come with explain", explain === steps.length > 0],
    ["every step saw something", steps.every((step) => step["saw"])],
    ["the last step is the reason", last === undefined || last["rule"] === answer["reason"]],
    [
      "only the last step of a refusal objected",
      last === undefined ||
        ((last["objected"] ?? false) !== retries && objections === (retries ? 0 : 1)),
    ],
  ];
}

/** Everything in which an error differs from the refusal that a case names. */
function refusalDiffers(error: ServiceError, refusal: Json): string[] {
  const info = detailOf(error.metadata, ErrorInfoSchema);
  const violations = detailOf(error.metadata, BadRequestSchema)?.fieldViolations ?? [];
  const texts = [error.details, ...violations.map(({ description }) => description)];
  const got = {
    code: status[error.code],
    domain: info?.domain,
    reason: info?.reason,
    violations: violations.map(({ field }) => field).sort(),
    spoilt: texts.filter((text) => /\p{Cc}/u.test(text)),
  };
  const sorted = [...refusal["violations"]].sort();
  const wanted = { ...refusal, domain: "retryd", violations: sorted, spoilt: [] };
  return differs(wanted, got);
}

/**
 * A message from the JSON of a call. Durations that are out of range, and numbers of enums that nobody knows, are no
 * proto-JSON: they are set on the message itself.
 */
function message<D extends DescMessage>(schema: D, json: Json): MessageShape<D> {
  const { rest, spoilt } = withoutDurations(json);
  const built = fromJson(schema, rest as JsonValue) as MessageShape<D>;
  for (const { path, value } of spoilt) {
    const key = path.pop()!;
    const parent = path.reduce((at: any, name) => at[name], built);
    parent[key] = value;
  }
  return built;
}

interface Spoilt {
  path: string[];
  value: Duration;
}

function withoutDurations(json: any, path: string[] = []): { rest: any; spoilt: Spoilt[] } {
  if (typeof json !== "object" || json === null) {
    return { rest: json, spoilt: [] };
  }
  const spoilt: Spoilt[] = [];
  const keep = (key: string, value: any): [string, any][] => {
    if (DURATIONS.includes(key) && typeof value === "object") {
      const { seconds = 0, nanos = 0 } = value;
      const duration = { $typeName: DurationSchema.typeName, seconds: BigInt(seconds), nanos };
      spoilt.push({ path: [...path, key], value: duration as Duration });
      return [];
    }
    const inner = withoutDurations(value, [...path, key]);
    spoilt.push(...inner.spoilt);
    return [[key, inner.rest]];
  };
  const entries = Object.entries(json).flatMap(([key, value]) => keep(key, value));
  const rest = Array.isArray(json)
    ? entries.map(([, value]) => value)
    : Object.fromEntries(entries);
  return { rest, spoilt };
}

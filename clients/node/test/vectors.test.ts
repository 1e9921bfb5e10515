import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { credentials } from "@grpc/grpc-js";
import { Retryd } from "../src/retryd.js";
import { REPOSITORY, type Json, type Testbed, readJson, startTestbed } from "./testbed.js";
import { Player } from "./vectors.js";

const FOLDER = "tests/vectors";

let testbed: Testbed;
let played = 0;
before(async () => void (testbed = await startTestbed()));
after(async () => {
  console.log(`vectors: ${played} sequences played`);
  await testbed.stop();
});

describe("vectors", { concurrency: 4 }, () => {
  const files = readdirSync(resolve(REPOSITORY, FOLDER)).filter((name) => name.endsWith(".json"));
  assert.notEqual(files.length, 0);
  for (const file of files.sort()) {
    test(file, async () => {
      assert.deepEqual(await playFile(file.replace(/\.json$/, "")), []);
    });
  }
});

/** Plays the portable cases of a file, and tells everything that differs. */
async function playFile(name: string): Promise<string[]> {
  const vectors = readJson(`${FOLDER}/${name}.json`);
  const policy = `${vectors.policy.join("\n")}\n`;
  const revision = createHash("sha256").update(policy).digest("hex").slice(0, 12);
  const cases: Json[] = vectors.cases;
  const found: string[] = [];
  const shared = await connect(policy);
  for (const [place, one] of cases.entries()) {
    if (one["needs"]) {
      continue;
    }
    for (const [turn, steps] of plays(one).entries()) {
      const retryd = one["alone"] ? await connect(policy) : shared;
      const names = { tenant: `${name}-${place}-${turn}`, operation: one["operation"] ?? "op" };
      const differs = await new Player(retryd, vectors.base ?? {}, names, revision).play(steps);
      found.push(...differs.map((it) => `${one["name"]}: ${it}`));
      played += 1;
      if (retryd !== shared) {
        retryd.close();
      }
    }
  }
  shared.close();
  return found;
}

/** The steps as they are; or the history and one of the contexts, for each of them. */
function plays({ steps, before = [], context, contexts, expect, error }: Json): Json[][] {
  const questions: Json[] = contexts ?? [context];
  return steps ? [steps] : questions.map((ask) => [...before, { ask, expect, error }]);
}

async function connect(policy: string): Promise<Retryd> {
  return new Retryd(await testbed.startRetryd(policy), credentials.createInsecure());
}

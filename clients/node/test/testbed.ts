import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

export const REPOSITORY = resolve(import.meta.dirname, "../../../..");

/** The addresses of a testbed, and what was seen there. */
export interface Testbed {
  retryd: Record<string, string>;
  grpc: Record<string, string>;
  http: Record<string, string>;
  play(name: string): Promise<Play>;
  /** Starts a retryd with this policy, and returns its address. */
  startRetryd(policy: string): Promise<string>;
  stop(): Promise<void>;
}

export interface Play {
  arrivals: { at_ms: number; headers: Record<string, string> }[];
  questions: { at_ms: number; context: Json; decision?: Json }[];
  releases: Json[];
  acquires: Json[];
  usage: Json;
}

export type Json = { [key: string]: any };

export async function startTestbed(): Promise<Testbed> {
  const python = process.env["TESTBED_PYTHON"] ?? `${REPOSITORY}/target/clients/venv/bin/python`;
  const retryd = process.env["RETRYD_BIN"] ?? `${REPOSITORY}/target/debug/retryd`;
  const child = spawn(python, ["-m", "testbed", "--retryd", retryd], {
    env: { ...process.env, PYTHONPATH: `${REPOSITORY}/clients` },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { control, ...addresses } = JSON.parse(await firstLine(child));
  const json = async (path: string, init?: RequestInit): Promise<any> => {
    const response = await fetch(`${control}${path}`, init);
    if (!response.ok) {
      throw new Error(`testbed: ${path}: ${response.status} ${await response.text()}`);
    }
    return response.json();
  };
  return {
    ...addresses,
    play: (name) => json(`/plays/${encodeURIComponent(name)}`),
    startRetryd: async (policy) =>
      (await json("/retryds", { method: "POST", body: policy })).address,
    stop: async () => {
      child.stdin!.end();
      await once(child, "exit");
    },
  };
}

export function readJson(path: string): any {
  return JSON.parse(readFileSync(resolve(REPOSITORY, path), "utf8"));
}

async function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the testbed ended with ${code}`)));
    createInterface(child.stdout!).once("line", resolve);
  });
}

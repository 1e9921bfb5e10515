export { Client } from "./client.js";
export type { Fetch } from "./fetch.js";
export type { Overrides } from "./overrides.js";
export type { Operation, OwnRules, Settings } from "./settings.js";

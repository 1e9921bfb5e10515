import type { Json } from "./testbed.js";

/** Everything that `expect` names and `got` does not hold. */
export function differs(expect: Json, got: Json): string[] {
  return Object.entries(expect).flatMap(([key, wanted]) => compare(key, wanted, got[key]));
}

function compare(path: string, wanted: any, got: any): string[] {
  if (got === undefined) {
    // Proto-JSON leaves out what has its default value.
    return [null, false, 0, ""].includes(wanted)
      ? []
      : [`${path}: absent, expected ${show(wanted)}`];
  }
  if (Array.isArray(wanted) && Array.isArray(got) && wanted.length === got.length) {
    return wanted.flatMap((one, place) => compare(`${path}[${place}]`, one, got[place]));
  }
  if (isObject(wanted) && isObject(got)) {
    return Object.entries(wanted).flatMap(([key, one]) => compare(`${path}.${key}`, one, got[key]));
  }
  return show(wanted) === show(got) ? [] : [`${path}: ${show(got)}, expected ${show(wanted)}`];
}

function isObject(value: any): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function show(value: any): string {
  return JSON.stringify(value);
}

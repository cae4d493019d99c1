/** A file or document of a run without `made`, which differs each time; fails if that is missing. */
import { expect } from "vitest";
import { madeSchema } from "../../src/result/made_schema.js";

export function unmade(document: string): unknown {
  const { made, ...rest } = JSON.parse(document) as { made?: unknown };
  expect(madeSchema.safeParse(made).success).toBe(true);
  return rest;
}

/** Does the same with text, for comparisons of bytes: the text before and behind stays as it is. */
export function unmadeText(text: string): string {
  unmade(text);
  return text.replace(/\n {2}"made": \{.*?\n {2}\},/s, "");
}

/** Reads a result document that somebody hands over: it becomes either a run or a sentence that says what is wrong with it. */
import { type Result, resultSchema } from "../../../src/result/result.js";

const kLargestFile = 512e6;

export type Read = { result: Result } | { error: string };

export async function readResultFile(file: File): Promise<Read> {
  if (file.size > kLargestFile) {
    return { error: `${file.name}: ${Math.round(file.size / 1e6)} MB; at most ${kLargestFile / 1e6} MB can be opened` };
  }
  try {
    return parseResult(await file.text(), file.name);
  } catch (error) {
    return { error: `${file.name}: cannot be read: ${(error as Error).message}` };
  }
}

export function parseResult(text: string, name: string): Read {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: `${name}: not JSON (${(error as Error).message}); open the result.json of a run` };
  }
  return checkResult(value, name);
}

export function checkResult(value: unknown, name: string): Read {
  const parsed = resultSchema.safeParse(value);
  if (parsed.success) return withEqualSeries(parsed.data, name);
  const [issue] = parsed.error.issues;
  const why = [issue?.path.join("."), issue?.message].filter((text) => text).join(": ");
  return { error: `${name}: not a result of weir: ${why}` };
}

/** Refuses times that go back: they would be drawn as nonsense. */
function withEqualSeries(result: Result, name: string): Read {
  const times = result.series?.time_s ?? [];
  const backwards = times.findIndex((time, i) => i > 0 && time <= (times[i - 1] as number));
  if (backwards > 0) return { error: `${name}: not a result of weir: series.time_s.${backwards}: times must ascend` };
  return { result };
}

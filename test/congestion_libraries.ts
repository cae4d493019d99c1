/** Congestion controls from shared libraries, built as a user would. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

export const kAimd = "examples/congestion/aimd.c";
/** Library that answers as its parameters say. */
export const kTold = "test/fixtures/congestion/told.c";

/** The library's file, in `folder`. */
export function builtLibrary(source: string, folder: string): string {
  const file = join(folder, `${basename(source, ".c")}.so`);
  // One that is loaded must not change.
  if (existsSync(file)) return file;
  const options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", "native/congestion"];
  const PATH = process.env.WEIR_BUILD_PATH ?? process.env.PATH;
  execFileSync("cc", [...options, "-o", file, source], { cwd: root, env: { ...process.env, PATH } });
  return file;
}

/**
 * Tests that an obstacle may keep from running: then they are skipped and say why, at the end of a run in a list. In CI they
 * fail, but for want of a package: `npm test` has tried to install that, and says at its end which ones it could not; and but for
 * what the processor cannot do.
 */
import { beforeEach, describe, it } from "vitest";
import { loadAddon } from "../src/native/addon.js";
import { kNotInstalled } from "./needs.js";

/** Says why nothing that needs the native core can run here; undefined if it can. */
export function nativeObstacle(): string | undefined {
  try {
    loadAddon();
    return undefined;
  } catch (error) {
    return (error as Error).message.split("\n")[0];
  }
}

/** Loads the native core; if it does not load all tests of the file are skipped. */
export function nativeCore<T>(): T {
  const obstacle = nativeObstacle();
  skipWhere(obstacle);
  return skips(obstacle) ? (undefined as T) : loadAddon<T>();
}

export function describeUnless(obstacle: string | undefined, name: string, body: () => void): void {
  if (skips(obstacle)) describe.skip(`${name} (skipped: ${obstacle})`, body);
  else describe(name, body);
}

export function itUnless(obstacle: string | undefined, name: string, body: () => void | Promise<void>): void {
  if (skips(obstacle)) it.skip(`${name} (skipped: ${obstacle})`, body);
  else it(name, body);
}

/** Skips all tests of the file, or of the describe() around it. */
export function skipWhere(obstacle: string | undefined): void {
  if (skips(obstacle)) beforeEach((context) => context.skip(obstacle));
}

/** Begin of what this machine's processor lacks: nothing could be done about it. */
export const kThisMachine = "this machine";

function skips(obstacle: string | undefined): obstacle is string {
  if (obstacle === undefined) return false;
  return !process.env.CI || [kNotInstalled, kThisMachine].some((begin) => obstacle.startsWith(begin));
}

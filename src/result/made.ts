/** Tells which Weir this is, on which machine. */
import { readFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { WeirError } from "../base/error.js";
import { packageVersion } from "../base/package_version.js";
import { codeVersion } from "./code_version.js";
import type { HostFacts, Made } from "./made_schema.js";

let same: Omit<Made, "at"> | undefined;

/** Facts of a document that is made now, here. */
export function madeNow(): Made {
  same ??= { weir: runningVersion(), ...builtFrom(), host: hostFacts() };
  const { host, ...weir } = same;
  return { ...weir, at: new Date().toISOString(), host: { ...host } };
}

/** Adds to a result how it was made, as it is told and kept. */
export function withMade<T extends { scenario: string }>(result: T): T {
  const { scenario, ...rest } = result;
  return { scenario, made: madeNow(), ...rest } as unknown as T;
}

export function hostFacts(): HostFacts {
  const all = cpus();
  return { kernel: release(), cpus: all.length, cpu: all[0]?.model, node: process.version };
}

function runningVersion(): string {
  try {
    return codeVersion();
  } catch (error) {
    // Models run without the native core.
    if (error instanceof WeirError) return packageVersion();
    throw error;
  }
}

/** Reads the commit that the build has left (scripts/finish-build.mjs). */
function builtFrom(): Pick<Made, "commit"> {
  try {
    const { commit } = JSON.parse(readFileSync(new URL("../build.json", import.meta.url), "utf8")) as Pick<
      Made,
      "commit"
    >;
    return { commit };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw error;
  }
}

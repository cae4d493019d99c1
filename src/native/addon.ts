/** Finds and loads the native core, once, when it is first needed. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { WeirError } from "../base/error.js";
import { probeInterface } from "./interface_probe.js";
import type { KernelSockets, NativeAddon } from "./types.js";

/** Paths at which the two builders put it: cmake-js, node-gyp. */
const kCandidates = ["../../build-cmake/Release/weir.node", "../../build/Release/weir.node"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

let loaded: unknown;

/** The native core; fails with a WeirError that says what was tried and what to do. `T` is its typed surface. */
export function loadAddon<T>(): T {
  loaded ??= withProbe(loadFirst(kCandidates) as KernelSockets);
  return loaded as T;
}

/** Adds the probe, which puts together here what it asks of the kernel. */
function withProbe(core: KernelSockets): unknown {
  const probe: NativeAddon["probeInterface"] = (name, namespace) => probeInterface(core, name, namespace);
  return Object.assign(core, { probeInterface: probe });
}

/** Path of the native core that was built here. Fails as loadAddon() does where there is none. */
export function addonFile(): string {
  const file = kCandidates.find((path) => existsSync(path));
  if (file === undefined) throw notLoaded(kCandidates.map((path) => `${path}: not there`));
  return file;
}

/** The first of `candidates` that loads. */
export function loadFirst(candidates: readonly string[]): unknown {
  const require = createRequire(import.meta.url);
  const failures: string[] = [];
  for (const path of candidates) {
    if (!existsSync(path)) {
      failures.push(`${path}: not there`);
      continue;
    }
    try {
      return require(path);
    } catch (error) {
      // dlopen's message repeats the path.
      failures.push(`${path}: ${error instanceof Error ? error.message.replace(`${path}: `, "") : String(error)}`);
    }
  }
  throw notLoaded(failures);
}

function notLoaded(failures: readonly string[]): WeirError {
  return new WeirError(["the native core does not load", ...failures].join("\n    "), {
    hint: remedy(failures.join("\n")),
  });
}

function remedy(failures: string): string {
  const rebuild = "npm run build:native";
  if (process.platform !== "linux") return "Weir runs on Linux only";
  if (/GLIBC|GLIBCXX|CXXABI|version `/.test(failures))
    return `it was built on a newer system; build it here: ${rebuild}`;
  if (/ELF|wrong architecture|file too short/.test(failures))
    return `it was built for another machine; build it here: ${rebuild}`;
  if (/undefined symbol|cannot open shared object/.test(failures))
    return `it does not fit this system; build it anew: ${rebuild}`;
  return `build it: ${rebuild}   (needs a C++ compiler: apt install build-essential cmake)`;
}

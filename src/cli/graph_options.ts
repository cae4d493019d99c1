/** Options by which a message graph is put on a network: the file of the graph, and the scenario whose network it is. */
import { basename, extname, resolve } from "node:path";
import type { Command } from "commander";
import { parse } from "yaml";
import { parseSize } from "../base/units.js";
import { UsageError } from "./context.js";
import { integer } from "./device_options.js";
import { parsed } from "./quantity.js";
import { readScenario } from "./scenario_file.js";

export interface GraphChoice {
  ranks?: number;
  fabric?: string;
  place?: string;
  perHost?: number;
  eager?: string;
  rendezvous?: string;
  withTraffic?: boolean;
}

/** The same, of a file. */
export interface FileChoice extends GraphChoice {
  size?: string;
  calculation?: string;
}

const kGraphFiles = new Set([".goal", ".bin", ".et", ".cm", ".xml", ".txt"]);

/** What a file may leave open. */
export function withReading(command: Command): Command {
  return command
    .option("--ranks <n>", "how many, where the file does not say (AICB)", integer("--ranks", 1, 1_000_000))
    .option("--size <size>", "of the collective, where the file does not say (MSCCL; default: 1MB)", (text) =>
      parsed("--size", text, parseSize),
    );
}

export function addPlacement(command: Command): Command {
  return command
    .option("--ranks <n>", "how many, where neither the file nor the fabric says", integer("--ranks", 1, 1_000_000))
    .option(
      "--place <how>",
      "which rank is where: packed, round-robin, random, or hosts by rank: h3,h1,... (default: packed)",
    )
    .option("--per-host <n>", "most ranks on a host (default: 1)", integer("--per-host", 1, 1024))
    .option("--eager <size>", "sends of at most that size end when they start (default: 64KiB)")
    .option("--rendezvous <size>", "longer sends wait for their receives (default: none)")
    .option("--with-traffic", "the fabric's own traffic runs beside it");
}

/** The scenario's file, and what is to be set in it. */
export function scenarioOf(file: string, choice: FileChoice): { file: string; set: string[] } {
  if (choice.fabric === undefined) {
    if (kGraphFiles.has(extname(file))) {
      throw new UsageError(`${file} is a message graph, and has no network`, {
        hint: `--fabric FILE names a scenario whose network it runs on`,
      });
    }
    return { file, set: [] };
  }
  const name = basename(file)
    .replace(/\.[^.]+$/, "")
    .replace(/[^A-Za-z0-9_.-]/g, "-");
  return {
    file: choice.fabric,
    set: graphOverrides(choice.fabric, choice, graphEntry(file, choice, name), name),
  };
}

const graphEntry = (file: string, { ranks, size, calculation }: FileChoice, name: string) => ({
  id: entryId(name),
  pattern: "graph",
  file: resolve(file),
  ...(ranks !== undefined && { ranks }),
  ...(size !== undefined && { size }),
  ...(calculation !== undefined && { calculation: factor(calculation) }),
});

function factor(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new UsageError(`--calculation ${text}: not a number`);
  return value;
}

/** An id has to begin with a letter or digit. */
const entryId = (name: string) => name.replace(/^[^A-Za-z0-9]+/, "").slice(0, 64) || "graph";

/** @param entry The traffic entry of the graph. */
export function graphOverrides(
  fabric: string,
  choice: GraphChoice,
  entry: Record<string, unknown>,
  name: string,
): string[] {
  const { place, perHost, eager, rendezvous, withTraffic = false } = choice;
  const words = ["packed", "round-robin", "random"];
  const own = withTraffic ? trafficOf(fabric) : [];
  const whole = {
    ...entry,
    ...(place !== undefined && { place: words.includes(place) ? place : place.split(",") }),
    ...(perHost !== undefined && { per_host: perHost }),
    ...(eager !== undefined && { eager }),
    ...(rendezvous !== undefined && { rendezvous }),
  };
  return [`name=${name}`, "transport.type=rc", `traffic=${JSON.stringify([...own, whole])}`];
}

function trafficOf(fabric: string): unknown[] {
  const { traffic } = (parse(readScenario(fabric)) ?? {}) as { traffic?: unknown };
  return Array.isArray(traffic) ? traffic : [];
}

/** Which ranks a communicator of a Chakra trace has. */
import { existsSync } from "node:fs";
import { z } from "zod";
import { WeirError } from "../../base/error.js";
import type { ChakraNode } from "./chakra_file.js";
import { readSourceText } from "./source_text.js";

/** Ranks by the name of the communicator. */
export type Groups = Map<string, readonly number[]>;

const ranks = z.array(z.int().min(0));
const beside = z.record(z.string(), ranks);
/** As PyTorch writes them; `ranks` is empty for all. */
const ofProcess = z.array(z.object({ pg_name: z.union([z.string(), z.int()]), ranks }));

/** Reads `{"1": [0, 1]}`: as ASTRA-sim's file of communicators. Without the file there are none. `everybody`: all ranks. */
export function readGroupFile(file: string, everybody: readonly number[]): Groups {
  if (!existsSync(file)) return new Map();
  let parsed: z.infer<typeof beside>;
  try {
    parsed = beside.parse(JSON.parse(readSourceText(file)));
  } catch (error) {
    if (error instanceof WeirError) throw error;
    throw new WeirError(`${file}: has no lists of ranks by the name of a communicator, such as {"1": [0, 1]}`);
  }
  const groups: Groups = new Map();
  for (const [name, members] of Object.entries(parsed)) groups.set(name, checked(members, name, everybody, file));
  return groups;
}

/** Adds those that a METADATA node has: PyTorch writes them as JSON, in a list of one text. */
export function addGroupsOf(node: ChakraNode, groups: Groups, everybody: readonly number[], file: string): void {
  const [, json] = /^\s*\[\s*['"]?(\[.*\])['"]?\s*\]\s*$/s.exec(node.inputs) ?? [];
  if (json === undefined || !json.includes("pg_name")) return;
  let parsed: z.infer<typeof ofProcess>;
  try {
    parsed = ofProcess.parse(JSON.parse(json.replaceAll('\\"', '"')));
  } catch {
    throw new WeirError(`${file}: node ${node.id}: its process groups cannot be read`);
  }
  for (const { pg_name, ranks } of parsed) {
    const name = String(pg_name);
    groups.set(name, ranks.length === 0 ? everybody : checked(ranks, name, everybody, file));
  }
}

/** Returns `everybody` itself for a list of all, in order. */
function checked(
  members: readonly number[],
  name: string,
  everybody: readonly number[],
  file: string,
): readonly number[] {
  const ranks = everybody.length;
  const wrong = members.find((rank) => rank >= ranks);
  if (wrong !== undefined)
    throw new WeirError(`${file}: communicator ${name} has rank ${wrong}, but there are files of ${ranks} ranks`);
  if (members.length === 0 || new Set(members).size < members.length)
    throw new WeirError(`${file}: communicator ${name} has no rank, or one twice`);
  return members.length === ranks && members.every((rank, i) => rank === i) ? everybody : members;
}

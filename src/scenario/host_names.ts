// Names of the hosts that a kind of topology makes. "h1-2" can be the name of a machine, which "h1_2" cannot: programs such as mpirun
// refuse that. "h1_2" is read as another spelling of it, wherever a user names a host.
import { merge } from "../base/merge.js";
import type { ScenarioInput } from "./schema.js";

/** A name in the other spelling, alone or within "sw:h1_2:3", "incast/h1_2" or "h1_2--sw". */
const kOtherSpelling = /(?<![A-Za-z0-9_])h\d+(?:_\d+){1,2}(?![A-Za-z0-9_])/g;

const spelled = (text: string) => text.replace(kOtherSpelling, (name) => name.replaceAll("_", "-"));

/** Returns the one of `known` that a user's text means, in either spelling; else the text. */
export function knownHost(text: string, known: (name: string) => boolean): string {
  return known(text) || !known(spelled(text)) ? text : spelled(text);
}

/** The other spelling of a host's name; undefined: it has none. */
export function otherSpelling(name: string): string | undefined {
  return /^h\d+(-\d+){1,2}$/.test(name) ? name.replaceAll("-", "_") : undefined;
}

/** The scenario with its hosts' names in one spelling. Where all is written out, hosts are called what the user calls them. */
export function withHostNames(input: ScenarioInput): ScenarioInput {
  const { topology, switch: switches, traffic, changes, failures, faults, parts, probes, expect } = input;
  if (topology.kind === undefined || topology.kind === "graph") return input;
  const inIds = new Set(traffic?.flatMap(({ id }) => id?.match(kOtherSpelling) ?? []));
  const ofSections = respelled({ topology, switch: switches, changes, failures, faults, parts, probes });
  const given = Object.entries(ofSections).filter(([, value]) => value !== undefined);
  return {
    ...input,
    ...Object.fromEntries(given),
    ...(traffic && { traffic: traffic.map(ofEntry) }),
    // An id is what its author chose.
    ...(expect && {
      expect: expect.map((text) => text.replace(kOtherSpelling, (name) => (inIds.has(name) ? name : spelled(name)))),
    }),
  };
}

/** Fields of a traffic entry that name hosts. */
const kOfHosts = new Set(["from", "to", "hosts", "on"]);

function ofEntry<Entry extends object>(entry: Entry): Entry {
  const fields = Object.entries(entry).map(([key, value]) => [key, kOfHosts.has(key) ? respelled(value) : value]);
  return Object.fromEntries(fields) as Entry;
}

/** Both the keys and the texts of a value. */
function respelled<T>(value: T): T {
  if (typeof value === "string") return spelled(value) as T;
  if (Array.isArray(value)) return value.map(respelled) as T;
  if (typeof value !== "object" || value === null) return value;
  return merge(...Object.entries(value).map(([key, one]) => ({ [spelled(key)]: respelled(one) }))) as T;
}

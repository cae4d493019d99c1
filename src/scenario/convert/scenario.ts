/** Makes the text of a scenario from a network and its flows, and the lists of flows beside it. */
import { ScenarioError, WeirError } from "../../base/error.js";
import { filled } from "../../base/fields.js";
import { formatRate, formatSize, formatTime } from "../../base/units.js";
import { kLargestFile } from "../../base/yaml.js";
import { kPriorities } from "../../wire/priority.js";
import { linkDefaultsSchema } from "../device_schema.js";
import { headroomOfLink } from "../headroom.js";
import { parseScenarioText } from "../scenario.js";
import { type Converted, hostName, type Network, type NetworkFlow, namesOf } from "./network.js";

/** Bytes that the ports of a switch share, as in HPCC's config.txt. Headroom comes on top. */
const kShared = 32e6;
const kMegabyte = 1e6;
/** Longest message; a larger flow has several. */
const kLongestMessage = 2 ** 31;
/** Slack of the flows: a factor over the time that the busiest link needs at its rate, and a least time beyond it, ns. */
const kSlack = 1.25;
const kLeastTail = 1e6;
const kLongest = 3_600e9;

export interface ScenarioFile {
  /** Text of the scenario, YAML. */
  text: string;
  /** CSV files that the scenario names. */
  lists: readonly { name: string; text: Iterable<string> }[];
  notes: readonly string[];
}

/**
 * @param madeBy A sentence for the first line.
 * @param listName Name of the list of flows of a priority; undefined: flows are in the scenario itself.
 * @throws ScenarioError where Weir has no such network.
 */
export function scenarioFile(
  { network, flows }: Converted,
  madeBy: string,
  listName: ((priority: number) => string) | undefined,
): ScenarioFile {
  const all = flows?.flows ?? [];
  const name = namesOf(network);
  const used = [...new Set(all.map(({ priority }) => priority))].sort();
  const lossless = used.length === 0 ? [3] : used;
  const duration = durationOf(network, all);
  const head = {
    ...(duration !== undefined && { duration: short(formatTime(duration)) }),
    topology: topologyOf(network),
    switch: {
      buffer: { total: short(formatSize(memoryOf(network))), headroom: "auto" },
      pfc: { priorities: lossless },
      ecn: { priorities: lossless },
    },
    transport: { type: "rc" },
  };
  const entries =
    listName === undefined
      ? all.map((flow, i) => entryOf(flow, i, name))
      : used.map((priority) => ({ id: listId(priority, used), pattern: "list", csv: listName(priority), priority }));
  checkNetwork(head, madeBy);
  const text = `# ${madeBy}\n${yamlOf({ ...head, ...(entries.length > 0 && { traffic: entries }) })}`;
  if (Buffer.byteLength(text) > kLargestFile) {
    throw new WeirError(`the scenario would have ${Buffer.byteLength(text)} bytes; the limit is ${kLargestFile}`, {
      hint:
        listName === undefined && all.length > 0
          ? "with --output flows are a list of their own"
          : "`kind` of a topology has fat trees and others in a line",
    });
  }
  return {
    text,
    lists:
      listName === undefined
        ? []
        : used.map((priority) => ({
            name: listName(priority),
            text: listOf(
              all.filter((flow) => flow.priority === priority),
              name,
            ),
          })),
    notes: [
      ...network.notes,
      ...(flows?.notes ?? []),
      `buffers are not in these files: switches have ${formatSize(kShared)} to share, as in HPCC's config.txt, and headroom by their links`,
      "congestion control, marking and MTU are not in these files either: they are Weir's defaults (DCQCN), with reliable connections",
      ...(duration === undefined
        ? []
        : [
            `duration is a guess, from the busiest host's link: ${formatTime(duration)}; results say which flows are incomplete`,
          ]),
    ],
  };
}

const listId = (priority: number, used: readonly number[]) => (used.length === 1 ? "flows" : `flows-${priority}`);
const short = (quantity: string) => quantity.replace(/ /g, "").replace("/s", "ps");

type Name = (node: number) => string;

function entryOf({ from, to, priority, bytes, start }: NetworkFlow, i: number, name: Name): object {
  const message = Math.min(bytes, kLongestMessage);
  const id = `flow${i + 1}`;
  return { id, from: name(from), to: name(to), priority, start: `${start}ns`, bytes, message };
}

function* listOf(flows: readonly NetworkFlow[], name: Name): Iterable<string> {
  yield "src,dst,size_bytes,start_ns\n";
  for (const { from, to, bytes, start } of flows) yield `${name(from)},${name(to)},${bytes},${start}\n`;
}

function topologyOf(network: Network): object {
  const { hosts, switches, links, machines } = network;
  const name = namesOf(network);
  const machineOf = new Map([...machines].flatMap(([host, nics]) => nics.map((nic) => [nic, hostName(host)] as const)));
  const machine = (host: number) => machineOf.get(host);
  const usual = { rate: most(links.map(({ rate }) => rate)), delay: most(links.map(({ delay }) => delay)) };
  return {
    link: { rate: short(formatRate(usual.rate)), delay: short(formatTime(usual.delay)) },
    hosts:
      machines.size === 0
        ? hosts.map(name)
        : Object.fromEntries(
            hosts.map((host) => [name(host), machine(host) === undefined ? null : { machine: machine(host) }]),
          ),
    switches: switches.map(name),
    links: links.map(({ from, to, rate, delay, loss }) => {
      const own = {
        ...(rate !== usual.rate && { rate: short(formatRate(rate)) }),
        ...(delay !== usual.delay && { delay: short(formatTime(delay)) }),
        ...(loss > 0 && { impairment: { loss } }),
      };
      const plain = Object.keys(own).length === 0;
      return plain ? `${name(from)} -- ${name(to)}` : { from: name(from), to: name(to), ...own };
    }),
  };
}

/** The most frequent value; the first of several. */
function most(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce(([best, n], [value, count]) => (count > n ? [value, count] : [best, n]), [0, 0])[0];
}

/** Memory that the ports share, and the headroom of the switch whose links need most; whole megabytes. */
function memoryOf({ switches, links }: Network): number {
  const { mtu } = filled(linkDefaultsSchema, {});
  const needed = new Map(switches.map((node) => [node, 0]));
  for (const { from, to, rate, delay } of links) {
    const bytes = kPriorities.length * headroomOfLink({ rate, delay, mtu });
    for (const end of [from, to]) if (needed.has(end)) needed.set(end, (needed.get(end) ?? 0) + bytes);
  }
  const reserved = [...needed.values()].reduce((largest, bytes) => Math.max(largest, bytes), 0);
  return kShared + Math.ceil(reserved / kMegabyte) * kMegabyte;
}

/** Duration until the last flow has begun and all might be done: as long as the host's link with most to carry needs, and some more. */
function durationOf({ links }: Network, flows: readonly NetworkFlow[]): number | undefined {
  if (flows.length === 0) return undefined;
  const rates = new Map(links.flatMap(({ from, to, rate }) => [[from, rate] as const, [to, rate] as const]));
  const [sent, received] = [new Map<number, number>(), new Map<number, number>()];
  let [last, busiest] = [0, 0];
  for (const { from, to, bytes, start } of flows) {
    last = Math.max(last, start);
    for (const [carried, host] of [
      [sent, from],
      [received, to],
    ] as const) {
      const sum = (carried.get(host) ?? 0) + bytes;
      carried.set(host, sum);
      busiest = Math.max(busiest, (sum * 8e9) / (rates.get(host) ?? Number.POSITIVE_INFINITY));
    }
  }
  const needed = last + Math.max(kLeastTail, kSlack * busiest);
  const digit = 10 ** Math.max(0, Math.floor(Math.log10(needed)) - 1);
  return Math.min(kLongest, Math.ceil(needed / digit) * digit);
}

/** Checks the network before its flows. No file has the lines of this text, so problems are reported by their fields alone. */
function checkNetwork(head: object, source: string): void {
  try {
    parseScenarioText(yamlOf(head));
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error;
    const problems = error.problems.map(({ line: _, column: _c, ...problem }) => problem);
    throw new ScenarioError(`(${source.replace(/\.$/, "")})`, problems);
  }
}

/** Writes two levels in blocks; below them a link or a flow is a line, and lists of names are as long as a line is. */
function yamlOf(sections: object): string {
  return Object.entries(sections)
    .map(([name, section]) => {
      if (Array.isArray(section)) return `${name}:\n${section.map((one) => `  - ${inline(one)}\n`).join("")}`;
      if (typeof section !== "object") return `${name}: ${inline(section)}\n`;
      return `${name}:\n${Object.entries(section as object)
        .map(([field, value]) => `  ${field}: ${field === "links" ? lines(value) : wrapped(inline(value))}\n`)
        .join("")}`;
    })
    .join("");
}

const lines = (list: readonly unknown[]) => `\n${list.map((one) => `    - ${inline(one)}`).join("\n")}`;

/** Breaks a line after commas. */
const wrapped = (text: string) =>
  text
    .replace(/(.{1,120}(?:, |$))/g, "$1\n    ")
    .trimEnd()
    .replace(/ +$/gm, "");

function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${Object.entries(value)
      .map(([key, one]) => `${key}: ${inline(one)}`)
      .join(", ")} }`;
  }
  // Names of nodes and quantities need no quotes; the name of a file may be anything.
  return typeof value === "string" && !/^\w[\w.-]*( -- \w+)?$/.test(value) ? JSON.stringify(value) : String(value);
}

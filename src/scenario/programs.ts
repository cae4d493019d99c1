// Traffic of kernels and programs of hosts: the entries of the `traffic` section that make no flows of RDMA.
import { basename } from "node:path";
import { filled } from "../base/fields.js";
import type { TrafficContext } from "./traffic_entry.js";
import { type PatternInput, programSchema, type TrafficInput, tcpSchema } from "./traffic_schema.js";
import type { Program, TcpStream } from "./types.js";

/** One entry, and its place in the file. */
interface Placed<Input> {
  input: Input;
  path: readonly (string | number)[];
}

const listed = (one: string | readonly string[]): readonly string[] => (typeof one === "string" ? [one] : one);

/** One stream for each sender, and each of its connections. Errors go to `context.found`. */
export function resolveTcp(entries: readonly TrafficInput[], context: TrafficContext): TcpStream[] {
  return ofPattern(entries, "tcp").flatMap(({ input, path }) => {
    const { pattern: _, from, streams, ...own } = filled(tcpSchema, input);
    const senders = listed(from);
    checkHosts(senders, [...path, "from"], context);
    checkHosts([own.to], [...path, "to"], context);
    if (senders.includes(own.to)) {
      context.found.problem([...path, "from"], `${own.to} sends to itself`, "sender and receiver must differ");
    }
    const group = own.id ?? "tcp";
    return senders.flatMap((host) =>
      Array.from({ length: streams }, (_, i) => ({
        ...own,
        id: numbered(senders.length > 1 ? `${group}/${host}` : group, i + 1),
        from: host,
        dscp: own.dscp ?? context.dscpOf(host, own.priority),
        stop: Math.min(own.stop ?? context.duration, context.duration),
      })),
    );
  });
}

/** Whether a run is to wait for one of its programs before it ends. */
export function awaitsPrograms({ programs }: { programs: readonly Pick<Program, "background">[] }): boolean {
  return programs.some(({ background }) => !background);
}

/** One program for each host of an entry. Errors go to `context.found`. */
export function resolvePrograms(entries: readonly TrafficInput[], context: TrafficContext): Program[] {
  const placed = ofPattern(entries, "program");
  const used = new Map<string, number>();
  const groups = placed.map(({ input }) => {
    const name = input.id ?? programName(input.run);
    const number = (used.get(name) ?? 0) + 1;
    used.set(name, number);
    return numbered(name, number);
  });
  const members = new Map<string, string[]>();
  placed.forEach(({ input }, i) => {
    const [group = "", hosts] = [groups[i], listed(input.on)];
    members.set(
      group,
      hosts.map((host) => (hosts.length > 1 ? `${group}/${host}` : group)),
    );
  });
  checkOrder(placed, groups, context);
  return placed.flatMap(({ input, path }, i) => {
    const { pattern: _, on, after = [], ...own } = filled(programSchema, input);
    const hosts = listed(on);
    checkHosts(hosts, [...path, "on"], context);
    const before = listed(after).flatMap((one) => members.get(one) ?? []);
    return hosts.map((host, k) => ({ ...own, id: members.get(groups[i] ?? "")?.[k] ?? "", host, after: before }));
  });
}

function ofPattern<Name extends "tcp" | "program">(
  entries: readonly TrafficInput[],
  name: Name,
): Placed<PatternInput<Name>>[] {
  return entries.flatMap((input, i) =>
    input.pattern === name ? [{ input: input as PatternInput<Name>, path: ["traffic", i] }] : [],
  );
}

const numbered = (id: string, number: number) => (number > 1 ? `${id}#${number}` : id);

/** Name of a command's program: "ib_write_bw" of "ib_write_bw -D 5", with or without its folder. */
function programName(command: string): string {
  const [word = ""] = command.trim().split(/\s+/);
  return /^[A-Za-z0-9_][\w.-]*$/.exec(basename(word))?.[0] ?? "program";
}

function checkHosts(names: readonly string[], path: readonly (string | number)[], context: TrafficContext): void {
  names.forEach((name, i) => {
    if (!context.hosts.includes(name)) context.found.unknown(path, "host", name, context.hosts);
    else if (names.indexOf(name) !== i) context.found.problem(path, `${name} is there twice`, "name each host once");
  });
}

/** Finds programs that wait for one another, or for one that does not exist: they would wait for ever. */
function checkOrder(
  placed: readonly Placed<PatternInput<"program">>[],
  groups: readonly string[],
  { found }: TrafficContext,
): void {
  const waits = new Map(placed.map(({ input }, i) => [groups[i] ?? "", listed(input.after ?? [])]));
  placed.forEach(({ input, path }, i) => {
    const own = groups[i] ?? "";
    for (const one of listed(input.after ?? [])) {
      if (!waits.has(one)) found.unknown([...path, "after"], "program", one, groups);
    }
    if (reaches(own, own, waits, new Set())) {
      found.problem([...path, "after"], `${own} waits for itself`, "leave one `after` of the circle out");
    }
  });
}

function reaches(from: string, to: string, waits: ReadonlyMap<string, readonly string[]>, seen: Set<string>): boolean {
  return (waits.get(from) ?? []).some((next) => {
    if (next === to) return true;
    if (seen.has(next)) return false;
    seen.add(next);
    return reaches(next, to, waits, seen);
  });
}

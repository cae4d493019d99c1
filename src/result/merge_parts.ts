/** Merges the results of all parts of a lab into one, of the whole scenario. */
import { WeirError } from "../base/error.js";
import { nonZero } from "../native/counters.js";
import { Fabric } from "../scenario/fabric.js";
import type { Scenario } from "../scenario/types.js";
import { Completions, type FlowCompletion, hasEnd } from "./completions.js";
import { runFacts } from "./device_results.js";
import { goodputLimit } from "./goodput_limit.js";
import { groupResults } from "./groups.js";
import { nothingSent } from "./nothing.js";
import type { Fidelity, FlowResult, MergedResult, PartResult, Result, Series } from "./result.js";
import { mapSamples } from "./series.js";
import { jainIndex } from "./statistics.js";

/** One part's run as read from its folder. */
export interface PartOfRun {
  /** Folder that it was read from, for messages. */
  folder: string;
  result: Result & { part: PartResult; frames: NonNullable<Result["frames"]> };
  series: Series;
  completions: readonly Pick<FlowCompletion, "flow" | "message" | "bytes" | "start_ns" | "end_ns">[];
}

export interface Merged {
  result: Result;
  series: Series;
  /** Completions in the order of time. */
  flowTable: readonly FlowCompletion[];
}

/** @throws WeirError where the parts are not those of one run, or not all. */
export function mergeParts(scenario: Scenario, given: readonly PartOfRun[]): Merged {
  const parts = inOrder(scenario, given);
  const results = parts.map(({ result }) => result);
  const [first] = results as [Result];
  const until = Math.min(...results.map(({ until_s, duration_s }) => until_s ?? duration_s));
  const completions = completionsOf(scenario, parts);
  const flows = flowsOf(scenario, results, completions);
  const goodputs = flows.map(({ goodput_bps }) => goodput_bps);
  const facts = runFacts(scenario);
  const limit = goodputLimit(scenario, facts.payload_share);
  const feedback = results.flatMap(({ totals }) => totals.feedback_per_s ?? []);
  const merged = { ...crossings(parts), marked_on_the_way: markedOnTheWay(results, flows) };
  const frames = framesOf(results, merged);
  const table = [...completions.table].sort((a, b) => a.end_ns - b.end_ns);
  const fct = completions.result(until * 1e9);
  const result: Result = {
    scenario: scenario.name,
    clock: "wire",
    scale: first.scale,
    ...facts,
    ...(until < facts.duration_s && { until_s: until }),
    fidelity: judge(results, frames, merged),
    flows,
    totals: {
      goodput_bps: sum(results, ({ totals }) => totals.goodput_bps),
      jain: jainIndex(goodputs),
      ...(feedback.length > 0 && { feedback_per_s: sum(feedback, (one) => one) }),
      ...(limit !== undefined && { goodput_limit_bps: limit }),
    },
    groups: groupResults(scenario, goodputs, table),
    ...(fct !== undefined && { fct }),
    frames,
    merged,
    switches: Object.assign({}, ...results.map(({ switches }) => switches)),
    nics: Object.assign({}, ...results.map(({ nics }) => nics)),
    ...(scenario.transport.type === "rc" && { transport: addedUp(results.map(({ transport }) => transport ?? {})) }),
  };
  return { result, series: seriesOf(parts), flowTable: table };
}

const sum = <T>(list: readonly T[], value: (one: T) => number) => list.reduce((all, one) => all + value(one), 0);

function addedUp(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = [...new Set(counts.flatMap((one) => Object.keys(one)))];
  return nonZero(names.map((name) => [name, sum(counts, (one) => one[name] ?? 0)] as const));
}

function inOrder(scenario: Scenario, given: readonly PartOfRun[]): PartOfRun[] {
  const names = scenario.parts.map(({ name }) => name);
  const [first] = given;
  for (const [i, { folder, result }] of given.entries()) {
    const { name, digest, run } = result.part;
    const same = given.find((one, j) => j < i && one.result.part.name === name);
    const of = first?.result.part;
    if (same !== undefined) throw new WeirError(`${same.folder} and ${folder} are both of part ${name}`);
    if (digest !== of?.digest) {
      throw new WeirError(
        `${first?.folder} and ${folder} are of different scenarios, or of one that was set differently`,
      );
    }
    if (run !== of.run) {
      throw new WeirError(`${first?.folder} and ${folder} are of different runs`, {
        hint: "give the folders that the parts wrote in the same run",
      });
    }
  }
  return names.map((name) => {
    const found = given.find(({ result }) => result.part.name === name);
    if (found !== undefined) return found;
    throw new WeirError(`part ${name} is missing`, {
      hint: `the scenario has ${names.join(", ")}: give a folder of each`,
    });
  });
}

function completionsOf(scenario: Scenario, parts: readonly PartOfRun[]): Completions {
  const completions = new Completions(scenario, new Fabric(scenario));
  for (const row of parts.flatMap((part) => part.completions)) {
    if (row.flow >= scenario.flows.length) continue;
    completions.complete({ ...row, start: row.start_ns, end: row.end_ns });
  }
  return completions;
}

/** Results of flows, in the scenario's order. */
function flowsOf(scenario: Scenario, results: readonly Result[], completions: Completions): FlowResult[] {
  const found = new Map<string, FlowResult[]>();
  for (const flow of results.flatMap(({ flows }) => flows)) found.set(flow.id, [...(found.get(flow.id) ?? []), flow]);
  return scenario.flows.flatMap(({ id, ...flow }, number) => {
    const own = found.get(id) ?? [];
    const [sender, receiver] = (["sender", "receiver"] as const).map((end) => own.find((one) => one.end === end));
    if (sender === undefined || receiver === undefined) return own;
    const { end: _, ...received } = receiver;
    const { packets, cnp_handled, cnm_handled, cnm_lowest } = sender;
    const stream = scenario.transport.type === "stream";
    const both: FlowResult = {
      ...received,
      packets,
      lost: stream ? Math.max(0, packets - (received.received ?? 0)) : received.lost,
      cnp_handled,
      ...(cnm_handled !== undefined && { cnm_handled, cnm_lowest }),
    };
    // The rate is over the flow's own lifetime, whose end only one part knew.
    const asked = { ...flow, id };
    if (!hasEnd(asked) || !completions.done(number)) return [both];
    const bytes = flow.bytes ?? sum(flow.sizes ?? [], (size) => size);
    const seconds = ((completions.latest[number] as number) - flow.start) / 1e9;
    const goodput = seconds > 0 ? (bytes * 8) / seconds : 0;
    const share = received.goodput_bps > 0 ? received.wire_bps / received.goodput_bps : 0;
    return [{ ...both, goodput_bps: goodput, wire_bps: goodput * share }];
  });
}

/** Account of each part, and of the frames between them. */
function crossings(parts: readonly PartOfRun[]): Pick<MergedResult, "parts" | "links"> {
  const ends = parts.flatMap(({ result }) => result.part.links.map((end) => ({ ...end, at: result.part.name })));
  return {
    parts: parts.map(({ result: { part, fidelity } }) => ({
      name: part.name,
      valid: fidelity.valid,
      reasons: fidelity.reasons,
    })),
    links: ends.map(({ link, at, part, sent }) => {
      const received = ends.find((end) => end.link === link && end.at === part)?.received ?? 0;
      return { link, from: at, to: part, sent, received, lost: sent - received };
    }),
  };
}

/**
 * Packets that were marked between the parts. A copy that an impairment made may be marked, too: where there are some, nothing can be said.
 */
function markedOnTheWay(results: readonly Result[], flows: readonly FlowResult[]): number {
  if (results.some(({ frames }) => (frames?.duplicated ?? 0) > 0)) return 0;
  const seen = sum(flows, ({ ecn_marked = 0 }) => ecn_marked);
  const marked = sum(results, ({ switches }) => sum(Object.values(switches), ({ ecn_marked }) => ecn_marked));
  return Math.max(0, seen - marked);
}

function framesOf(results: readonly Result[], { links }: Pick<MergedResult, "links">): NonNullable<Result["frames"]> {
  const all = results.flatMap(({ frames }) => frames ?? []);
  const total = (name: "sent" | "received" | "dropped" | "duplicated" | "impaired" | "missing") =>
    sum(all, (frames) => frames[name]);
  const lost = sum(links, (link) => link.lost);
  const inNetwork = sum(all, ({ in_network = 0 }) => in_network);
  return {
    sent: total("sent"),
    received: total("received"),
    dropped: total("dropped"),
    duplicated: total("duplicated"),
    impaired: total("impaired"),
    missing: total("missing") + lost,
    ...(inNetwork > 0 && { in_network: inNetwork }),
  };
}

/** All parts are valid together or none is. */
function judge(
  results: readonly Result[],
  { sent, received, missing }: NonNullable<Result["frames"]>,
  { parts, links, marked_on_the_way }: MergedResult,
): Fidelity {
  const all = results.map(({ fidelity }) => fidelity);
  const worst = (value: (one: Fidelity) => number | undefined) => Math.max(0, ...all.map((one) => value(one) ?? 0));
  const reasons = parts.flatMap(({ name, reasons }) => reasons.map((reason) => `part ${name}: ${reason}`));
  for (const { link, from, to, sent, received, lost } of links) {
    if (lost === 0) continue;
    reasons.push(
      `${sent} frames went from part ${from} to ${to} on ${link}, and ${received} came: the network between them loses frames, or has some of another lab`,
    );
  }
  const nothing = nothingSent({ sent, received });
  if (nothing !== undefined) reasons.push(nothing);
  if (missing !== 0) reasons.push(`${missing} frames are not accounted for`);
  if (marked_on_the_way > 0) {
    reasons.push(
      `at least ${marked_on_the_way} packets were marked (ECN) on the way between parts, where there is no switch of the scenario: the network between them is congested`,
    );
  }
  return {
    valid: reasons.length === 0,
    reasons,
    loop_gap_us: {
      p50: worst((one) => one.loop_gap_us.p50),
      p99: worst((one) => one.loop_gap_us.p99),
      max: worst((one) => one.loop_gap_us.max),
    },
    cpu_wait_ms: worst((one) => one.cpu_wait_ms),
    timer_lateness_us: {
      p99: worst((one) => one.timer_lateness_us?.p99),
      max: worst((one) => one.timer_lateness_us?.max),
    },
    host_drops: sum(all, (one) => one.host_drops),
    ...(all.some((one) => one.completion_delay_us !== undefined) && {
      completion_delay_us: worst((one) => one.completion_delay_us),
    }),
    capture_dropped: sum(all, (one) => one.capture_dropped ?? 0),
    stragglers: sum(all, (one) => one.stragglers ?? 0),
    tuning: [...new Set(all.flatMap((one) => one.tuning ?? []))],
  };
}

/**
 * The series are as long as the shortest. A flow with an end in each of two parts has its sender's samples from one, its receiver's goodput
 * from the other.
 */
function seriesOf(parts: readonly PartOfRun[]): Series {
  const shortest = parts.reduce((least, one) => (one.series.time_s.length < least.series.time_s.length ? one : least));
  const { interval_s, time_s } = shortest.series;
  const cut = parts.map(({ series }) => mapSamples(series, (samples) => samples.slice(0, time_s.length)));
  const flows: Series["flows"] = {};
  for (const [i, { result }] of parts.entries()) {
    const ends = new Map(result.flows.map(({ id, end }) => [id, end]));
    for (const [id, samples] of Object.entries(cut[i]?.flows ?? {})) {
      const { goodput_bps, ...sent } = samples;
      const end = ends.get(id);
      const got = goodput_bps === undefined ? {} : { goodput_bps };
      flows[id] = { ...flows[id], ...(end === undefined ? samples : end === "sender" ? sent : got) };
    }
  }
  const union = <T>(pick: (series: (typeof cut)[number]) => Record<string, T> | undefined) =>
    Object.assign({}, ...cut.map((one) => pick(one) ?? {})) as Record<string, T>;
  const [pauses, cnps, marks, cnms] = (["pauses", "cnps", "marks", "cnms"] as const).map((kind) =>
    union((series) => series[kind]),
  ) as [Record<string, number[]>, Record<string, number[]>, Record<string, number[]>, Record<string, number[]>];
  return {
    ...{ interval_s, time_s, flows, queues: union((series) => series.queues), pauses, cnps, marks },
    ...(Object.keys(cnms).length > 0 && { cnms }),
  };
}

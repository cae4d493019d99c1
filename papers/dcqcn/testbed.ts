/**
 * Common parts of the experiments on the testbed of figure 2: repeated runs, rates as the paper counts them, and readings of its words.
 *
 * Rates are those on the link, with headers, FCS, preamble and gap: shares of 40 Gb/s. A payload of 1024 bytes takes 1106 of the
 * link, so goodput is 1 / 1.080 of it.
 */
import type { Curve } from "../../src/result/report/plot.js";
import { spread } from "../../src/result/statistics.js";
import { kEthernetOverhead, kHeaderBytes } from "../../src/wire/frame_size.js";
import { type Evidence, type QuantityCheck, repeatName, type Trial } from "../engine/experiment.js";
import { atLeast, atMost, within } from "../engine/study.js";

/** Capacity of every link, Gb/s. */
export const kLink = 40;

/** Differences of the two settings from the scenarios. */
export const kSettings = {
  pfc: { label: "PFC", set: ["congestion.algorithm=none"] },
  dcqcn: { label: "DCQCN", set: [] },
} as const;
export type Setting = keyof typeof kSettings;

/** Words that are no numbers, and numbers that are read off a bar: the same for all figures. */
export const kWords =
  "Of two values, one is higher (lower, better, worse) from 10% on; what differs by less is equal, nearly identical, or a little change. Much and rapidly are a factor of 2. A number that the paper prints is met within 20%; over and less than are bounds.";
export const kRates =
  "Throughput counts headers, FCS, preamble and gap, as shares of 40 Gb/s do. Whether the paper's does is not said; payload is 1/1.08 of it.";

/** Overrides for long flows that the wire runs, too: without acknowledgements there is less to carry. */
export const kStream = "transport.type=stream";
export const kStreams =
  "What the wire runs too is a stream without acknowledgements on both clocks; what virtual time alone runs is a reliable connection.";

const kEqual = 0.1;

export const equal = <Name extends string>(quantity: Name, value: number): QuantityCheck<Name> =>
  within(quantity, value * (1 - kEqual), value * (1 + kEqual));
/** Checks a change in %. */
export const little = <Name extends string>(quantity: Name): QuantityCheck<Name> => atMost(quantity, 100 * kEqual);
/** Check a ratio. */
export const higher = <Name extends string>(quantity: Name): QuantityCheck<Name> => atLeast(quantity, 1 + kEqual);
export const lower = <Name extends string>(quantity: Name): QuantityCheck<Name> => atMost(quantity, 1 - kEqual);
export const printed = <Name extends string>(quantity: Name, value: number): QuantityCheck<Name> =>
  within(quantity, 0.8 * value, 1.2 * value);

/** One trial for each seed from 1 on; together they are found by `repeats`. */
export function repeated(name: string, trial: Omit<Trial, "name">, seeds: number): Trial[] {
  return Array.from({ length: seeds }, (_, i) => ({
    ...trial,
    name: repeatName(name, i + 1),
    set: [...trial.set, `seed=${i + 1}`],
  }));
}

/** Returns those of `repeated` that this clock has. */
export function repeats(runs: Readonly<Record<string, Evidence>>, name: string): Evidence[] {
  const found: Evidence[] = [];
  for (let seed = 1; runs[repeatName(name, seed)] !== undefined; seed++) {
    found.push(runs[repeatName(name, seed)] as Evidence);
  }
  return found;
}

/** Rates on the link of the flows of a traffic entry, Gb/s: "users#3" and "rebuild/h1-1" are of "users" and "rebuild". */
export function linkRates({ result }: Evidence, entry: string): number[] {
  return result.flows.filter(({ id }) => id.split(/[/#]/)[0] === entry).map(({ wire_bps }) => wire_bps / 1e9);
}

/** Bytes of the link for a byte of payload in full packets of 1,024 bytes. */
export const kOfPayload = (1024 + kHeaderBytes + kEthernetOverhead) / 1024;

/** Rates on the link of the complete transfers of a traffic entry, Gb/s; 0: none was complete. */
export function completedRates({ result }: Evidence, entry: string): Record<"p10" | "p50", number> {
  const { p10, p50 } = result.groups?.[entry]?.transfers?.throughput_bps ?? { p10: 0, p50: 0 };
  const rate = (bps: number) => (bps / 1e9) * kOfPayload;
  return { p10: rate(p10), p50: rate(p50) };
}

/** Rate on the link of all flows from a host, Gb/s. */
export function rateFrom({ result }: Evidence, host: string): number {
  return result.flows.reduce((sum, { from, wire_bps }) => sum + (from === host ? wire_bps / 1e9 : 0), 0);
}

/** PFC frames of the paper's priority that these switches received or sent, per second of the run. */
export function pauseFrames(
  { result }: Evidence,
  way: "pfc_received" | "pfc_sent",
  switches: readonly string[],
): number {
  const frames = switches.map((name) => result.switches[name]?.[way]?.["3"] ?? 0);
  return frames.reduce((sum, count) => sum + count, 0) / result.duration_s;
}

/** Time that these links were paused, summed up over them, s per s of the run; not known of a lab. */
export function timePaused({ result }: Evidence, from = /./, to = /./): number | undefined {
  const links = result.links?.filter((link) => from.test(link.from) && to.test(link.to));
  return links && links.reduce((sum, { pause_time_s }) => sum + (pause_time_s["3"] ?? 0), 0) / result.duration_s;
}

/** Largest difference of a list from `reference`, %. */
export function change(values: readonly number[], reference: number): number {
  return Math.max(...values.map((value) => 100 * Math.abs(value / reference - 1)));
}

/** Medians of several runs each, with whiskers from the least to the most of them. */
export function whiskers(label: string, x: readonly number[], runs: readonly (readonly number[])[]): Curve {
  const all = runs.map(spread);
  return {
    label,
    kind: "bars",
    x,
    y: all.map(({ p50 }) => p50),
    low: all.map(({ min }) => min),
    high: all.map(({ max }) => max),
  };
}

/**
 * Returns the rate of each `size` bytes that a host sends, one after another from the end of the warm-up on, by when they were
 * delivered; Gb/s on the link.
 */
export function transferRates({ result, series }: Evidence, host: string, size: number, warmup: number): number[] {
  const flow = result.flows.find(({ from }) => from === host)?.id ?? "";
  const { goodput_bps = [] } = series.flows[flow] ?? {};
  const found: number[] = [];
  let left = size;
  let began: number | undefined;
  goodput_bps.forEach((bps, i) => {
    const end = series.time_s[i] as number;
    let at = end - series.interval_s;
    if (at < warmup) return;
    began ??= at;
    let bytes = (bps * series.interval_s) / 8;
    while (bytes >= left) {
      at += (8 * left) / bps;
      found.push(((8 * size) / (at - began) / 1e9) * kOfPayload);
      bytes -= left;
      left = size;
      began = at;
    }
    left -= bytes;
  });
  return found;
}

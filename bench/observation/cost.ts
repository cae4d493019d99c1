/**
 * What it costs the data path to be looked at: each round has every way to look at one pair of daemons in turn, "off" twice, so what
 * else the machine does hits all alike, and the second "off" shows what chance alone makes of a ratio.
 *
 * Two ratios tell two costs apart. **rate**: frames/s beside "off", with all that an observer takes from CPUs which sources and
 * receivers of traffic also use. **work**: frames for each second that the data path itself was on a CPU, beside "off".
 */
import { setTimeout as sleep } from "node:timers/promises";
import { max, median, min } from "simple-statistics";
import { kBackends } from "../dataplane/nic_bed.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { DAEMON_MODES } from "./observers.js";
import { pairedRatio } from "./ratio.js";
import { type Slice, type Subject, withNics, withRecording, withSwitch } from "./subjects.js";

export const name = "observation";
export const title = "The data path while it is looked at, beside nobody looking";

/** A scrape a second is one scrape in each slice. */
const kSeconds = 1;
/** What the previous observer has set in motion comes to rest. */
const kPauseMs = 100;
/** Of a ratio: the requirement. */
const kTolerance = 0.03;

const kSubjects = [
  ...kBackends.flatMap((backend) => [
    { label: `switch, ${backend}`, use: withSwitch, backend, modes: DAEMON_MODES },
    { label: `NIC pair, ${backend}`, use: withNics, backend, modes: DAEMON_MODES },
  ]),
  // Labs have packet sockets.
  { label: "switch of a lab", use: withRecording, backend: "af_packet", modes: ["off", "off again", "records"] },
] as const;
/** What each sees at least in a second, or it is not what it is called: scrapes, frames, bytes, records. */
const kLeast: Readonly<Record<string, number>> = { metrics: 0.7, dashboard: 18, capture: 100_000, records: 900 };

type Looked = Slice & { seen: number };

export async function run(options: BenchOptions): Promise<Row[]> {
  const repeats = options.quick ? 3 : 10;
  const rows: Row[] = [];
  for (const { label, use, backend, modes } of kSubjects) {
    const wanted = modes.filter((mode) => options.wants(rowName(label, mode)));
    if (wanted.length === 0) continue;
    process.stderr.write(`  ${label}\n`);
    const all = [...new Set(["off", ...wanted])];
    const slices = await use(backend, (subject) => interleaved(subject, all, repeats));
    rows.push(...all.map((mode) => toRow(rowName(label, mode), mode, slices)));
  }
  return rows;
}

const rowName = (subject: string, mode: string) => `${subject}, ${mode}`;

async function interleaved(
  subject: Subject,
  modes: readonly string[],
  repeats: number,
): Promise<Map<string, Looked[]>> {
  const slices = new Map<string, Looked[]>(modes.map((mode) => [mode, []]));
  for (let round = 0; round < repeats; round++) {
    // Forwards and backwards, each time from another one on: no mode always comes behind the same.
    const turn = modes.map((_, i) => modes[(round + i) % modes.length] as string);
    for (const mode of round % 2 === 0 ? turn : turn.reverse()) {
      const observer = await subject.look(mode);
      const began = performance.now();
      const slice = await subject.measure(kSeconds);
      const looked = (performance.now() - began) / 1000;
      slices.get(mode)?.push({ ...slice, seen: (await observer.stop()) / looked });
      await sleep(kPauseMs);
    }
  }
  return slices;
}

function toRow(row: string, mode: string, slices: ReadonlyMap<string, readonly Looked[]>): Row {
  const [own, off] = [slices.get(mode) ?? [], slices.get("off") ?? []];
  const rates = own.map(({ rate }) => rate / 1e3);
  const middle = (of: (slice: Looked) => number) => median(own.map(of));
  const beside = (of: (slice: Slice) => number): Metric => {
    const { ratio, low, high } = pairedRatio(own.map(of), off.map(of));
    return { value: ratio, unit: "", better: "more", tolerance: kTolerance, min: low, max: high };
  };
  const seen = middle((slice) => slice.seen);
  return {
    name: row,
    metrics: {
      rate: { value: median(rates), unit: "kpps", min: min(rates), max: max(rates) },
      ...(mode !== "off" && { "rate to off": beside(({ rate }) => rate), "work to off": beside(({ work }) => work) }),
      "data path CPU": { value: 100 * middle(({ workers }) => workers), unit: "%" },
      "other threads CPU": { value: 100 * middle(({ rest }) => rest), unit: "%" },
      ...(mode in kLeast && { seen: { value: seen, unit: "/s" } }),
    },
    ...(seen < (kLeast[mode] ?? 0) && { note: "saw less than it is meant to" }),
  };
}

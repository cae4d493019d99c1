/**
 * What it costs the data path to be looked at: each round has every way to look at one pair of daemons in turn, "off" twice, so what
 * else the machine does hits all alike, and the second "off" shows what chance alone makes of a ratio.
 *
 * Two ratios tell two costs apart. **rate**: frames/s beside "off", with all that an observer takes from CPUs which sources and
 * receivers of traffic also use. **work**: frames for each second that the data path itself was on a CPU, beside "off".
 */
import { setTimeout as sleep } from "node:timers/promises";
import { max, median, min } from "simple-statistics";
import { type Backend, kBackends } from "../dataplane/nic_bed.js";
import type { BenchOptions, Metric, Row } from "../row.js";
import { checkSeen, MODES, type Mode, observe } from "./observers.js";
import { pairedRatio } from "./ratio.js";
import { type Slice, type Subject, withNics, withSwitch } from "./subjects.js";

export const name = "observation";
export const title = "The data path while it is looked at, beside nobody looking";

/** A scrape a second is one scrape in each slice. */
const kSeconds = 1;
/** What the previous observer has set in motion comes to rest. */
const kPauseMs = 100;
/** Of a ratio: the requirement. */
const kTolerance = 0.03;

const kSubjects = kBackends.flatMap((backend) => [
  { label: `switch, ${backend}`, use: withSwitch, backend },
  { label: `NIC pair, ${backend}`, use: withNics, backend },
]) satisfies { label: string; use: typeof withSwitch; backend: Backend }[];

export async function run(options: BenchOptions): Promise<Row[]> {
  const repeats = options.quick ? 3 : 12;
  const rows: Row[] = [];
  for (const { label, use, backend } of kSubjects) {
    const modes = MODES.filter((mode) => mode === "off" || options.wants(rowName(label, mode)));
    if (!modes.some((mode) => options.wants(rowName(label, mode)))) continue;
    process.stderr.write(`  ${label}\n`);
    const slices = await use(backend, (subject) => interleaved(subject, modes, repeats));
    rows.push(...modes.map((mode) => toRow(rowName(label, mode), slices.get(mode) ?? [], slices.get("off") ?? [])));
  }
  return rows;
}

const rowName = (subject: string, mode: Mode) => `${subject}, ${mode}`;

async function interleaved(subject: Subject, modes: readonly Mode[], repeats: number): Promise<Map<Mode, Slice[]>> {
  const slices = new Map<Mode, Slice[]>(modes.map((mode) => [mode, []]));
  for (let round = 0; round < repeats; round++) {
    // Each mode comes behind each other one.
    const turn = modes.map(
      (_, i) => modes[(i * (round % 2 === 0 ? 1 : modes.length - 1) + round) % modes.length] as Mode,
    );
    for (const mode of turn) {
      const observer = await observe(mode, subject.observed);
      const slice = await subject.measure(kSeconds);
      checkSeen(mode, await observer.stop(), kSeconds);
      slices.get(mode)?.push(slice);
      await sleep(kPauseMs);
    }
  }
  return slices;
}

function toRow(row: string, own: readonly Slice[], off: readonly Slice[]): Row {
  const rates = own.map(({ rate }) => rate / 1e3);
  const middle = (of: (slice: Slice) => number) => median(own.map(of));
  const beside = (of: (slice: Slice) => number): Metric => {
    const { ratio, low, high } = pairedRatio(own.map(of), off.map(of));
    return { value: ratio, unit: "", better: "more", tolerance: kTolerance, min: low, max: high };
  };
  return {
    name: row,
    metrics: {
      rate: { value: median(rates), unit: "kpps", min: min(rates), max: max(rates) },
      ...(own !== off && { "rate to off": beside(({ rate }) => rate), "work to off": beside(({ work }) => work) }),
      "data path CPU": { value: 100 * middle(({ workers }) => workers), unit: "%" },
      "other threads CPU": { value: 100 * middle(({ rest }) => rest), unit: "%" },
    },
  };
}

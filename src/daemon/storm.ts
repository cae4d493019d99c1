/** A storm of pauses on one interface, for as long as it is wanted: a NIC that does nothing else, with `host.pause_storm`. */
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import { composeNicWorker } from "../device/compose.js";
import { nicFromData } from "../device/file/load.js";
import { inspectInterface } from "../host/interface.js";
import { loadAddon } from "../native/addon.js";
import { CounterTable } from "../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, RecordKind } from "../native/types.js";

export interface StormOptions {
  interface: string;
  /** Path of the network namespace that the interface is in. Default: the process's own. */
  namespace?: string;
  /** Kind of frame: PAUSE (802.3x), which is for all priorities, or PFC. */
  by: "pfc" | "pause";
  priorities: readonly number[];
  /** Length of a pause in units of 512 bit times. */
  quanta: number;
  /** Rate of the link, bit/s: it says how long a quantum is. */
  rate: number;
  /** Length of the storm, ns; undefined: until `signal`. */
  duration: number | undefined;
}

export interface StormReport extends Omit<StormOptions, "duration" | "rate" | "namespace" | "interface"> {
  interface: string;
  rate_bps: number;
  /** Length of a frame's pause, and of the storm. */
  pause_us: number;
  duration_s: number;
  /** Frames that were sent, and that were due but not sent: the interface was down. */
  frames: number;
  discarded: number;
  /** Longest delay of a frame: beyond half a pause the peer may have gone on. */
  host_late_us: number;
  without_gaps: boolean;
}

/** Shortest pause that a host keeps up with, ns. */
export const kShortestPause = 20_000;
/** Shorter pauses are not left to a thread that sleeps in between, ns. */
const kSleepsBelow = 2e6;
const kStartMs = 2000;
const kStepMs = 2;
const kNs = 1e9;

/** ns */
export const pauseTime = (quanta: number, rate: number) => (quanta * 512 * kNs) / rate;

/**
 * Runs it to its end, with an XON, so that the peer goes on at once. @throws WeirError when there is no such interface, or it
 * cannot be had.
 */
export async function runStorm(options: StormOptions, signal: AbortSignal): Promise<StormReport> {
  const { duration, by, priorities, quanta, rate } = options;
  const pause = pauseTime(quanta, rate);
  const addon = loadAddon<NativeAddon>();
  const native = workerConfig(options);
  let failure: string | undefined;
  let closed = false;
  const worker: NativeWorker = new addon.Worker(native, () => {
    // outcome() joins the thread, which has ended then.
    if (!closed && hasEnded(worker)) failure = worker.outcome().failure ?? "the worker has ended";
  });
  try {
    asWeirError(() => worker.open());
    const table = new CounterTable(worker);
    const started = addon.monotonicNow();
    worker.begin(started);
    for (let waited = 0; worker.manifest() === undefined; waited += kStepMs) {
      if (failure !== undefined || waited >= kStartMs) throw new WeirError(failure ?? "the worker did not start");
      await sleep(kStepMs);
    }
    const elapsed = () => addon.monotonicNow() - started;
    while (!signal.aborted && failure === undefined && (duration === undefined || elapsed() < duration)) {
      const left = duration === undefined ? kNs : Math.min(kNs, duration - elapsed());
      await sleep(Math.max(kStepMs, left / 1e6), undefined, { signal }).catch(() => undefined);
    }
    if (failure !== undefined) throw new WeirError(failure);
    const length = Math.min(elapsed(), duration ?? Number.POSITIVE_INFINITY);
    const over = workerConfig({ ...options, duration: undefined });
    for (const nic of over.nics) if (nic.pause_storm !== undefined) nic.pause_storm.priorities = 0;
    worker.reconfigure(over);
    // The last frame is due when half of a pause has passed, like any other.
    await sleep(Math.min(1000, pause / 1e6) + 10 * kStepMs);
    table.refresh();
    closed = true;
    const { loop_gap, timer_lateness } = worker.outcome();
    const late = Math.max(loop_gap.max, timer_lateness.max);
    return {
      interface: options.interface,
      by,
      priorities,
      quanta,
      rate_bps: rate,
      pause_us: pause / 1e3,
      duration_s: length / kNs,
      frames: table.of("control_tx").sum(),
      discarded: table.of("down", "refused").sum(),
      host_late_us: late / 1e3,
      without_gaps: table.of("down").sum() === 0 && late < pause / 2,
    };
  } finally {
    closed = true;
    worker.close();
  }
}

function hasEnded(worker: NativeWorker): boolean {
  const records = new Float64Array(kRecordWords * 16);
  for (;;) {
    const count = worker.drainRecords(records);
    for (let i = 0; i < count; i++) {
      const [, kind, , , value] = records.subarray(i * kRecordWords, (i + 1) * kRecordWords);
      if (kind === RecordKind.ended && value === 1) return true;
    }
    if (count * kRecordWords < records.length) return false;
  }
}

function workerConfig({ interface: name, namespace, by, priorities, quanta, rate, duration }: StormOptions) {
  const { config } = nicFromData(
    {
      name: "storm",
      interface: name,
      ...(namespace !== undefined && { namespace }),
      // The address is of no use to a NIC without queue pairs.
      address: "0.0.0.0",
      metrics: false,
      rate: `${rate}bps`,
      path_mtu: 256,
      congestion: { algorithm: "none" },
      worker: { polling: pauseTime(quanta, rate) < kSleepsBelow ? "busy" : "interrupt" },
      pfc: by === "pause" ? { enabled: false, link_pause: true } : { priorities },
      pause_storm: { priorities, quanta, ...(duration !== undefined && { stop: `${Math.round(duration)}ns` }) },
    },
    "weir storm",
    { inspect: inspectInterface },
  );
  return composeNicWorker(config);
}

/** Runs a test between two ends that are connected: measures, and has the ends wait for each other. */
import { cpus } from "node:os";
import { type BandwidthTest, exchangeMessages, receiveMessages, sendMessages } from "./bandwidth.js";
import { outOfStep } from "./control.js";
import { type LatencySample, takeTurns } from "./latency.js";
import { decodeFigures, encodeFigures, type Figures, kFigureBytes } from "./messages.js";
import type { Session } from "./session.js";
import type { BandwidthSample } from "./statistics.js";

/** Results for one size of message. */
export interface Row {
  size: number;
  sample: BandwidthSample | LatencySample;
  /** In a bidirectional test, data that the other end has sent, as far as it has told. */
  peer?: BandwidthSample;
  /** ms */
  time: number;
  /** CPU time of this process, seconds, its poll thread included. */
  cpu: number;
  /** Busy part of all CPUs of the host, 0 to 1. */
  busy: number;
  /** Counts of the device meanwhile. */
  counters: Map<string, number>;
}

type OnRow = (row: Row) => void;

/** Runs the session's test to its end; `onRow` hears of every size as it is done. */
export async function run(session: Session, onRow: OnRow): Promise<void> {
  const { role, options } = session;
  if (options.bidirectional) await runBothWays(session, onRow);
  else await (role === "client" ? runClient(session, onRow) : runServer(session, onRow));
  // A write-lat for a time has no last step: the server's last WRITEs must find us here.
  if (role === "server" || (options.test === "write-lat" && options.seconds !== undefined)) await session.awaitHangUp();
}

async function runClient(session: Session, onRow: OnRow): Promise<void> {
  const { test, sizes } = session.options;
  const over = () => session.hungUp;
  let last: Row | undefined;
  for (const size of sizes) {
    if (test === "send-bw" || test === "send-lat") await session.synchronize();
    last = await measured(session, size, () =>
      test === "write-lat" || test === "send-lat" ? takeTurns(session, size, over) : sendMessages(session, test, size),
    );
    onRow(last);
    if (test === "send-bw" && sizes.length > 1) await session.synchronize();
  }
  if (test === "write-lat") return;
  await session.synchronize();
  if ((test !== "write-bw" && test !== "read-bw") || last === undefined) return;
  for (const figure of encodeFigures(figuresOf(session, last.size, last.sample as BandwidthSample)))
    await session.control.exchange(figure);
  await session.synchronize();
}

/**
 * Runs the same at both ends. After SENDs for a time nobody tells anything, as with perftest: the messages that came in are those
 * that the peer has sent.
 */
async function runBothWays(session: Session, onRow: OnRow): Promise<void> {
  const { sizes, seconds } = session.options;
  const test = session.options.test as BandwidthTest;
  const isSend = test === "send-bw";
  for (const size of sizes) {
    await session.synchronize();
    let peer: BandwidthSample | undefined;
    const row = await measured(session, size, async () => {
      if (!isSend) return sendMessages(session, test, size);
      const { sent, received } = await exchangeMessages(session, size);
      peer = received;
      return sent;
    });
    if (!isSend && sizes.length > 1) await session.synchronize();
    if (!isSend || seconds === undefined) {
      const told: Uint8Array[] = [];
      for (const figure of encodeFigures(figuresOf(session, size, row.sample as BandwidthSample)))
        told.push(await session.control.exchange(figure));
      peer = sampleOf(decodeFigures(told));
    }
    onRow({ ...row, ...(peer !== undefined && { peer }) });
    if (isSend && sizes.length > 1) await session.synchronize();
  }
  await session.synchronize();
}

async function runServer(session: Session, onRow: OnRow): Promise<void> {
  const { test, sizes } = session.options;
  if (test === "write-bw" || test === "read-bw") return serveBandwidth(session, onRow);
  if (test === "write-lat") {
    for (const size of sizes)
      onRow(await measured(session, size, () => takeTurns(session, size, () => session.hungUp)));
    return;
  }
  // The client's step behind a run begins the next one, or ends it all; with send-bw and many sizes it does not begin one.
  const hasPauses = test === "send-bw" && sizes.length > 1;
  await session.synchronize();
  for (const [i, size] of sizes.entries()) {
    if (hasPauses && i > 0) await session.synchronize();
    await session.synchronizeAfter(async (step) => {
      let isThere = false;
      const arrive = () => {
        isThere = true;
      };
      step.then(arrive, arrive);
      const work = () =>
        test === "send-bw" ? receiveMessages(session, step) : takeTurns(session, size, () => isThere);
      onRow(await measured(session, size, work));
    });
  }
  if (hasPauses) await session.synchronize();
}

/** WRITEs and READs do not need the server's application: it waits, and is told the figures. */
async function serveBandwidth(session: Session, onRow: OnRow): Promise<void> {
  const figures: Uint8Array[] = [];
  const row = await measured(session, session.options.sizes.at(-1) ?? 0, async () => {
    await session.synchronize();
    while (figures.length < 5) figures.push(await session.control.exchange(new Uint8Array(kFigureBytes)));
    return sampleOf(decodeFigures(figures));
  });
  onRow({ ...row, size: decodeFigures(figures).size });
  await session.synchronize();
}

/** Result by the client's figures. Returns nothing where it knows no rate; @throws WeirError for impossible figures. */
function sampleOf({ size, iterations, peak, average, messageRate }: Figures): BandwidthSample {
  if (!isSane(size * iterations)) throw outOfStep(`it tells of ${iterations} messages of ${size} bytes`);
  // Messages per ms: the client's other unit may not be ours.
  const perMs = messageRate * 1000;
  const sample = { messages: iterations, time: iterations / perMs, peak: (peak / average) * perMs };
  const isKnown = perMs > 0 && average > 0 && [perMs, sample.time, sample.peak].every(isSane);
  return isKnown ? sample : { messages: 0, time: 0, peak: 0 };
}

/** Tells whether a value is no infinity, and not too large for a report. */
function isSane(value: number): boolean {
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** Figures in the unit in which the session tells rates. */
export function figuresOf(session: Session, size: number, { messages, time, peak }: BandwidthSample): Figures {
  const unit = bytesPerUnit(session);
  const perSecond = time > 0 ? (messages / time) * 1000 : 0;
  return {
    size,
    iterations: messages,
    peak: (peak * 1000 * size) / unit,
    average: (perSecond * size) / unit,
    messageRate: perSecond / 1e6,
  };
}

/** Bytes of the unit, Gb/s or MiB/s. */
function bytesPerUnit({ options }: Session): number {
  return options.gbits ? 125e6 : 2 ** 20;
}

async function measured(session: Session, size: number, work: () => Promise<Row["sample"]>): Promise<Row> {
  const { device } = session;
  const before = device.counters();
  const host = cpuTimes();
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const sample = await work();
  const time = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  const counters = new Map([...device.counters()].map(([name, value]) => [name, value - (before.get(name) ?? 0)]));
  const { busy, idle } = cpuTimes();
  const passed = busy - host.busy + idle - host.idle;
  return {
    size,
    sample,
    time,
    cpu: (user + system) / 1e6,
    busy: passed > 0 ? (busy - host.busy) / passed : 0,
    counters,
  };
}

/** Times of all CPUs of the host together, ms. */
function cpuTimes(): { busy: number; idle: number } {
  const sum = { busy: 0, idle: 0 };
  for (const { times } of cpus()) {
    sum.idle += times.idle;
    sum.busy += times.user + times.nice + times.sys + times.irq;
  }
  return sum;
}

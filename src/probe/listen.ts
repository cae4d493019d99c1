/** Prints RoCEv2 frames that arrive at this host, without the native core: they show what became of ECN bits on the way. */
import type { ProbeNetwork } from "./network.js";
import type { Arrival } from "./report.js";
import { describeFrame, readFrame } from "./roce_frame.js";

export interface ListenOptions {
  /** Frames to wait for. */
  count: number;
  /** Time to wait for them, ms; Infinity: until aborted. */
  timeout: number;
  signal: AbortSignal;
  onReady: (portIsOurs: boolean) => void;
  onArrival: (arrival: Arrival) => void;
}

/** Longest time that a timer can wait, ms: 24 days. */
const kLongest = 2 ** 31 - 1;

/** Returns how many frames came. Fails with a WeirError where raw sockets cannot be opened. */
export async function listen(network: ProbeNetwork, options: ListenOptions): Promise<number> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, options.signal]);
  let arrived = 0;
  let failure: Error | undefined;
  const started = network.now();
  const link = await network.open(
    (packet) => {
      const frame = readFrame(packet);
      if (frame === undefined || arrived >= options.count) return;
      const { opcode, source, destination, qpn, psn, ecn, dscp, ttl, icrcOk } = frame;
      const time_ms = Math.round((network.now() - started) * 1000) / 1000;
      const name = describeFrame(frame);
      options.onArrival({ time_ms, source, destination, opcode, name, qpn, psn, ecn, dscp, ttl, icrc_ok: icrcOk });
      if (++arrived >= options.count) over.abort();
    },
    (error) => {
      failure ??= error;
      over.abort();
    },
  );
  try {
    options.onReady(link.portIsOurs);
    await network.sleep(Math.min(options.timeout, kLongest), signal);
  } finally {
    link.close();
  }
  if (failure) throw failure;
  return arrived;
}

/**
 * Kernel TCP between two hosts, by programs of the distribution: throughput by iperf3, latency by sockperf. Their output is taken
 * apart here; any other output than the expected is an error.
 */
import { z } from "zod";
import { WeirError } from "../../../src/base/error.js";
import { runTool } from "../../../src/host/tools.js";

export const IPERF_PORT = 5201;
export const SOCKPERF_PORT = 11_111;
/** iperf3's largest write. */
export const IPERF_MOST_BYTES = 1 << 20;

/** @throws WeirError that says what to install */
export async function requireTcpTools(): Promise<void> {
  for (const program of ["iperf3", "sockperf"]) await runTool(program, ["--version"]);
}

/** Command of a server for one client. */
export function iperfServer(address: string): string[] {
  return ["iperf3", "--server", "--one-off", "--bind", address, "--port", String(IPERF_PORT)];
}

/** Writes of `bytes` bytes, by sendfile(2) from a mapped file, which copies nothing on the sender's side. */
export function iperfClient(address: string, bytes: number, seconds: number, streams: number): string[] {
  const how = ["--length", String(bytes), "--time", String(seconds), "--parallel", String(streams), "--zerocopy"];
  return ["iperf3", "--client", address, "--port", String(IPERF_PORT), ...how, "--json"];
}

const iperfReport = z.object({
  error: z.string().optional(),
  end: z
    .object({ sum_received: z.object({ bits_per_second: z.number().positive() }) })
    .or(z.strictObject({}).transform(() => undefined))
    .optional(),
});

/** bit/s of payload that arrived. @throws WeirError */
export function readIperf(text: string): number {
  const { error, end } = parse("iperf3", text, iperfReport);
  if (error !== undefined) throw new WeirError(`iperf3: ${error}`);
  if (end === undefined) throw new WeirError("iperf3: no result: end.sum_received is missing");
  return end.sum_received.bits_per_second;
}

export function sockperfServer(address: string): string[] {
  return ["sockperf", "server", "--tcp", "--ip", address, "--port", String(SOCKPERF_PORT)];
}

/** One message to and fro at a time, without Nagle's algorithm, after a warm-up of its own. */
export function sockperfClient(address: string, bytes: number, seconds: number): string[] {
  const how = ["--msg-size", String(bytes), "--time", String(seconds)];
  return ["sockperf", "ping-pong", "--tcp", "--ip", address, "--port", String(SOCKPERF_PORT), ...how];
}

/** Half of the time to and fro, us. @throws WeirError */
export function readSockperf(text: string): { average: number; median: number } {
  const number = (what: string, pattern: RegExp): number => {
    const value = Number(pattern.exec(text)?.[1] ?? Number.NaN);
    if (value > 0 && Number.isFinite(value)) return value;
    throw new WeirError(`sockperf: no ${what} in its report`, { hint: "known to work with sockperf 3.7" });
  };
  return {
    average: number("avg-latency", /avg-latency=\s*([\d.]+)/),
    median: number("percentile 50.000", /percentile 50\.0+\s*=\s*([\d.]+)/),
  };
}

/** JSON of a program. @throws WeirError that names the field */
export function parse<T>(program: string, text: string, schema: z.ZodType<T>): T {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (cause) {
    throw new WeirError(`${program}: its report is no JSON: ${JSON.stringify(text.slice(0, 60))}`, { cause });
  }
  const { success, data: value, error } = schema.safeParse(data);
  if (success) return value;
  const [issue] = error.issues;
  throw new WeirError(`${program}: unexpected report: ${issue?.path.join(".") || "root"}: ${issue?.message}`);
}

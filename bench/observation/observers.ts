/** Ways to look at daemons while they run, each as its users have it. */
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchDaemon } from "../daemon.js";

/** A daemon with everything that may be looked at. */
export interface Observed {
  daemon: BenchDaemon;
  metricsUrl: string;
  dashboardUrl: string;
  /** The port to capture at. */
  port: string;
}

/** Looks on until it is stopped; then says how much it has seen: scrapes, frames, bytes, records. */
export interface Observer {
  stop(): Promise<number>;
}

/** What may be done to daemons. */
export const DAEMON_MODES = ["off", "off again", "metrics", "dashboard", "capture"] as const;
export type DaemonMode = (typeof DAEMON_MODES)[number];

const kScrapeMs = 1000;
/** Bytes of a frame: headers are what captures are looked at for. */
const kSnaplen = 128;

/** A dashboard or a capture is of one device, the first; metrics are scraped from all. */
export async function observe(mode: DaemonMode, all: readonly Observed[]): Promise<Observer> {
  const [first] = all;
  if (first === undefined || mode === "off" || mode === "off again") return { stop: async () => 0 };
  if (mode === "metrics") return scrape(all);
  return mode === "dashboard" ? await lookOn(first) : await capture(first);
}

/** Once a second, the first half a second from now. */
function scrape(all: readonly Observed[]): Observer {
  let seen = 0;
  const answers: Promise<void>[] = [];
  const ask = async ({ metricsUrl }: Observed) => {
    const text = await (await fetch(metricsUrl)).text();
    if (!text.includes("weir_build_info")) throw new Error(`${metricsUrl}: ${text}`);
    seen++;
  };
  const askAll = () => answers.push(...all.map(ask));
  let timer: NodeJS.Timeout = setTimeout(() => {
    askAll();
    timer = setInterval(askAll, kScrapeMs);
  }, kScrapeMs / 2);
  return {
    stop: async () => {
      clearInterval(timer);
      await Promise.all(answers);
      return seen / all.length;
    },
  };
}

/** A page that looks on. */
async function lookOn({ dashboardUrl }: Observed): Promise<Observer> {
  const abort = new AbortController();
  const response = await fetch(new URL("api/live", dashboardUrl), { signal: abort.signal });
  if (!response.ok || response.body === null) throw new Error(`${dashboardUrl}: ${response.status}`);
  let frames = 0;
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      frames += decoder.decode(bytes, { stream: true }).split("event: frame").length - 1;
    }
  })().catch((error: Error) => {
    if (error.name !== "AbortError") throw error;
  });
  return {
    stop: async () => {
      abort.abort();
      await reading;
      return frames;
    },
  };
}

/** As `weir capture` does it, into nothing. */
async function capture({ daemon, port }: Observed): Promise<Observer> {
  const socket = connect(daemon.socket);
  await once(socket, "connect");
  let bytes = 0;
  let said = "";
  socket.on("data", (data: Buffer) => {
    if (bytes === 0) said = data.toString("utf8", 0, 200);
    bytes += data.length;
  });
  socket.write(`${JSON.stringify({ request: "capture", ports: [port], snaplen: kSnaplen })}\n`);
  while (bytes === 0) await sleep(1);
  if (!said.startsWith('{"ok":true')) throw new Error(`capture: ${said}`);
  return {
    stop: async () => {
      const closed = once(socket, "close");
      socket.end();
      await closed;
      return bytes;
    },
  };
}

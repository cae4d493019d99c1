/** A dashboard over nothing: a source that remembers what was asked of it, its server, and a client that says what it is told to. */
import { type IncomingHttpHeaders, request } from "node:http";
import { onTestFinished } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import type { DashboardAddress } from "../../../src/watch/dashboard/address.js";
import { EventStreams } from "../../../src/watch/dashboard/event_streams.js";
import type { PageFile } from "../../../src/watch/dashboard/page_files.js";
import type { Frame, Session } from "../../../src/watch/dashboard/protocol.js";
import { DashboardServer } from "../../../src/watch/dashboard/server.js";
import type { DashboardSource } from "../../../src/watch/dashboard/source.js";

export function sessionOf(changes: Partial<Session> = {}): Session {
  return {
    version: "1.2.3",
    kind: "lab",
    started: "2026-01-01T00:00:00.000Z",
    name: "fake",
    scale: 40,
    duration_ns: 1e6,
    congestion_control: "dcqcn",
    topology: { nodes: [], links: [] },
    flows: [],
    queues: [],
    parameters: [],
    runs: [],
    changes: [],
    ...changes,
  };
}

export function frameOf(changes: Partial<Frame> = {}): Frame {
  return {
    run: 1,
    since_ns: 0,
    t_ns: 0,
    flows: { rate: [], target: [], alpha: [], throughput: [] },
    queues: { bytes: [], peak: [] },
    switches: [],
    links: [],
    events: [],
    loop_gap_max_us: 0,
    ...changes,
  };
}

export class FakeSource implements DashboardSource {
  readonly asked: unknown[] = [];
  refusal: Error | undefined;

  session = () => sessionOf();
  change(set: readonly string[]): void {
    if (this.refusal !== undefined) throw this.refusal;
    this.asked.push(set);
  }
  run(action: "start" | "stop"): void {
    if (action === "stop") throw new WeirError("no run is under way", { hint: "start one" });
    this.asked.push(action);
  }
  result = async (id: number) => (id === 1 ? '{"scenario":"fake"}' : undefined);
  inspect = (what: object) =>
    "port" in what && what.port === "sw:r" ? { title: "port", facts: [], counters: [] } : undefined;
}

const kFiles: ReadonlyMap<string, PageFile> = new Map([
  ["/", { type: "text/html; charset=utf-8", bytes: Buffer.from("<!doctype html>page"), immutable: false }],
  ["/assets/a-1f.js", { type: "text/javascript; charset=utf-8", bytes: Buffer.from("1"), immutable: true }],
]);

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Question {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

export interface Served {
  source: FakeSource;
  streams: EventStreams;
  server: DashboardServer;
  port: number;
  /** Sends exactly this path, and as Host the URL's unless told otherwise. */
  ask(path: string, question?: Question): Promise<Answer>;
  /** Token that changes need, if none was given. */
  token: string | undefined;
  /** Sends JSON as the page of a reader who has opened the URL with the token would. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
}

/** Serves at a port that is free, until the test ends. */
export async function serve(
  where: Partial<DashboardAddress> = {},
  daemon = false,
  onAttention?: (watched: boolean) => void,
): Promise<Served> {
  const source = new FakeSource();
  if (daemon) Object.assign(source, { run: undefined, result: undefined });
  const streams = new EventStreams(onAttention);
  const server = await DashboardServer.listen(
    { address: "127.0.0.1", port: 0, ...where },
    { source, streams, files: kFiles, purpose: { name: "dashboard", field: "dashboard", hint: "another port" } },
  );
  onTestFinished(() => server.close());
  const port = Number(new URL(server.url).port);
  const token = new URL(server.url).searchParams.get("token") ?? undefined;
  const ask = (path: string, { method = "GET", headers = {}, body }: Question = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
        response.on("error", reject);
      });
      sent.on("error", reject).end(body);
    });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    ask(path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        origin: `http://127.0.0.1:${port}`,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  return { source, streams, server, port, token, ask, post };
}

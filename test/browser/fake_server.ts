/** Speaks the dashboard's protocol with made-up data, and serves the page as it was built, under the policy of the real server. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kHeaders } from "../../src/base/http/http_server.js";
import { EventStreams } from "../../src/watch/dashboard/event_streams.js";
import type {
  Frame,
  Inspection,
  ParameterChange,
  Refusal,
  RunRequest,
  Session,
} from "../../src/watch/dashboard/protocol.js";
import { syntheticFrame, syntheticRun } from "./synthetic.js";

const kPage = fileURLToPath(new URL("../../dist/web/dashboard/", import.meta.url));
const kTypes: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

export class FakeServer {
  readonly results = new Map<number, unknown>();
  readonly changes: string[][] = [];
  readonly requested: RunRequest["action"][] = [];
  /** True if anybody may change things. */
  mayChange = true;
  /** Refuses streams, if there is one. */
  refusal: Refusal | undefined;
  /** Answers to questions wait for this. */
  hold: Promise<void> | undefined;
  /** Frames sent so far. */
  step = 0;
  private readonly streams = new EventStreams(
    () => {},
    () => 50 * this.step,
  );
  private server: Server | undefined;
  private port: number;

  /** @param at Address at which it listens once it is started; "": at any port that is free. */
  constructor(
    public session: Session,
    at = "",
  ) {
    this.port = at === "" ? 0 : Number(new URL(at).port);
  }

  async start(): Promise<string> {
    const server = createServer((request, response) => {
      this.answer(request, response).catch((error) => response.writeHead(500).end(String(error)));
    });
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
    return this.origin;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Ends all connections; start() takes the same port again, with the same past. */
  async stop(): Promise<void> {
    const { server } = this;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    this.server = undefined;
  }

  /** Sends the next frames, one after the other without a pause. */
  send(count: number): Frame {
    for (let i = 1; i < count; i++) this.frame();
    return this.frame();
  }

  /** Sends the next frames, 20 a second. */
  async play(count: number): Promise<Frame> {
    for (let i = 1; i < count; i++) {
      this.frame();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return this.frame();
  }

  sendSession(): void {
    this.streams.session(this.session);
  }

  /** The time of the newest frame, ms. */
  get until(): number {
    return syntheticFrame(this.session, this.step - 1).t_ns / 1e6;
  }

  get watched(): boolean {
    return this.streams.watched;
  }

  private frame(): Frame {
    const frame = syntheticFrame(this.session, this.step++, this.session.runs.at(-1)?.id ?? 0);
    this.streams.frame(frame);
    return frame;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.origin);
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (url.pathname === "/api/live" && this.refusal !== undefined) {
      json(429, this.refusal);
    } else if (url.pathname === "/api/live") {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      response.write(`event: rights\ndata: ${JSON.stringify({ change: this.mayChange })}\n\n`);
      this.streams.add(response, this.session);
    } else if (url.pathname === "/api/inspect") {
      await this.hold;
      json(200, inspection(url.searchParams));
    } else if (url.pathname === "/api/parameters") {
      const asked = (await body(request)) as ParameterChange;
      await this.hold;
      const refusal = this.change(asked);
      json(refusal ? 422 : 200, refusal ?? {});
    } else if (url.pathname === "/api/run") {
      this.run(((await body(request)) as RunRequest).action);
      json(200, {});
    } else if (url.pathname.startsWith("/api/runs/")) {
      const found = this.results.get(Number(url.pathname.split("/").at(-1)));
      json(found ? 200 : 404, found ?? { error: "there is no such run" });
    } else {
      const path = url.pathname === "/" ? "index.html" : url.pathname.slice(1);
      const headers = { ...kHeaders, "content-type": kTypes[extname(path)] ?? "text/plain" };
      response.writeHead(200, headers).end(readFileSync(join(kPage, path)));
    }
  }

  private change({ set }: ParameterChange): Refusal | undefined {
    for (const one of set) {
      const [path = "", value = ""] = one.split("=");
      if (!/^[0-9.]+[A-Za-z%]*$|^(true|false)$/.test(value)) {
        return { error: `${value}: not a size`, field: path, hint: "write a number and a unit, such as 12MB" };
      }
    }
    this.changes.push(set);
    const values = new Map(set.map((one) => one.split("=") as [string, string]));
    const parameters = this.session.parameters.map((one) => ({ ...one, value: values.get(one.path) ?? one.value }));
    const { t_ns } = syntheticFrame(this.session, this.step - 1);
    const runs = this.session.runs.map((run, i, all) =>
      i === all.length - 1 ? { ...run, changes: [...run.changes, { t_ns, set }] } : run,
    );
    const changes = this.session.kind === "lab" ? [] : [...this.session.changes, { t_ns, set }];
    this.session = { ...this.session, parameters, runs, changes };
    this.sendSession();
    return undefined;
  }

  private run(action: RunRequest["action"]): void {
    this.requested.push(action);
    const { runs } = this.session;
    if (action === "stop") {
      this.session = { ...this.session, runs: runs.with(-1, { ...(runs.at(-1) ?? syntheticRun()), state: "stopped" }) };
    } else {
      this.session = { ...this.session, runs: [...runs, syntheticRun(runs.length + 1)] };
      this.step = 0;
    }
    this.sendSession();
  }
}

function inspection(query: URLSearchParams): Inspection {
  const port = query.get("port");
  return {
    title: port === null ? `queue pair ${query.get("qp")}` : `port ${port}`,
    facts: [
      { name: "state", value: "up" },
      { name: "rate", value: "40 Gb/s" },
    ],
    counters: [
      { name: "tx_packets", unit: "packets", labels: {}, value: 123_456 },
      { name: "pfc_rx_packets", unit: "frames", labels: { prio: "3" }, value: 4 },
      { name: "rx_icrc_errors", unit: "packets", labels: {}, value: 0 },
    ],
  };
}

async function body(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

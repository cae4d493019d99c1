/** A dashboard's server, with requests of any kind: it answers, never with an internal error, and changes nothing for strangers. */
import { once } from "node:events";
import { connect } from "node:net";
import { WeirError } from "../../../src/base/error.js";
import { cookieOf } from "../../../src/watch/dashboard/address.js";
import { EventStreams } from "../../../src/watch/dashboard/event_streams.js";
import type { Session } from "../../../src/watch/dashboard/protocol.js";
import { DashboardServer } from "../../../src/watch/dashboard/server.js";
import type { DashboardSource } from "../../../src/watch/dashboard/source.js";
import { type Input, requireThat } from "../input.js";
import { changedDocument, changedText } from "../mutate.js";
import type { Part } from "../protocols.js";

const kMethods = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "get"];
const kPaths = [
  ...["/", "/api/session", "/api/live", "/api/parameters", "/api/run", "/api/runs/1", "/api/runs/99999999999"],
  ...[
    "/api/inspect?port=sw:r",
    "/api/inspect?qp=%zz",
    "/?token=x",
    "/?token=",
    "//other/",
    "/..%2f..%2fetc",
    "*",
    "http://x/",
  ],
];
/** Requests that change something. */
const kChanges = [
  { path: "/api/parameters", body: { set: ["switch.ecn.kmax=50KB"] } },
  { path: "/api/run", body: { action: "start" } },
] as const;
const kKeys = ["set", "action", "x"];
/** Time for an answer, ms; a stream of events has none that ends. */
const kPatienceMs = 200;

export async function openDashboard(): Promise<Part> {
  const source = new CountingSource();
  const streams = new EventStreams();
  const files = new Map([["/", { type: "text/html", bytes: Buffer.from("page"), immutable: false }]]);
  const purpose = { name: "dashboard", field: "dashboard", hint: "another port" };
  const server = await DashboardServer.listen({ address: "127.0.0.1", port: 0 }, { source, streams, files, purpose });
  const { host, port, searchParams } = new URL(server.url);
  const token = searchParams.get("token") ?? "";
  const place: Place = {
    host,
    credentials: [
      ["Authorization", `Bearer ${token}`],
      ["Cookie", `weir-${port}=${cookieOf(token)}`],
    ],
  };
  return {
    async run(input) {
      const own = input.once(2);
      const request = requestOf(input, place, own);
      const before = source.changes;
      const answer = await send(host, request);
      const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1];
      requireThat(status === undefined || Number(status) < 500, `status ${status}`, `${request}\n${answer}`);
      requireThat(own || source.changes === before, "a stranger has changed something", request);
      return [`${/^\w*/.exec(request)?.[0]} ${status}`];
    },
    close: () => server.close(),
  };
}

class CountingSource implements DashboardSource {
  changes = 0;

  session = () =>
    ({ topology: { nodes: [], links: [] }, flows: [], queues: [], parameters: [], runs: [] }) as unknown as Session;
  result = async (id: number) => (id === 1 ? "{}" : undefined);
  inspect = () => undefined;
  change(set: readonly string[]): void {
    if (!set.every((one) => one.includes("="))) throw new WeirError("no value");
    this.changes++;
  }
  run(): void {
    this.changes++;
  }
}

interface Place {
  host: string;
  /** Each is enough. */
  credentials: readonly [header: string, value: string][];
}

/**
 * A request as the page of a reader with the token sends it, if it is its `own`; else without the token, or with anything but its Origin.
 */
function requestOf(input: Input, { host, credentials }: Place, own: boolean): string {
  const meant = input.pick(kChanges);
  // Half of them would change something, if they came from a reader with the token.
  const isSound = input.once(2);
  const body = JSON.stringify(isSound ? meant.body : changedDocument(input, meant.body, kKeys));
  const sent = !isSound && input.once(4) ? changedText(input, body) : body;
  const knows = own || input.once(2);
  const shown = knows ? [input.pick(credentials)] : [];
  const origin =
    own || !knows
      ? `http://${host}`
      : input.pick(["null", "http://evil", `http://${host}.evil`, `https://x@${host}`, ""]);
  const headers = [
    ["Host", (own || !knows) && input.once(8) ? input.pick(["evil", "localhost", "[::1]", "", `${host}:1`]) : host],
    ["Content-Type", input.once(8) ? "text/plain" : "application/json"],
    ["Origin", origin],
    ...(shown.length > 0
      ? shown
      : [
          ["Cookie", input.pick(["", "weir-1=x; ;=;a", "weir"])],
          ["Authorization", input.pick(["", "Bearer x", "Bearer", "Basic eDp4"])],
        ]),
    ["Sec-Fetch-Site", input.pick(["same-origin", "cross-site", ""])],
    ["Content-Length", String(Buffer.byteLength(sent) + (input.once(16) ? 1 : 0))],
    ["Connection", "close"],
  ].filter(([name]) => !input.once(16) || name === "Origin");
  const any = input.once(8) ? changedText(input, input.pick(kPaths)) : input.pick(kPaths);
  const [method, path] = isSound ? ["POST", meant.path] : [input.pick(kMethods), any];
  const lines = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  const text = `${lines.join("\r\n")}\r\n\r\n${sent}`;
  // A stranger's request must not become the page's own by chance.
  return own && input.once(8) ? changedText(input, text) : text;
}

async function send(host: string, request: string): Promise<string> {
  const [address, port] = host.split(":");
  const socket = connect({ host: address as string, port: Number(port) });
  const pieces: Buffer[] = [];
  socket.on("error", () => {}).on("data", (piece: Buffer) => pieces.push(piece));
  const timer = setTimeout(() => socket.destroy(), kPatienceMs);
  socket.end(request);
  if (!socket.closed) await once(socket, "close");
  clearTimeout(timer);
  return Buffer.concat(pieces).toString("latin1");
}

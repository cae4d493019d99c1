/**
 * The HTTP side of a dashboard: the page's files, the API of protocol.ts, and the streams of frames. GET, HEAD and POST only; a request
 * that the guard does not admit hears no more than that. Answers to all requests forbid the page anything but this server.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { hostname } from "node:os";
import { z } from "zod";
import { ScenarioError, WeirError } from "../../base/error.js";
import { hostOf, isLoopback } from "../../base/http/address.js";
import { HttpServer, kHeaders, type Purpose } from "../../base/http/http_server.js";
import { type DashboardAddress, newToken } from "./address.js";
import type { EventStreams } from "./event_streams.js";
import { Guard } from "./guard.js";
import { HttpRefusal } from "./http_refusal.js";
import type { PageFile } from "./page_files.js";
import type { Refusal, Rights } from "./protocol.js";
import type { DashboardSource } from "./source.js";

export interface DashboardOptions {
  source: DashboardSource;
  streams: EventStreams;
  files: ReadonlyMap<string, PageFile>;
  /** Errors about its address point to this. */
  purpose: Purpose;
  /** A listening socket that somebody else has made, by its descriptor; absent: one is made. */
  descriptor?: number | undefined;
}

const kMostBody = 64 * 1024;

const changeBody = z.strictObject({ set: z.array(z.string().max(1000)).min(1).max(100) });
const runBody = z.strictObject({ action: z.enum(["start", "stop"]) });

/** Answer to a request. */
interface Answer {
  status: number;
  type: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}

export class DashboardServer {
  private server: HttpServer | undefined;

  private constructor(
    private readonly options: DashboardOptions,
    private readonly guard: Guard,
    /** Address of the page. */
    readonly address: string,
    /** URL for a person who may change things: with the token, where one was made. */
    readonly url: string,
  ) {}

  /** @throws WeirError when the address cannot be listened at. */
  static async listen(where: DashboardAddress, options: DashboardOptions): Promise<DashboardServer> {
    const token = where.token ?? newToken();
    let dashboard: DashboardServer | undefined;
    const server = await HttpServer.listen(
      where,
      options.purpose,
      (request, response) => void dashboard?.respond(request, response),
      options.descriptor,
    );
    const guard = new Guard(token, server.port, where.token === undefined && isLoopback(where.address));
    const address = `http://${hostOf(openable(where.address))}:${server.port}/`;
    // Whoever has given a token knows it.
    const url = where.token === undefined ? `${address}?token=${token}` : address;
    dashboard = new DashboardServer(options, guard, address, url);
    dashboard.server = server;
    return dashboard;
  }

  /** Ends the streams and stops listening. Idempotent. */
  close(): void {
    this.options.streams.close();
    this.server?.close();
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const answer = await this.#answer(request, response);
      if (answer !== undefined) send(request, response, answer);
    } catch (error) {
      const refused = refusalOf(error);
      if (response.headersSent) response.destroy();
      else send(request, response, refused);
    }
  }

  /** Returns undefined for a stream, which goes on. @throws HttpRefusal, WeirError */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Answer | undefined> {
    const { method } = request;
    if (method !== "GET" && method !== "HEAD" && method !== "POST") {
      throw new HttpRefusal(405, `${method} is not served`, { hint: "GET, HEAD and POST are" });
    }
    const url = urlOf(request);
    const shown = url.pathname === "/" ? url.searchParams.get("token") : null;
    // A page that leads on, and not a redirection: on the way of one from another site browsers keep SameSite cookies back.
    if (shown !== null) return { ...html(kLeadOn), headers: { "set-cookie": this.guard.exchange(shown) } };
    this.guard.admit(request.headers);
    if (url.pathname.startsWith("/api/")) this.guard.admitData(request.headers);
    if (method === "POST") {
      this.guard.admitChange(request.headers);
      return this.#post(url.pathname, await bodyOf(request));
    }
    return this.#get(url, request, response);
  }

  #post(path: string, body: unknown): Answer {
    const { source } = this.options;
    if (path === "/api/parameters") {
      source.change(parsed(changeBody, body).set);
    } else if (path === "/api/run") {
      if (source.run === undefined) throw new HttpRefusal(404, "daemons have no runs to start or stop");
      source.run(parsed(runBody, body).action);
    } else {
      throw notFound(path);
    }
    return json(source.session());
  }

  async #get(url: URL, request: IncomingMessage, response: ServerResponse): Promise<Answer | undefined> {
    const { source, files } = this.options;
    const { pathname } = url;
    if (pathname === "/api/session") return json(source.session());
    if (pathname === "/api/live") return this.#stream(request, response);
    if (pathname === "/api/inspect") return json(this.#inspect(url.searchParams));
    const id = /^\/api\/runs\/(\d{1,9})$/.exec(pathname)?.[1];
    if (id !== undefined) {
      const document = await source.result?.(Number(id));
      if (document === undefined) throw new HttpRefusal(404, `run ${id} has no result`);
      return { status: 200, type: "application/json", body: document };
    }
    const file = files.get(pathname);
    if (file === undefined) throw notFound(pathname);
    const caching = file.immutable ? "public, max-age=31536000, immutable" : "no-cache";
    return { status: 200, type: file.type, body: file.bytes, headers: { "cache-control": caching } };
  }

  #inspect(query: URLSearchParams) {
    const [port, qp] = [query.get("port"), query.get("qp")];
    if ((port === null) === (qp === null)) throw new HttpRefusal(400, "give ?port=NODE:PEER or ?qp=NAME");
    const found = this.options.source.inspect(port === null ? { qp: qp ?? "" } : { port });
    if (found === undefined)
      throw new HttpRefusal(404, `no ${port === null ? `queue pair ${qp}` : `port ${port}`} now`);
    return found;
  }

  #stream(request: IncomingMessage, response: ServerResponse): undefined {
    const { streams, source } = this.options;
    if (streams.full) throw new HttpRefusal(429, "too many pages are open", { hint: "close some" });
    response.writeHead(200, { ...kHeaders, "content-type": "text/event-stream", "cache-control": "no-store" });
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    // The stream goes on for as long as somebody looks on.
    request.socket.setTimeout(0);
    const rights: Rights = { change: this.guard.mayChange(request.headers) };
    response.write(`event: rights\ndata: ${JSON.stringify(rights)}\n\n`);
    streams.add(response, source.session());
  }
}

/** "Any address" is none that a browser could open. */
const openable = (address: string) => (["0.0.0.0", "::"].includes(address) ? hostname() : address);

function urlOf({ url = "/" }: IncomingMessage): URL {
  // A target that does not begin with a slash is a proxy's business.
  if (!url.startsWith("/") || url.startsWith("//")) throw new HttpRefusal(400, "the request names no path");
  try {
    return new URL(url, "http://here");
  } catch {
    throw new HttpRefusal(400, "the request names no path");
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > kMostBody) throw new HttpRefusal(413, `the request has more than ${kMostBody} bytes`);
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new HttpRefusal(400, "the request is not JSON");
  }
}

function parsed<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join(".") ?? "";
  throw new HttpRefusal(400, [where, issue?.message].filter(Boolean).join(": "));
}

function refusalOf(error: unknown): Answer {
  if (error instanceof HttpRefusal) {
    const allow = error.status === 405 ? { allow: "GET, HEAD, POST" } : undefined;
    return { ...json(error.body, error.status), ...(allow && { headers: allow }) };
  }
  if (error instanceof ScenarioError) return json(scenarioRefusal(error), 422);
  if (error instanceof WeirError) {
    const { message, field, hint } = error;
    return json({ error: message, ...(field && { field }), ...(hint && { hint }) } satisfies Refusal, 422);
  }
  return json({ error: (error as Error).message } satisfies Refusal, 500);
}

/** Tells of the first problem only: the page shows it where it belongs, so the message need not say which file it is about. */
function scenarioRefusal({ problems, field }: ScenarioError): Refusal {
  const [first] = problems;
  return {
    error: first?.message ?? "",
    ...(field && { field }),
    ...(first?.hint !== undefined && { hint: first.hint }),
  };
}

const notFound = (path: string) => new HttpRefusal(404, `there is no ${path}`);

function json(data: unknown, status = 200): Answer {
  return { status, type: "application/json", body: JSON.stringify(data) };
}

function html(body: string): Answer {
  return { status: 200, type: "text/html; charset=utf-8", body };
}

const kLeadOn = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Weir</title><a href="/">Weir</a>\n';

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, headers }: Answer): void {
  response.writeHead(status, {
    ...kHeaders,
    "cache-control": "no-store",
    ...headers,
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    // The unread rest of a refused request would pass for the next one.
    ...(status >= 400 && request.method === "POST" && { connection: "close" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

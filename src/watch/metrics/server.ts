/** Serves metrics over HTTP: /metrics for Prometheus, /healthz for whoever restarts daemons. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { asksForLoopback, hostOf, isLoopback } from "../../base/http/address.js";
import { HttpServer, isForeign, kHeaders, type Purpose, type Where } from "../../base/http/http_server.js";
import { type Format, kContentTypes } from "./instruments.js";
import type { MetricsRegistry } from "./registry.js";

/** Health as it is answered in JSON; `failed` and `starting` with status 503. */
export interface Health {
  status: "ok" | "degraded" | "failed" | "starting";
  name?: string;
}

export interface MetricsServerOptions {
  /** Errors about its address point to this. */
  purpose: Purpose;
  /** @throws Error when there is nothing to be told now. */
  scrape: MetricsRegistry["scrape"];
  health(): Health;
  /** A listening socket that somebody else has made, by its descriptor; absent: one is made. */
  descriptor?: number | undefined;
}

export class MetricsServer {
  private constructor(
    private readonly server: HttpServer,
    /** URL at which it listens. */
    readonly url: string,
  ) {}

  /** @throws WeirError when the address cannot be listened at. */
  static async listen(where: Where, options: MetricsServerOptions): Promise<MetricsServer> {
    // Prometheus may know this host by any name when it runs elsewhere.
    const byName = isLoopback(where.address);
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      const allowed = (!byName || asksForLoopback(request.headers.host)) && !isForeign(request.headers);
      if (allowed) void respond(request, response, options);
      else send(request, response, 403, "text/plain", kNotForOthers);
    };
    const server = await HttpServer.listen(where, options.purpose, answer, options.descriptor);
    return new MetricsServer(server, `http://${hostOf(where.address)}:${server.port}`);
  }

  get address(): string {
    return this.url;
  }

  close(): void {
    this.server.close();
  }
}

const kNotForOthers = "not for pages of other sites, nor by other names of this host\n";

/** OpenMetrics is for those who ask for it by name, and do not prefer plain text; this is the one version that there is. */
export function formatOf(accept: string): Format {
  const offers = accept.split(",").map((offer) => {
    const [type = "", ...parameters] = offer.split(";").map((part) => part.trim().toLowerCase());
    const of = (name: string) => parameters.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);
    return { type, version: of("version"), weight: Number(of("q") ?? 1) };
  });
  const weight = (type: string, versions: readonly (string | undefined)[]) =>
    Math.max(0, ...offers.filter((o) => o.type === type && versions.includes(o.version)).map((o) => o.weight));
  const wanted = weight("application/openmetrics-text", ["1.0.0", undefined]);
  return wanted > 0 && wanted >= weight("text/plain", ["0.0.4", undefined]) ? "openmetrics" : "prometheus";
}

function send(request: IncomingMessage, response: ServerResponse, status: number, type: string, body: string): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { ...kHeaders, "content-type": type, "content-length": length });
  response.end(request.method === "HEAD" ? undefined : body);
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { scrape, health }: MetricsServerOptions,
): Promise<void> {
  const answer = (status: number, type: string, body: string) => send(request, response, status, type, body);
  if (request.method !== "GET" && request.method !== "HEAD") return answer(405, "text/plain", "GET only\n");
  const path = (request.url ?? "/").split("?")[0];
  try {
    if (path === "/metrics") {
      const format = formatOf(request.headers.accept ?? "");
      return answer(200, kContentTypes[format], await scrape(format));
    }
    if (path === "/healthz") {
      const state = health();
      const unwell = state.status === "failed" || state.status === "starting";
      return answer(unwell ? 503 : 200, "application/json", `${JSON.stringify(state)}\n`);
    }
    answer(404, "text/plain", "there are /metrics and /healthz\n");
  } catch (error) {
    answer(500, "text/plain", `${(error as Error).message}\n`);
  }
}

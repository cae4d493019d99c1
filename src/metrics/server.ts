/** The HTTP side of metrics: /metrics for Prometheus, /healthz for whoever restarts daemons. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { WeirError } from "../config/error.js";
import { listenRemedy } from "../dashboard/address.js";
import { type Format, kContentTypes } from "./instruments.js";
import type { MetricsRegistry } from "./registry.js";

/** What is answered as JSON; `failed` and `starting` with status 503. */
export interface Health {
  status: "ok" | "degraded" | "failed" | "starting";
}

export class MetricsServer {
  private constructor(
    private readonly server: Server,
    /** Where it listens, as a URL. */
    readonly url: string,
  ) {}

  /** @throws WeirError when the address cannot be listened at. */
  static async listen(
    where: { address: string; port: number },
    registry: Pick<MetricsRegistry, "scrape">,
    health: () => Health,
  ): Promise<MetricsServer> {
    const server = createServer((request, response) => void respond(request, response, registry, health));
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(where.port, where.address, resolve);
      });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new WeirError(`metrics: cannot listen at ${where.address}:${where.port}: ${code}`, {
        cause: error,
        field: "metrics",
        hint: listenRemedy(error, where.address) ?? "set metrics.address and metrics.port, or metrics: false",
      });
    }
    // A connection that could not be accepted (no descriptors left) is the client's to repeat.
    server.on("error", () => {});
    const bound = server.address() as { address: string; port: number; family: string };
    const host = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
    return new MetricsServer(server, `http://${host}:${bound.port}`);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** OpenMetrics for those who ask for it by name, and do not prefer plain text; this is the one version that there is. */
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

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  registry: Pick<MetricsRegistry, "scrape">,
  health: () => Health,
): Promise<void> {
  const send = (status: number, type: string, body: string) => {
    response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
    response.end(request.method === "HEAD" ? undefined : body);
  };
  if (request.method !== "GET" && request.method !== "HEAD") return send(405, "text/plain", "GET only\n");
  const path = (request.url ?? "/").split("?")[0];
  try {
    if (path === "/metrics") {
      const format = formatOf(request.headers.accept ?? "");
      return send(200, kContentTypes[format], await registry.scrape(format));
    }
    if (path === "/healthz") {
      const state = health();
      return send(
        state.status === "failed" || state.status === "starting" ? 503 : 200,
        "application/json",
        `${JSON.stringify(state)}\n`,
      );
    }
    send(404, "text/plain", "there are /metrics and /healthz\n");
  } catch (error) {
    send(500, "text/plain", `${(error as Error).message}\n`);
  }
}

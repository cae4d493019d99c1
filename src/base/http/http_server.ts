/**
 * An HTTP server for few clients that are near: dashboards, metrics. Strangers are kept short: a request has to be there within
 * ten seconds, an answer has to be read, and a client that only holds connections open keeps nobody out.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";
import { fileReason, WeirError } from "../error.js";
import { hostOf, isLoopback } from "./address.js";
import { Connections } from "./connections.js";

const kMostConnections = 128;
const kRequestMs = 10_000;
/** Interval at which connections are checked for that; Node.js checks twice a minute by default. */
const kCheckMs = 1000;
/** A connection is ended when nothing of an answer was read for this long. */
const kStalledMs = 30_000;

/** Headers of all answers: pages get nothing from elsewhere, and no other page may frame or read them. */
export const kHeaders = {
  "content-security-policy":
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

export interface Where {
  address: string;
  port: number;
}

/** Name of the server in errors, and their `field` and `hint`. */
export interface Purpose {
  name: string;
  field: string;
  hint: string;
}

export class HttpServer {
  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  /**
   * @param descriptor A listening socket that somebody else has made; undefined: a new one is made.
   * @throws WeirError when the address cannot be listened at.
   */
  static async listen(
    where: Where,
    purpose: Purpose,
    respond: (request: IncomingMessage, response: ServerResponse) => void,
    descriptor?: number,
  ): Promise<HttpServer> {
    const server = createServer({
      requestTimeout: kRequestMs,
      headersTimeout: kRequestMs,
      connectionsCheckingInterval: kCheckMs,
    });
    server.setTimeout(kStalledMs);
    const connections = new Connections(kMostConnections);
    server.on("connection", (socket) => connections.add(socket));
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      connections.begin(request.socket);
      response.on("close", () => connections.end(request.socket)).on("error", () => {});
      respond(request, response);
    });
    await listen(server, where, purpose, descriptor);
    return new HttpServer(server, (server.address() as AddressInfo).port);
  }

  /** Idempotent. */
  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** Waits until it listens. @throws WeirError when it cannot. */
export async function listen(
  server: NetServer,
  { address, port }: Where,
  { name, field, hint }: Purpose,
  descriptor?: number,
): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(descriptor === undefined ? { port, host: address } : { fd: descriptor }, () => {
        server.off("error", reject);
        resolve();
      });
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reasons: Readonly<Record<string, string>> = {
      EADDRINUSE: "the port is taken",
      EADDRNOTAVAIL: "no interface that is up has this address",
    };
    const reason = reasons[code ?? ""] ?? fileReason(error) ?? code ?? message;
    const down = code === "EADDRNOTAVAIL" && isLoopback(address);
    throw new WeirError(`${name}: cannot listen at ${hostOf(address)}:${port}: ${reason}`, {
      cause: error,
      field,
      hint: down ? "bring up the loopback interface: ip link set lo up" : hint,
    });
  }
  // A connection that could not be accepted (no descriptors left) is the client's to repeat.
  server.on("error", () => {});
}

/** Tells whether another site's page asks for something other than a page: it could read nothing, but keep this host busy. */
export function isForeign({ "sec-fetch-site": site }: IncomingMessage["headers"]): boolean {
  return site !== undefined && site !== "same-origin" && site !== "none";
}

/**
 * The control socket of a daemon: a unix stream socket that only its owner may open. A request is one JSON object on one
 * line, `{"request": "counters"}`, and so is its answer: `{"ok": true, "data": ...}` or `{"ok": false, "error", "hint"}`.
 */
import { existsSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { WeirError } from "../config/error.js";
import { type ControlAnswer, probe } from "./control_client.js";

/** Longest request, characters. */
const kLongestRequest = 4096;
const kSocketOnly = 0o177;

/** Answers one request by its name; throws WeirError to refuse it. */
export type Handler = (request: string) => unknown;

export class ControlServer {
  private readonly connections = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly path: string,
  ) {}

  /** @throws WeirError when another daemon answers there, or the socket cannot be made. */
  static async open(path: string, handler: Handler): Promise<ControlServer> {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    await removeStale(path);
    const server = createServer();
    const control = new ControlServer(server, path);
    server.on("connection", (socket) => control.#serve(socket, handler));
    const umask = process.umask(kSocketOnly);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(path, resolve);
      });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const hint = "run as root, or set `control` to a path that you may write";
      throw new WeirError(`control socket ${path}: ${code}`, { cause: error, field: "control", hint });
    } finally {
      process.umask(umask);
    }
    // A connection that could not be accepted (no descriptors left) is the client's to repeat.
    server.on("error", () => {});
    return control;
  }

  /** Removes the socket. Idempotent. */
  close(): void {
    for (const socket of this.connections) socket.destroy();
    // Also unlinks the path.
    this.server.close();
  }

  #serve(socket: Socket, handler: Handler): void {
    this.connections.add(socket);
    let pending = "";
    socket.setEncoding("utf8");
    socket.on("close", () => this.connections.delete(socket));
    // A client that went away is no business of ours.
    socket.on("error", () => {});
    socket.on("data", (text: string) => {
      const lines = (pending + text).split("\n");
      pending = lines.pop() ?? "";
      for (const line of lines) socket.write(`${JSON.stringify(answer(line, handler))}\n`);
      if (pending.length > kLongestRequest) socket.end(`${JSON.stringify(refusal("the request is too long"))}\n`);
    });
  }
}

function answer(line: string, handler: Handler): ControlAnswer {
  let request: unknown;
  try {
    request = (JSON.parse(line) as { request?: unknown } | null)?.request;
  } catch {
    return refusal("the request is not JSON");
  }
  if (typeof request !== "string") return refusal('the request has no "request"');
  try {
    return { ok: true, data: handler(request) };
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    return refusal(message, hint);
  }
}

function refusal(error: string, hint?: string): ControlAnswer {
  return { ok: false, error, ...(hint !== undefined && { hint }) };
}

/** A socket that nobody listens at is a dead daemon's. */
async function removeStale(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (!lstatSync(path).isSocket()) {
    throw new WeirError(`control socket ${path}: there is a file of that name`, {
      field: "control",
      hint: "remove it, or set `control` to another path",
    });
  }
  if (await probe(path)) {
    throw new WeirError(`a daemon is running already: it answers at ${path}`, {
      field: "control",
      hint: "stop it, or give this one another `name`",
    });
  }
  unlinkSync(path);
}

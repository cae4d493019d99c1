/**
 * The control socket of a daemon: a unix stream socket that only its owner may open. A request is one JSON object on one
 * line, `{"request": "counters"}` with arguments beside the name, and so is its answer: `{"ok": true, "data": ...}` or
 * `{"ok": false, "error", "hint"}`. Behind the answer to some requests comes a stream of bytes, until either side ends.
 */
import { existsSync, lstatSync, rmSync, unlinkSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Writable } from "node:stream";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { Connections } from "../base/http/connections.js";
import { type ControlAnswer, probe } from "./control_client.js";

/** Longest request, characters. */
const kLongestRequest = 4096;
/** Time that a client may take for its next request, or to read an answer. */
const kPatienceMs = 10_000;
const kMostConnections = 64;
const kSocketOnly = 0o177;
/** Time that the last bytes of a stream may take when the server closes. */
const kLastBytesMs = 1000;

/** A request as the client sent it: only its name has been checked. */
export type ControlRequest = Readonly<Record<string, unknown>> & { readonly request: string };

/** Answers one request: with data, or a Stream; throws WeirError to refuse it. */
export type Handler = (request: ControlRequest) => unknown;

/** An answer that goes on: behind the line with `data` the connection carries the stream alone. */
export class Stream {
  /**
   * @param begin Writes to the client from now on. What it returns is called once, when the client has ended its side, is
   * gone, or the server closes: it writes what is left. A stream that is over by itself ends the client.
   */
  constructor(
    readonly data: unknown,
    readonly begin: (client: Writable) => () => void,
  ) {}
}

export class ControlServer {
  private readonly connections = new Set<Connection>();

  /** Removes the socket when the process ends at once. */
  private readonly onExit = () => rmSync(this.path, { force: true });

  private constructor(
    private readonly server: Server,
    readonly path: string,
  ) {}

  /** @throws WeirError when another daemon answers there, or the socket cannot be made. */
  static async open(path: string, handler: Handler): Promise<ControlServer> {
    makeFolder(dirname(path), 0o755);
    await removeStale(path);
    // A client that ends its side still hears the end of its stream.
    const server = createServer({ allowHalfOpen: true });
    const control = new ControlServer(server, path);
    const limit = new Connections(kMostConnections);
    server.on("connection", (socket) => {
      limit.add(socket);
      const connection = new Connection(socket, handler, () => limit.begin(socket));
      control.connections.add(connection);
      socket.on("close", () => control.connections.delete(connection));
    });
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
    // The client repeats a connection that could not be accepted (no descriptors left).
    server.on("error", () => {});
    process.on("exit", control.onExit);
    return control;
  }

  /** Removes the socket and ends the streams. Idempotent. */
  close(): void {
    for (const connection of this.connections) connection.close();
    process.off("exit", this.onExit);
    // Closing the server also unlinks the path.
    this.server.close();
  }
}

class Connection {
  /** Text that has come and is not answered: requests that the client has to read answers for first, and the beginning of the next one. */
  private pending = "";
  private readonly onText = (text: string) => {
    this.pending += text;
    this.#work();
  };
  /** Whether requests are answered: they are not behind a stream, nor after the last answer. */
  private listening = true;
  /** Whether the client has ended its side. */
  private ended = false;
  /** Ends the stream, once one has begun. */
  private endStream: (() => void) | undefined;
  private patience: NodeJS.Timeout | undefined;

  /** @param onStream Called when a stream begins. */
  constructor(
    private readonly socket: Socket,
    private readonly handler: Handler,
    private readonly onStream: () => void,
  ) {
    socket.setEncoding("utf8").on("data", this.onText);
    socket.on("drain", () => {
      if (!this.listening) return;
      this.#wait();
      socket.resume();
      this.#work();
    });
    socket.on("end", () => {
      this.ended = true;
      this.#work();
    });
    // An error of the client is no business of ours, but its stream is over.
    socket.on("error", () => {});
    socket.on("close", () => this.#end());
    this.#wait();
  }

  close(): void {
    if (this.endStream === undefined) {
      this.socket.destroy();
      return;
    }
    this.#end();
    const slow = setTimeout(() => this.socket.destroy(), kLastBytesMs);
    this.socket.on("close", () => clearTimeout(slow));
  }

  #end(): void {
    clearTimeout(this.patience);
    const { endStream } = this;
    this.endStream = undefined;
    endStream?.();
    this.socket.end();
  }

  /** Answers the pending requests, as far as the client reads: no more than one answer waits here. */
  #work(): void {
    const { socket } = this;
    while (this.listening && !socket.writableNeedDrain) {
      const end = this.pending.indexOf("\n");
      if (end < 0) break;
      const line = this.pending.slice(0, end);
      this.pending = this.pending.slice(end + 1);
      this.#wait();
      this.#answer(line);
    }
    if (this.listening && socket.writableNeedDrain) socket.pause();
    else if (this.ended) this.#end();
    else if (this.listening && this.pending.length > kLongestRequest) this.#refuse("the request is too long");
  }

  #answer(line: string): void {
    const { answer, begin } = answerTo(line, this.handler);
    if (begin !== undefined) {
      this.#stopListening(answer);
      clearTimeout(this.patience);
      this.onStream();
      this.endStream = begin(this.socket);
      return;
    }
    this.socket.write(`${JSON.stringify(answer)}\n`);
  }

  /** Limits the time from now on, for the next request or until an answer is read. */
  #wait(): void {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      if (!this.listening || this.socket.writableNeedDrain) this.socket.destroy();
      else this.#refuse(`no request within ${kPatienceMs / 1000} s`);
    }, kPatienceMs);
  }

  /** Sends a refusal, the last thing that the client hears. */
  #refuse(error: string): void {
    this.#stopListening(refusal(error));
    this.#wait();
    this.socket.destroySoon();
  }

  /** Reads what the client still sends, and throws it away, so that its end is noticed. */
  #stopListening(last: ControlAnswer): void {
    this.listening = false;
    this.socket.off("data", this.onText).resume();
    this.socket.write(`${JSON.stringify(last)}\n`);
  }
}

function answerTo(line: string, handler: Handler): { answer: ControlAnswer; begin?: Stream["begin"] } {
  const request = parseRequest(line);
  if (typeof request === "string") return { answer: refusal(request) };
  try {
    const result = handler(request);
    if (!(result instanceof Stream)) return { answer: { ok: true, data: result } };
    return { answer: { ok: true, data: result.data }, begin: result.begin };
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    return { answer: refusal(message, hint) };
  }
}

/** Returns the request, or the error in it. */
function parseRequest(line: string): ControlRequest | string {
  let value: Partial<ControlRequest> | null;
  try {
    value = JSON.parse(line) as typeof value;
  } catch {
    return "the request is not JSON";
  }
  return typeof value?.request === "string" ? (value as ControlRequest) : 'the request has no "request"';
}

function refusal(error: string, hint?: string): ControlAnswer {
  return { ok: false, error, ...(hint !== undefined && { hint }) };
}

/** Removes a socket at which nobody listens: its daemon is dead. */
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

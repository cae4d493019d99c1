/**
 * The way from one host of a lab to another. A program on a host cannot enter another one's processes; the lab, outside of both, can. So it
 * listens at a socket in its folder, which hosts see and only its user may open. A client sends lines of JSON: a request, and signals for
 * the program as they come. The lab takes the client's standard streams for the program, and answers with one line when that has ended. A
 * client that is gone ends its program.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { WeirError } from "../../base/error.js";
import { descriptorOf } from "../../daemon/programs/session.js";
import { childrenOf } from "../../host/inhabitants.js";
import type { NativeAddon } from "../../native/types.js";
import { enterHost } from "./enter.js";

/** No host has such a name. */
const kSocket = ".entrance";
const kOwnerOnly = 0o177;
const kMostClients = 1024;
/** Longest line, characters: Linux' usual limit of a program's arguments and environment. */
const kLongestLine = 2 << 20;
/** Signals that a client passes on. */
export const kPassed = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
const kSignalBase = 128;
const kStreams = [0, 1, 2];

const requestSchema = z.strictObject({
  host: z.string(),
  command: z.array(z.string()).min(1),
  environment: z.record(z.string(), z.string()),
  folder: z.string(),
});
export type EntranceRequest = z.output<typeof requestSchema>;
const signalSchema = z.strictObject({ signal: z.enum(kPassed) });
const answerSchema = z.union([z.object({ status: z.int() }), z.object({ error: z.string() })]);
type Answer = z.output<typeof answerSchema>;

export interface EntranceHost {
  addon: Pick<NativeAddon, "peerCredentials" | "takeDescriptor">;
  /** Pid of process 1 of a host; undefined: there is no such host. */
  hostPid(name: string): number | undefined;
}

export class Entrance {
  readonly #clients = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  /** @param folder That of the lab. */
  static async open(folder: string, host: EntranceHost): Promise<Entrance> {
    const server = createServer();
    server.maxConnections = kMostClients;
    const entrance = new Entrance(server);
    server.on("connection", (socket) => {
      entrance.#clients.add(socket);
      socket.on("close", () => entrance.#clients.delete(socket));
      new Client(socket, host);
    });
    const umask = process.umask(kOwnerOnly);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(join(folder, kSocket), resolve);
      });
    } finally {
      process.umask(umask);
    }
    // The kernel keeps a connection that could not be accepted (no descriptors left).
    server.on("error", () => {});
    return entrance;
  }

  /** Idempotent. */
  close(): void {
    this.server.close();
    for (const socket of this.#clients) socket.destroy();
  }
}

/** A connection of one client, and its program. */
class Client {
  #program: ChildProcess | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly host: EntranceHost,
  ) {
    let unread = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      const lines = (unread + text).split("\n");
      unread = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
      if (unread.length > kLongestLine) this.#answer({ error: "arguments and environment are too long" });
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#signal("SIGTERM"));
  }

  #take(line: string): void {
    try {
      const asked: unknown = JSON.parse(line);
      if (this.#program === undefined) this.#start(requestSchema.parse(asked));
      else this.#signal(signalSchema.parse(asked).signal);
    } catch (error) {
      this.#answer({ error: (error as Error).message });
    }
  }

  #start({ host, command, environment, folder }: EntranceRequest): void {
    const { addon } = this.host;
    const { pid: client, uid } = addon.peerCredentials(descriptorOf(this.socket));
    if (uid !== process.geteuid?.()) throw new WeirError("the lab is another user's");
    const pid = this.host.hostPid(host);
    if (pid === undefined) throw new WeirError(`no host ${host} is up`);
    const { LD_PRELOAD: preloaded, ...others } = environment;
    const inside = preloaded === undefined ? {} : { LD_PRELOAD: preloaded };
    const [nsenter, ...words] = enterHost({ pid, userNamespace: false }, inside, command, folder);
    const streams: number[] = [];
    try {
      for (const stream of kStreams) streams.push(addon.takeDescriptor(client, stream));
      const program = spawn(nsenter, words, { stdio: streams, env: others, detached: true });
      this.#program = program;
      program.on("error", (error) => this.#answer({ error: error.message }));
      program.on("exit", (status, signal) => {
        this.#answer({ status: signal === null ? (status ?? 1) : kSignalBase + constants.signals[signal] });
      });
    } finally {
      for (const stream of streams) closeSync(stream);
    }
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#program?.exitCode === null && this.#program.signalCode === null) signalEntered(this.#program, signal);
  }

  #answer(answer: Answer): void {
    this.socket.end(`${JSON.stringify(answer)}\n`);
  }
}

/** Signals the program that nsenter waits for; nsenter alone would leave it behind. */
export function signalEntered(nsenter: ChildProcess, signal: NodeJS.Signals): void {
  try {
    for (const child of childrenOf(nsenter.pid ?? 0)) process.kill(child, signal);
  } catch {
    nsenter.kill(signal);
  }
}

/**
 * Has the lab run a command on a host, with the standard streams of this process.
 * @param signals Emits signals, which go on to the program.
 * @returns Its exit status, as a shell tells it. @throws WeirError when the lab does not run it.
 */
export async function throughEntrance(
  folder: string,
  request: EntranceRequest,
  signals: NodeJS.EventEmitter,
): Promise<number> {
  const socket = connect(join(folder, kSocket));
  const send = (line: object) => socket.write(`${JSON.stringify(line)}\n`);
  const pass = (signal: NodeJS.Signals) => void send({ signal });
  for (const signal of kPassed) signals.on(signal, pass);
  try {
    send(request);
    for await (const line of createInterface(socket)) {
      const answer = answerSchema.parse(JSON.parse(line));
      if ("status" in answer) return answer.status;
      throw new WeirError(`the lab does not run ${request.command[0]} on ${request.host}: ${answer.error}`);
    }
  } catch (error) {
    if (error instanceof WeirError) throw error;
    throw new WeirError(`the lab cannot be asked: ${(error as Error).message}`, { cause: error });
  } finally {
    for (const signal of kPassed) signals.off(signal, pass);
    socket.destroy();
  }
  throw new WeirError("the lab has ended");
}

/** Talks to running daemons over their control sockets. */
import { lstatSync, readdirSync, unlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { WeirError } from "../base/error.js";
import type { ControlRequests, LabRequests, StreamRequests } from "./protocol.js";

const controlAnswer = z.union([
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.string(), hint: z.string().exactOptional() }),
]);
export type ControlAnswer = z.output<typeof controlAnswer>;

/** A daemon answers within milliseconds; on a machine with far more to do than CPUs, within seconds. */
const kTimeoutMs = 15_000;
/** Time after its file was made in which a socket may be one that its process is about to listen at. */
const kStartingMs = 10_000;

/** Suffix of a lab's socket behind the lab's name; a daemon's is `.sock`. */
export const kLabSuffix = ".lab.sock";

/** Error of a daemon or lab that is there and says nothing. */
export class NoAnswer extends WeirError {
  constructor(who: string) {
    super(`${who} did not answer within ${kTimeoutMs / 1000} s`, {
      hint: "its process is stopped, or the machine has much to do",
    });
  }
}

/** Returns whether anybody listens at a socket. @param onRefused Is given the reason if not: ECONNREFUSED where a process has left it. */
export async function probe(path: string, onRefused: (code: string) => void = () => {}): Promise<boolean> {
  try {
    (await open(path)).destroy();
    return true;
  } catch (error) {
    onRefused((error as NodeJS.ErrnoException).code ?? "");
    return false;
  }
}

/** Sends one request with its arguments. @throws WeirError when nobody answers, or the daemon refuses. */
export async function ask<Name extends keyof AllRequests>(
  path: string,
  request: Name,
  args: Readonly<Record<string, unknown>> = {},
): Promise<AllRequests[Name]> {
  const { data, socket } = await send(path, { ...args, request });
  socket.destroy();
  return data as AllRequests[Name];
}

type AllRequests = ControlRequests & LabRequests;

/** The stream that follows an answer of a daemon. */
export interface AnswerStream<Data> {
  data: Data;
  /** Socket of the stream, paused and without an encoding. Ending it asks the daemon to end the stream. */
  socket: Socket;
}

/** Sends a request that is answered by a stream. @throws as ask() does. */
export async function askStream<Name extends keyof StreamRequests>(
  path: string,
  request: Name,
  args: Readonly<Record<string, unknown>> = {},
): Promise<AnswerStream<StreamRequests[Name]>> {
  const { data, socket } = await send(path, { ...args, request });
  return { data: data as StreamRequests[Name], socket };
}

async function send(path: string, request: object): Promise<AnswerStream<unknown>> {
  let socket: Socket;
  try {
    socket = await open(path);
  } catch (error) {
    throw unreachable(path, error as NodeJS.ErrnoException);
  }
  try {
    const answer = parse(await exchange(socket, JSON.stringify(request)), path);
    if (answer.ok) return { data: answer.data, socket };
    throw new WeirError(answer.error, { hint: answer.hint });
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function parse(line: string, path: string): ControlAnswer {
  try {
    return controlAnswer.parse(JSON.parse(line));
  } catch (cause) {
    throw new WeirError(`what answers at ${path} is no daemon or lab of Weir`, { cause });
  }
}

/** Names of the sockets that somebody listens at, without `.sock`. Sockets of processes that were killed are removed on the way. */
export async function controlSockets(folder: string): Promise<string[]> {
  let files: string[];
  try {
    files = readdirSync(folder).filter((file) => file.endsWith(".sock"));
  } catch {
    return [];
  }
  const paths = files.map((file) => join(folder, file));
  const alive = await Promise.all(
    paths.map((path) => probe(path, (code) => code === "ECONNREFUSED" && removeDead(path))),
  );
  return files
    .filter((_, i) => alive[i])
    .map((file) => file.slice(0, -".sock".length))
    .sort();
}

function removeDead(path: string): void {
  try {
    const file = lstatSync(path);
    if (file.isSocket() && Date.now() - file.mtimeMs > kStartingMs) unlinkSync(path);
  } catch {
    // The file is gone already, or belongs to somebody else.
  }
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once("connect", () => resolve(socket)).once("error", reject);
  });
}

/** Returns the line that answers. Bytes behind it are the next that the socket gives, which is paused. */
function exchange(socket: Socket, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    const slow = setTimeout(() => {
      socket.destroy(new NoAnswer("the daemon"));
    }, kTimeoutMs);
    const gone = (error?: unknown) => {
      settle();
      reject(error instanceof WeirError ? error : new WeirError("the daemon went away before it answered"));
    };
    const settle = () => {
      clearTimeout(slow);
      socket.off("data", take).off("error", gone).off("end", gone).off("close", gone);
    };
    const take = (piece: Buffer) => {
      const end = piece.indexOf("\n");
      pieces.push(end < 0 ? piece : piece.subarray(0, end));
      if (end < 0) return;
      settle();
      socket.pause();
      if (end + 1 < piece.length) socket.unshift(piece.subarray(end + 1));
      resolve(Buffer.concat(pieces).toString());
    };
    socket.on("data", take).on("error", gone).on("end", gone).on("close", gone);
    socket.write(`${request}\n`);
  });
}

function unreachable(path: string, error: NodeJS.ErrnoException): WeirError {
  const reasons: Record<string, string> = {
    ENOENT: "there is no such socket",
    ECONNREFUSED: "nobody listens there; the daemon is gone",
    EACCES: "it belongs to another user",
  };
  return new WeirError(`cannot reach the daemon at ${path}: ${reasons[error.code ?? ""] ?? error.message}`, {
    cause: error,
    hint: error.code === "EACCES" ? "run as the user that the daemon runs as" : "is it running?",
  });
}

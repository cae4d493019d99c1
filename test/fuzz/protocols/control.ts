/** Control sockets: the server with requests of any kind, and the client, also of captures, with answers of any kind. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { WeirError } from "../../../src/base/error.js";
import { countsBlock, type StreamCounts } from "../../../src/device/capture/counts.js";
import { blockAt, interfaceOf, kBlock } from "../../../src/device/capture/pcapng.js";
import { receiveCapture } from "../../../src/device/capture/receive.js";
import { parseCaptureRequest } from "../../../src/device/capture/request.js";
import { ask, askStream } from "../../../src/device/control_client.js";
import { type ControlRequest, ControlServer, Stream } from "../../../src/device/control_server.js";
import { packetBlock } from "../../device/capture/blocks.js";
import { Finding, type Input, requireThat } from "../input.js";
import { changedDocument, changedText, kindOf } from "../mutate.js";
import type { Part } from "../protocols.js";

const kRequests = [
  { request: "status" },
  { request: "counters", device: "h1" },
  { request: "capture", ports: ["p0", "p1"], snaplen: 256, kinds: ["roce", "cnp"] },
  { request: "stream" },
];
const kKeys = ["request", "device", "ports", "snaplen", "kinds", "ok", "data", "error", "hint", "name", "speed"];
const kStart = {
  kind: "switch",
  name: "sw",
  version: "1",
  snaplen: 256,
  ports: [
    { name: "p0", description: "", speed: 0 },
    { name: "p1", description: "", speed: 1e9 },
  ],
};
const kPatienceMs = 30_000;

export async function openControl(folder: string): Promise<Part> {
  /** Error of an answer that is no refusal. */
  let internal: unknown;
  const server = await ControlServer.open(join(folder, "control.sock"), (request) => {
    try {
      return answer(request);
    } catch (error) {
      if (!(error instanceof WeirError)) internal = error;
      throw error;
    }
  });
  let saying: Uint8Array = Buffer.alloc(0);
  const stranger = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(saying));
  });
  const strange = join(folder, "stranger.sock");
  await once(stranger.listen(strange), "listening");

  const asServer = async (input: Input) => {
    const text = requestsOf(input);
    internal = undefined;
    const heard = await talk(server.path, text, input);
    if (internal !== undefined) throw new Finding((internal as Error).message, text, { cause: internal });
    const answers = heard.slice(0, heard.lastIndexOf("\n") + 1).split("\n");
    return answers.slice(0, -1).map((line) => {
      const { ok, error } = parsed(line, text);
      return ok === true ? "answered" : kindOf(String(error));
    });
  };
  const asClient = async (input: Input) => {
    saying = answerOf(input);
    try {
      if (input.once(2)) await ask(strange, "status");
      else await capture(strange);
      return ["told"];
    } catch (error) {
      if (error instanceof WeirError || (error as Error).message.startsWith("malformed"))
        return [kindOf(String(error))];
      throw new Finding((error as Error).message, Buffer.from(saying).toString("latin1"), { cause: error });
    }
  };
  return {
    run: (input) => (input.once(2) ? asServer(input) : asClient(input)),
    close: () => {
      server.close();
      stranger.close();
    },
  };
}

/** Answers as daemons and labs do. */
function answer(request: ControlRequest): unknown {
  if (request.request === "capture") return parseCaptureRequest(request);
  if (request.request !== "stream") return request;
  return new Stream({}, (client) => {
    client.write("blocks");
    return () => void client.write("the last");
  });
}

/** Lines, mostly of JSON. */
function requestsOf(input: Input): string {
  const lines = Array.from({ length: 1 + input.below(4) }, () => {
    const line = JSON.stringify(changedDocument(input, input.pick(kRequests), kKeys));
    return input.once(4) ? changedText(input, line) : line;
  });
  if (input.once(20)) lines.push("x".repeat(4000 + input.below(200)));
  return `${lines.join("\n")}${input.once(8) ? "" : "\n"}`;
}

/** Says it in pieces, ends its side, and gives what it hears until the other side ends. */
async function talk(path: string, text: string, input: Input): Promise<string> {
  const socket = connect({ path, allowHalfOpen: true });
  // The server may end first, of what is too long.
  socket.on("error", () => {});
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length && socket.writable; ) {
    const length = input.once(2) ? bytes.length : 1 + input.below(64);
    socket.write(bytes.subarray(at, at + length));
    at += length;
  }
  socket.end();
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await within(socket, text);
  return Buffer.concat(pieces).toString();
}

/** Waits until it is closed. */
async function within(socket: Socket, given: string): Promise<void> {
  const timer = setTimeout(() => socket.destroy(), kPatienceMs);
  const begin = performance.now();
  if (!socket.closed) await once(socket, "close");
  clearTimeout(timer);
  requireThat(performance.now() - begin < kPatienceMs, "the server does not end a connection whose client has", given);
}

function parsed(line: string, given: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch (cause) {
    // The stream comes behind the answer that begins it.
    if (line.startsWith("blocks")) return { ok: true };
    throw new Finding(`an answer is no JSON: ${line}`, given, { cause });
  }
}

/** A line, and what may follow of a capture. */
function answerOf(input: Input): Buffer {
  const sound = { ok: !input.once(8), data: kStart };
  const document = input.once(2) ? sound : changedDocument(input, sound, kKeys);
  const line = JSON.stringify(document);
  const blocks = Array.from({ length: input.below(5) }, () => blockOf(input));
  return Buffer.concat([Buffer.from(`${input.once(8) ? changedText(input, line) : line}\n`), ...blocks]);
}

function blockOf(input: Input): Buffer {
  const counts = { ports: kStart.ports.map(() => ({ seen: 3, captured: 2, dropped: 1 })), last: input.once(2) };
  const block = input.once(3)
    ? countsBlock((input.once(2) ? counts : changedDocument(input, counts, ["seen", "last"])) as StreamCounts)
    : packetBlock({ interface: input.below(3), time: 1n, bytes: input.take(input.below(80)), comment: "marked" });
  for (let changes = input.below(5) - 3; changes > 0; changes--) {
    const at = input.below(block.length);
    block[at] = (block[at] as number) ^ input.byte();
  }
  return input.once(8) ? block.subarray(0, input.below(block.length)) : block;
}

/** The file that comes of it is one of whole blocks, whatever is said; and the numbers of its ports can be changed. */
async function capture(path: string): Promise<void> {
  const stream = await askStream(path, "capture");
  const pieces: Buffer[] = [];
  const write = async (bytes: Buffer) => void pieces.push(Buffer.from(bytes));
  const received = receiveCapture(stream, {
    section: { application: "fuzz" },
    write,
    signal: new AbortController().signal,
  });
  await received.catch(() => {});
  const file = Buffer.concat(pieces);
  for (let at = 0; at < file.length; ) {
    const block = blockAt(file, at);
    if (block === undefined) throw new Finding("a capture ends in the middle of a block", file.toString("hex"));
    if (block.type === kBlock.packet) interfaceOf(file, at, block, 2);
    at = block.end;
  }
  await received;
}

/** A capture from a device's side to the client's file, over a real control socket, with frames that a test makes. */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { kCountsBlock } from "../../src/device/capture/counts.js";
import { block, blockAt, kBlock } from "../../src/device/capture/pcapng.js";
import { receiveCapture } from "../../src/device/capture/receive.js";
import { Captures } from "../../src/device/captures.js";
import { askStream } from "../../src/device/control_client.js";
import { ControlServer, Stream } from "../../src/device/control_server.js";
import type { NativeCapture } from "../../src/native/types.js";
import { weir } from "../cli/harness.js";
import { FakeCapture } from "../daemon/fake_addon.js";
import { eventually } from "../patience.js";
import { packetBlock } from "./capture/blocks.js";
import { frameRecord } from "./capture/frames.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-capture-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const kStatus = { kind: "switch", name: "sw0" };

/** Two ports, each with a worker of its own. */
async function device() {
  const made: FakeCapture[] = [];
  const worker = () => {
    const attached = new Map<NativeCapture, unknown>();
    return {
      attached,
      attach: (capture: NativeCapture, places: unknown) => void attached.set(capture, places),
      detach: (capture: NativeCapture) => void attached.delete(capture),
    };
  };
  const workers = [worker(), worker()];
  const events = { began: vi.fn(), ended: vi.fn() };
  const addon = {
    Capture: class extends FakeCapture {
      constructor(config: ConstructorParameters<typeof FakeCapture>[0]) {
        super(config);
        made.push(this);
      }
    },
  };
  const captures = new Captures(
    () => ({
      addon,
      about: { kind: "switch", name: "sw0", version: "1.2" },
      ports: ["a", "b"].map((name, i) => ({
        name,
        description: `port ${name}`,
        speed: 1e9,
        place: { worker: workers[i] as (typeof workers)[number], device: 0, port: i, rate: 1e9, meant: false },
      })),
    }),
    events,
  );
  const server = await ControlServer.open(join(folder(), "sw0.sock"), (asked) =>
    asked.request === "status" ? kStatus : captures.answer(asked),
  );
  onTestFinished(() => server.close());
  return { path: server.path, server, captures, made, workers, events };
}

const fields = (size: number) => ({ time: 1_700_000_000_000_000_000n, bytes: Buffer.alloc(size, size), direction: 1 });
/** A frame as a worker captures it, and as it is sent. */
const frame = (port: number, size: number) => frameRecord({ tap: port, ...fields(size) });
const blockOf = (port: number, size: number) => packetBlock({ interface: port, ...fields(size) });

/** Types of the blocks of a whole file. */
function blocksOf(file: Buffer): number[] {
  const types: number[] = [];
  for (let at = 0; at < file.length; ) {
    const block = blockAt(file, at);
    if (block === undefined) throw new Error(`cut short at ${at}`);
    types.push(block.type);
    at = block.end;
  }
  return types;
}

/** The packet blocks of a stream, without the counts between them. */
function packetsOf(stream: Buffer): Buffer {
  const packets: Buffer[] = [];
  let at = 0;
  for (let block = blockAt(stream, at); block !== undefined; block = blockAt(stream, at)) {
    if (block.type === kBlock.packet) packets.push(stream.subarray(at, block.end));
    at = block.end;
  }
  return Buffer.concat(packets);
}

/** Starts the verb, and waits until the device is captured. */
async function capture(own: Awaited<ReturnType<typeof device>>, ...args: string[]) {
  const file = join(folder(), "x.pcapng");
  const before = own.events.began.mock.calls.length;
  const ended = weir(["capture", "--socket", own.path, "--write", file, ...args]);
  await eventually(() => expect(own.events.began.mock.calls.length).toBe(before + 1));
  return { ended, file };
}

describe("weir capture", () => {
  it("writes what the workers captured until it has enough, and leaves nothing attached", async () => {
    const own = await device();
    const { ended, file } = await capture(own, "--count", "3", "--filter", "ce,pfc", "--snaplen", "200B", "--json");
    const [first, second] = own.made as [FakeCapture, FakeCapture];
    expect(first.config).toMatchObject({ snap_length: 200, kinds: 36, taps: 2 });
    expect([...(own.workers[1]?.attached.values() ?? [])]).toEqual([[{ tap: 1, device: 0, port: 1 }]]);
    Object.assign(first.of[0] ?? {}, { seen: 9, captured: 2, dropped: 4 });
    Object.assign(second.of[1] ?? {}, { seen: 2, captured: 2, dropped: 0 });
    first.waiting.push(Buffer.concat([frame(0, 60), frame(0, 61)]));
    second.waiting.push(Buffer.concat([frame(1, 62), frame(1, 63)]));
    const { status, stdout, stderr } = await ended;
    expect(status, stderr).toBe(0);
    const whole = readFileSync(file);
    expect(JSON.parse(stdout)).toEqual({
      device: "sw0",
      file,
      frames: 3,
      bytes: whole.length,
      dropped: 4,
      ports: [
        { name: "a", seen: 9, captured: 2, dropped: 4, written: 2 },
        { name: "b", seen: 2, captured: 2, dropped: 0, written: 1 },
      ],
      complete: true,
    });
    const { section, interface: port, packet, statistics } = kBlock;
    expect(blocksOf(whole)).toEqual([section, port, port, packet, packet, packet, statistics, statistics]);
    expect(own.workers.map(({ attached }) => attached.size)).toEqual([0, 0]);
    expect(own.events.ended).toHaveBeenCalledExactlyOnceWith(["a", "b"], { seen: 11, captured: 4, dropped: 4 });
  });

  it("captures the ports that it names, each once", async () => {
    const own = await device();
    const { ended } = await capture(own, "--port", "b", "--port", "b", "--duration", "50ms");
    const { status, stderr } = await ended;
    expect(status).toBe(0);
    expect(stderr).toMatch(/x\.pcapng: 0 frames of sw0, .*\n {2}b: 0 written\n$/);
    expect(own.made).toHaveLength(1);
    expect(own.made[0]?.config.taps).toBe(1);
  });

  it("ends with a whole file and says so when the device breaks off", async () => {
    const own = await device();
    const server = await ControlServer.open(join(folder(), "gone.sock"), ({ request }) => {
      if (request === "status") return kStatus;
      const data = {
        ...kStatus,
        version: "1.2",
        snaplen: 200,
        ports: [{ name: "a", description: "", speed: 0 }],
      };
      return new Stream(data, (client) => {
        client.write(Buffer.concat([blockOf(0, 60), blockOf(0, 61).subarray(0, 50)]), () =>
          (client as Socket).destroy(),
        );
        return () => {};
      });
    });
    onTestFinished(() => server.close());
    const file = join(folder(), "x.pcapng");
    const { status, stderr } = await weir(["capture", "--socket", server.path, "--write", file]);
    expect(status).toBe(1);
    expect(stderr).toContain("error: sw0 went away during the capture");
    expect(blocksOf(readFileSync(file))).toEqual([kBlock.section, kBlock.interface, kBlock.packet]);
    expect(own.made).toEqual([]);
  });

  it("is told what the device does not have or take", async () => {
    const own = await device();
    const refused = async (...args: string[]) => {
      const { status, stderr } = await weir(["capture", "--socket", own.path, "--write", "/dev/null", ...args]);
      return [status, stderr];
    };
    expect(await refused("--port", "c")).toEqual([1, 'error: sw0 has no port called "c"\n  hint: its ports: a, b\n']);
    expect((await refused("--filter", "ce,x"))[0]).toBe(2);
    expect((await refused("--snaplen", "10B"))[1]).toContain("hint: must be 128 B to 262.144 KB");
    expect((await refused("--count", "0"))[1]).toContain("must be an integer of 1 or more");
    expect((await refused("--json", "--write", "-"))[1]).toContain("--json and --write - both write to stdout");
    expect(own.made).toEqual([]);
  });

  it("ends its file with a whole block where the disk is full", async () => {
    const own = await device();
    const handle = await open(join(folder(), "any"), "w");
    const prototype = Object.getPrototypeOf(handle) as typeof handle;
    await handle.close();
    const { ended, file } = await capture(own);
    await eventually(() => expect(statSync(file).size).toBeGreaterThan(0));
    const whole = readFileSync(file);
    // writev(2) does the same: it writes as much as fits, and then fails.
    const write = vi.spyOn(prototype, "writeFile").mockImplementation(async function (this: typeof handle, bytes) {
      await this.write((bytes as Buffer).subarray(0, 50));
      throw new Error("ENOSPC: no space left on device, write");
    });
    onTestFinished(() => write.mockRestore());
    own.made[0]?.waiting.push(frame(0, 60));
    const { status, stderr } = await ended;
    expect([status, stderr]).toEqual([1, `error: cannot write ${file}: ENOSPC: no space left on device, write\n`]);
    expect(readFileSync(file)).toEqual(whole);
  });

  it("detaches where its file cannot be written", async () => {
    const own = await device();
    const { status, stderr } = await weir(["capture", "--socket", own.path, "--write", "/nonexistent/x.pcapng"]);
    expect(status).toBe(1);
    expect(stderr).toContain("error: cannot write /nonexistent/x.pcapng: ENOENT");
    await eventually(() => expect(own.events.ended).toHaveBeenCalledTimes(1));
    expect(own.workers.map(({ attached }) => attached.size)).toEqual([0, 0]);
  });
});

describe("a device", () => {
  it("goes on when a client dies, and captures nothing any more", async () => {
    const own = await device();
    const { socket } = await askStream(own.path, "capture");
    expect(own.workers.map(({ attached }) => attached.size)).toEqual([1, 1]);
    socket.destroy();
    await eventually(() => expect(own.events.ended).toHaveBeenCalledTimes(1));
    expect(own.workers.map(({ attached }) => attached.size)).toEqual([0, 0]);
  });

  it("leaves frames where they are while a client does not read, and does not hold them itself", async () => {
    const own = await device();
    const { socket } = await askStream(own.path, "capture", { ports: ["a"] });
    onTestFinished(() => void socket.destroy());
    const [only] = own.made as [FakeCapture];
    for (let i = 0; i < 1000; i++) only.waiting.push(frame(0, 65_000));
    await eventually(() => expect(only.waiting.length).toBeLessThan(990));
    let left = Number.NaN;
    await eventually(() => {
      const before = left;
      left = only.waiting.length;
      expect(left).toBe(before);
    });
    expect(left).toBeGreaterThan(900);
    // The client has its turn: all frames come.
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.resume();
    await eventually(() => expect(bytes).toBeGreaterThanOrEqual(1000 * 65_000));
  });

  it("sends what it drained, whatever it drains before that has gone out", async () => {
    const own = await device();
    const { socket } = await askStream(own.path, "capture", { ports: ["a"] });
    onTestFinished(() => void socket.destroy());
    const [only] = own.made as [FakeCapture];
    // Batches are of the most that is drained at once, and of little.
    const batches = Array.from({ length: 20 }, (_, i) =>
      Array.from({ length: i % 3 === 0 ? 1 : 15 }, (_, j) => 60_000 + 20 * i + j),
    );
    for (const sizes of batches) only.waiting.push(Buffer.concat(sizes.map((size) => frame(0, size))));
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => void chunks.push(chunk)).resume();
    await eventually(() => expect(only.waiting.length).toBe(0));
    own.captures.close();
    await new Promise((resolve) => socket.once("end", resolve));
    const expected = Buffer.concat(batches.flat().map((size) => blockOf(0, size)));
    expect(packetsOf(Buffer.concat(chunks)).equals(expected)).toBe(true);
  });

  it("takes eight captures at a time, and ends them all when it stops", async () => {
    const own = await device();
    const streams = [];
    for (let i = 0; i < 8; i++) streams.push(await askStream(own.path, "capture"));
    await expect(askStream(own.path, "capture")).rejects.toThrow("sw0 is being captured 8 times already");
    const ends = streams.map(({ socket }) => new Promise((resolve) => socket.on("end", resolve).resume()));
    own.captures.close();
    await Promise.all(ends);
    expect(own.workers.map(({ attached }) => attached.size)).toEqual([0, 0]);
    expect(own.events.ended).toHaveBeenCalledTimes(8);
  });
});

describe("what answers something else", () => {
  async function stranger(data: unknown, blocks: Buffer) {
    const begin = (client: Writable) => {
      client.end(blocks);
      return () => {};
    };
    const server = await ControlServer.open(join(folder(), "sw0.sock"), () => new Stream(data, begin));
    onTestFinished(() => server.close());
    const stream = await askStream(server.path, "capture");
    const written: Buffer[] = [];
    const options = { section: { application: "test" }, write: async (bytes: Buffer) => void written.push(bytes) };
    return { written, received: receiveCapture(stream, { ...options, signal: new AbortController().signal }) };
  }
  const start = {
    kind: "switch",
    name: "sw0",
    version: "1",
    snaplen: 256,
    ports: [{ name: "a", description: "", speed: 0 }],
  };

  it.each([
    ["nothing", null],
    ["no ports", { ...start, ports: undefined }],
    ["ports without names", { ...start, ports: [{}] }],
    ["frames without end", { ...start, snaplen: 2 ** 32 }],
  ])("begins no capture: %s", async (_, data) => {
    const { received, written } = await stranger(data, Buffer.alloc(0));
    await expect(received).rejects.toMatchObject({
      message: "what answered begins no capture",
      hint: "use the same version of weir as what is captured",
    });
    expect(written).toEqual([]);
  });

  it.each(["{", '{"ports":[]}', '{"ports":[{"seen":-1,"captured":0,"dropped":0}],"last":true}'])(
    "is malformed: counts %s",
    async (text) => {
      const { received } = await stranger(start, block(kCountsBlock, [Buffer.from(text)]));
      await expect(received).rejects.toThrow(/^malformed counts$/);
    },
  );
});

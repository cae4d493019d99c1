/** The control socket's protocol, and how a client finds the daemon that is meant. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { WeirError } from "../../src/base/error.js";
import { ask, askStream, controlSockets } from "../../src/device/control_client.js";
import { ControlServer, type Handler, Stream } from "../../src/device/control_server.js";
import { type DeviceChoice, findDevices } from "../../src/device/running.js";
import { eventually } from "../patience.js";

const kServer = new URL("../../src/device/control_server.ts", import.meta.url).href;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-control-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const echo: Handler = (request) => {
  if (request.request === "refused") throw new WeirError("not now", { hint: "later" });
  return request;
};

async function serve(path = join(folder(), "sw0.sock"), handler = echo): Promise<ControlServer> {
  const server = await ControlServer.open(path, handler);
  onTestFinished(() => server.close());
  return server;
}

/** Sends text as it is, and gives the answers until the other side ends or `lines` have come. */
async function talk(path: string, text: string, lines: number): Promise<unknown[]> {
  const socket = connect(path);
  let heard = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    heard += chunk;
  });
  socket.write(text);
  await eventually(() => expect(heard.split("\n").length).toBe(lines + 1));
  socket.destroy();
  return heard
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

describe("who says nothing", () => {
  it("is told of as that, and not as one that does not run", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const directory = folder();
    const silent = createServer().listen(join(directory, "x.lab.sock"));
    onTestFinished(() => void silent.close());
    await once(silent, "listening");
    const failure = async (name?: string) => {
      let told: unknown;
      const asked = findDevices({ name }, () => directory).catch((error: unknown) => {
        told = error;
      });
      for (; told === undefined; await new Promise((resolve) => setImmediate(resolve))) vi.advanceTimersByTime(1_000);
      await asked;
      return told;
    };
    const said = {
      message: "the lab x did not answer within 15 s",
      hint: "its process is stopped, or the machine has much to do",
    };
    for (const name of ["x", "x.h1", undefined]) expect(await failure(name)).toMatchObject(said);
    expect(await failure("y")).toMatchObject({ message: "no daemon or lab called y is running", hint: "running: x" });
  });
});

describe("the server", () => {
  it("makes a socket that only its owner may open, and removes it", async () => {
    const path = join(folder(), "new/sw0.sock");
    const server = await ControlServer.open(path, echo);
    expect(statSync(path).isSocket()).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    server.close();
    server.close();
    expect(existsSync(path)).toBe(false);
  });

  it("says where there can be no folder for one", async () => {
    await expect(ControlServer.open("/proc/weir/sw0.sock", echo)).rejects.toThrow(
      "cannot make the folder /proc/weir: ",
    );
  });

  it("is gone with a process that ends at once, as by a second SIGINT", () => {
    const path = join(folder(), "sw0.sock");
    const script = `
      const { ControlServer } = await import(${JSON.stringify(kServer)});
      await ControlServer.open(${JSON.stringify(path)}, () => {});
      console.log(require("node:fs").existsSync(${JSON.stringify(path)}));
      process.exit(130);`;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", "-e", `void (async () => {${script}})()`],
      { encoding: "utf8" },
    );
    expect({ status, stdout }, stderr).toEqual({ status: 130, stdout: "true\n" });
    expect(existsSync(path)).toBe(false);
  });

  it("answers each line with one line, whatever pieces they come in", async () => {
    const { path } = await serve();
    const answers = await talk(path, '{"request":"a"}\n{"request":"b"}\n', 2);
    expect(answers).toEqual([
      { ok: true, data: { request: "a" } },
      { ok: true, data: { request: "b" } },
    ]);
    const socket = connect(path);
    socket.write('{"requ');
    socket.write('est":"c"}\n');
    const [answer] = (await once(socket.setEncoding("utf8"), "data")) as [string];
    expect(JSON.parse(answer)).toEqual({ ok: true, data: { request: "c" } });
    socket.destroy();
  });

  it.each([
    ["what is not JSON", "nonsense", "the request is not JSON"],
    ["what names no request", '{"req":1}', 'the request has no "request"'],
    ["null", "null", 'the request has no "request"'],
  ])("refuses %s and goes on", async (_what, line, error) => {
    const { path } = await serve();
    expect(await talk(path, `${line}\n{"request":"a"}\n`, 2)).toEqual([
      { ok: false, error },
      { ok: true, data: { request: "a" } },
    ]);
  });

  it("gives up on a request without an end", async () => {
    const { path } = await serve();
    expect(await talk(path, "x".repeat(5000), 1)).toEqual([{ ok: false, error: "the request is too long" }]);
  });

  it("answers no further than the client reads, and all of it once it does", async () => {
    let answered = 0;
    const { path } = await serve(undefined, () => {
      answered++;
      return "x".repeat(40_000);
    });
    const socket = connect(path);
    onTestFinished(() => void socket.destroy());
    const kRequests = 500;
    let heard = 0;
    let last: string | undefined;
    socket.setEncoding("utf8").on("data", (text: string) => {
      heard += text.length;
      last = text.at(-1);
    });
    socket.pause();
    socket.write('{"request":"a"}\n'.repeat(kRequests));
    await eventually(() => expect(answered).toBeGreaterThan(0));
    let before = -1;
    while (answered !== before) {
      before = answered;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    // The kernel takes some answers of 40 KB each; one more is under way.
    expect(answered).toBeLessThan(50);
    // Others are answered meanwhile.
    await ask(path, "status");
    socket.end();
    socket.resume();
    await eventually(() => expect(heard).toBe(kRequests * '{"ok":true,"data":""}\n'.length + kRequests * 40_000));
    expect(last).toBe("\n");
    expect(answered).toBe(kRequests + 1);
    await eventually(() => expect(socket.closed).toBe(true));
  });

  it.each([
    ["asks nothing", ""],
    ["never finishes its request", '{"request":'],
  ])("lets go of a client that %s", async (_, text) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { path } = await serve();
    const socket = connect(path);
    const closed = once(socket, "close");
    let heard = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      heard += part;
    });
    socket.write('{"request":"a"}\n');
    while (heard === "") await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(9_000);
    // Single bytes gain no time.
    socket.write(text);
    await new Promise((resolve) => setImmediate(resolve));
    expect(socket.closed).toBe(false);
    vi.advanceTimersByTime(1_000);
    await closed;
    expect(JSON.parse(heard.split("\n")[1] ?? "")).toEqual({ ok: false, error: "no request within 10 s" });
  });

  it("lets go of a client that does not read what it asked for", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { path } = await serve(undefined, () => "x".repeat(4_000_000));
    const socket = connect(path).pause();
    const closed = once(socket, "close");
    let asked = 0;
    socket.on("error", () => {});
    socket.write('{"request":"a"}\n', () => asked++);
    while (asked === 0 || socket.bytesRead === 0) {
      socket.read(0);
      await new Promise((resolve) => setImmediate(resolve));
    }
    vi.advanceTimersByTime(10_000);
    socket.resume();
    await closed;
    expect(socket.bytesRead).toBeLessThan(4_000_000);
  });

  it("answers however many connections somebody holds", async () => {
    const { path } = await serve();
    const held = Array.from({ length: 200 }, () => connect(path).on("error", () => {}));
    onTestFinished(() => {
      for (const socket of held) socket.destroy();
    });
    await Promise.all(held.map((socket) => once(socket, "connect")));
    for (const socket of held) socket.write('{"request":');
    expect(await ask(path, "status")).toEqual({ request: "status" });
    await eventually(() => expect(held.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(64));
  });

  it("hands over arguments as they came", async () => {
    const { path } = await serve();
    const args = { ports: ["a", 7], deep: { x: null } };
    expect(await ask(path, "status", args)).toEqual({ request: "status", ...args });
  });

  it("replaces the socket of a daemon that is dead", async () => {
    const path = join(folder(), "sw0.sock");
    makeStale(path);
    expect(existsSync(path)).toBe(true);
    const server = await serve(path);
    expect(await ask(server.path, "status")).toEqual({ request: "status" });
  });

  it("of a daemon or lab that was killed goes when somebody looks for those that run", async () => {
    const place = folder();
    const sockets = ["dead.sock", "gone.lab.sock", "starting.sock"].map((name) => join(place, name));
    for (const path of sockets) makeStale(path);
    writeFileSync(join(place, "precious.sock"), "no socket");
    const before = new Date(Date.now() - 60_000);
    for (const name of ["dead.sock", "gone.lab.sock", "precious.sock"]) utimesSync(join(place, name), before, before);
    const { path } = await serve(join(place, "sw0.sock"));
    utimesSync(path, before, before);
    expect(await controlSockets(place)).toEqual(["sw0"]);
    // A socket that was made just now may be of a process that does not listen yet.
    expect(readdirSync(place).sort()).toEqual(["precious.sock", "starting.sock", "sw0.sock"]);
    expect(await ask(path, "status")).toEqual({ request: "status" });
  });

  it("leaves the socket of a living daemon alone", async () => {
    const { path } = await serve();
    await expect(ControlServer.open(path, echo)).rejects.toMatchObject({
      message: `a daemon is running already: it answers at ${path}`,
      hint: "stop it, or give this one another `name`",
    });
    expect(await ask(path, "status")).toEqual({ request: "status" });
  });

  it("does not remove what is no socket", async () => {
    const path = join(folder(), "sw0.sock");
    writeFileSync(path, "precious");
    await expect(ControlServer.open(path, echo)).rejects.toThrow("there is a file of that name");
    expect(existsSync(path)).toBe(true);
  });
});

describe("a stream", () => {
  /** Writes `first` behind its answer, and "last" when it is ended; tells how often that was. */
  async function serveStream(first: string) {
    const ended = vi.fn();
    const handler = () =>
      new Stream({ name: "sw0" }, (client) => {
        client.write(first);
        return () => {
          ended();
          client.write("last");
        };
      });
    return { ended, server: await serve(undefined, handler) };
  }

  async function begin(path: string) {
    const { data, socket } = await askStream(path, "capture");
    const heard: Buffer[] = [];
    const end = once(socket, "end");
    socket.on("data", (piece: Buffer) => heard.push(piece)).resume();
    return { data, socket, end, heard: () => Buffer.concat(heard) };
  }

  it("follows the answer, bytes as they are, until the client ends its side", async () => {
    const first = "\n{}\u0000".repeat(30_000);
    const { ended, server } = await serveStream(first);
    const { data, socket, end, heard } = await begin(server.path);
    expect(data).toEqual({ name: "sw0" });
    await eventually(() => expect(heard().length).toBe(first.length));
    socket.end('{"request":"ignored"}\n');
    await end;
    expect(heard().toString()).toBe(`${first}last`);
    await eventually(() => expect(socket.closed).toBe(true));
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("ends when the client is gone", async () => {
    const { ended, server } = await serveStream("x".repeat(10_000_000));
    const { socket } = await askStream(server.path, "capture");
    socket.destroy();
    await eventually(() => expect(ended).toHaveBeenCalledTimes(1));
  });

  it("has its last bytes when the server closes", async () => {
    const { server } = await serveStream("first");
    const { end, heard } = await begin(server.path);
    server.close();
    await end;
    expect(heard().toString()).toBe("firstlast");
  });

  it("does not keep a server that closes waiting for a client that does not read", async () => {
    const { server } = await serveStream("x".repeat(10_000_000));
    const { socket } = await askStream(server.path, "capture");
    onTestFinished(() => void socket.destroy());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    server.close();
    vi.advanceTimersByTime(1000);
    vi.useRealTimers();
    // Bytes that the kernel had taken are still read; the end is not an orderly one with "last".
    const heard: Buffer[] = [];
    socket.on("data", (piece: Buffer) => heard.push(piece)).resume();
    await once(socket, "end");
    expect(Buffer.concat(heard).length).toBeLessThan(10_000_000);
  });
});

describe("the client", () => {
  it("passes on what the daemon refuses, with its hint", async () => {
    const { path } = await serve();
    await expect(ask(path, "refused" as "status")).rejects.toMatchObject({ message: "not now", hint: "later" });
  });

  it("says what is wrong with a socket", async () => {
    const path = join(folder(), "none.sock");
    await expect(ask(path, "status")).rejects.toThrow(`cannot reach the daemon at ${path}: there is no such socket`);
    makeStale(path);
    await expect(ask(path, "status")).rejects.toThrow("nobody listens there; the daemon is gone");
  });

  it("says when the daemon goes away, and when it is none", async () => {
    const path = join(folder(), "other.sock");
    let answer: (socket: Socket) => void = (socket) => socket.destroy();
    const server = createServer((socket) => socket.once("data", () => answer(socket)).on("error", () => {}));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    // More than the other side reads at a time: what is left unread when it goes resets the connection.
    const args = { more: "x".repeat(1_000_000) };
    await expect(ask(path, "status", args)).rejects.toThrow("the daemon went away before it answered");
    for (const line of [
      "HTTP/1.1 400 Bad Request\r",
      "null",
      "[]",
      "{}",
      '{"ok":true}',
      '{"ok":false}',
      '{"ok":1,"data":{}}',
    ]) {
      answer = (socket) => socket.end(`${line}\n`);
      await expect(ask(path, "status"), line).rejects.toThrow(`what answers at ${path} is no daemon or lab of Weir`);
    }
  });

  it("finds all that run, or the one that is named", async () => {
    const place = folder();
    const directory = () => place;
    const socketsOf = async (choice: DeviceChoice) =>
      (await findDevices(choice, directory)).map(({ socket }) => socket);
    await expect(findDevices({}, directory)).rejects.toMatchObject({
      message: "no daemon or lab is running",
      hint: `start one: weir switch -c switch.yaml; looked in ${place}, --socket names another place`,
    });
    makeStale(join(place, "dead.sock"));
    await expect(findDevices({}, directory)).rejects.toThrow("no daemon or lab is running");
    await serve(join(place, "sw0.sock"));
    expect(await socketsOf({})).toEqual([join(place, "sw0.sock")]);
    await serve(join(place, "roce0.sock"));
    expect(await socketsOf({})).toEqual([join(place, "roce0.sock"), join(place, "sw0.sock")]);
    expect(await socketsOf({ name: "roce0" })).toEqual([join(place, "roce0.sock")]);
    await expect(findDevices({ name: "sw1" }, directory)).rejects.toMatchObject({
      message: "no daemon or lab called sw1 is running",
      hint: "running: roce0, sw0",
    });
    const { path: socket } = await serve(join(folder(), "any.sock"), () => ({ name: "sw2", kind: "switch" }));
    expect(await findDevices({ socket }, directory)).toMatchObject([{ name: "sw2", kind: "switch", socket }]);
    expect(await socketsOf({ name: "sw2", socket })).toEqual([socket]);
    await expect(findDevices({ name: "sw0", socket }, directory)).rejects.toMatchObject({ hint: "running: sw2" });
  });
});

/** Leaves what a killed daemon does: a socket file at which nobody listens. */
function makeStale(path: string): void {
  const script = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", script]);
}

/** Server-sent events: they are in order for clients that keep up, and clients that do not are no burden. */
import { connect } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { EventStreams } from "../../../src/watch/dashboard/event_streams.js";
import type { Frame, History } from "../../../src/watch/dashboard/protocol.js";
import { frameOf, serve, sessionOf } from "./fake_source.js";

interface Client {
  events(): { event: string; data: Record<string, unknown> }[];
  /** Makes it read again. */
  resume(): void;
  close(): void;
}

/** @param paused The client does not read. */
function client(port: number, paused = false): Promise<Client> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write("GET /api/live HTTP/1.0\r\nHost: localhost\r\n\r\n");
      if (paused) socket.pause();
      resolve({ events: () => eventsOf(text), resume: () => socket.resume(), close: () => socket.destroy() });
    });
    socket.setEncoding("utf8").on("error", () => {});
    socket.on("data", (part: string) => {
      text += part;
    });
  });
}

function eventsOf(text: string) {
  return [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)]
    .map(([, event = "", data = ""]) => ({ event, data: JSON.parse(data) as Record<string, unknown> }))
    .filter(({ event }) => event !== "rights");
}

it("sends the session first, then frames as they come", async () => {
  const { streams, port } = await serve();
  const one = await client(port);
  await expect.poll(() => one.events().length).toBe(1);
  streams.frame(frameOf({ t_ns: 1 }));
  streams.session(sessionOf({ name: "other" }));
  streams.frame(frameOf({ t_ns: 2 }));
  await expect.poll(() => one.events().length).toBe(4);
  expect(one.events().map(({ event, data }) => [event, data.t_ns ?? data.name])).toEqual([
    ["session", "fake"],
    ["frame", 1],
    ["session", "other"],
    ["frame", 2],
  ]);
});

it("tells when somebody looks on, and when nobody does any more", async () => {
  const seen: boolean[] = [];
  const { port, server, streams } = await serve({}, false, (watched) => seen.push(watched));
  expect(streams.watched).toBe(false);
  const [one, two] = [await client(port), await client(port)];
  await expect.poll(() => one.events().length + two.events().length).toBe(2);
  expect(seen).toEqual([true]);
  one.close();
  two.close();
  await expect.poll(() => seen).toEqual([true, false]);
  expect(streams.watched).toBe(false);
  server.close();
});

/** Step `i` of a run. */
const step = (i: number, more: Partial<Frame> = {}) => frameOf({ since_ns: i, t_ns: i + 1, ...more });
/** Times of all frames and samples that came, in their order; a frame that is in the history, too, counts once. */
const timesOf = (one: Client) =>
  one
    .events()
    .flatMap(({ event, data }) => {
      if (event === "frame") return [data.t_ns as number];
      return event === "history" ? (data as unknown as History).samples.map(({ t_ns }) => t_ns) : [];
    })
    .filter((time, i, all) => time !== all[i - 1]);
/** The first part of the history. */
const historyOf = (one: Client) => one.events().find(({ event }) => event === "history")?.data as unknown as History;
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

it("tells who comes later of the past first, then all of the newest frame, then what comes", async () => {
  const { streams, port } = await serve();
  for (let i = 0; i < 5; i++) streams.frame(step(i));
  const one = await client(port);
  await expect.poll(() => one.events().length).toBe(3);
  streams.frame(step(5));
  streams.frame(step(6));
  await expect.poll(() => one.events().length).toBe(5);
  expect(one.events().map(({ event }) => event)).toEqual(["session", "history", "frame", "frame", "frame"]);
  expect(one.events()[2]?.data).toEqual(step(4));
  expect(timesOf(one).slice(-3)).toEqual([5, 6, 7]);
  const { run, samples } = historyOf(one);
  expect([run, samples[0]?.since_ns, samples.at(-1)?.t_ns]).toEqual([1, 0, 5]);
});

it("tells of a new run as it comes, and who comes later of that one", async () => {
  const { streams, port } = await serve();
  const one = await client(port);
  await expect.poll(() => one.events().length).toBe(1);
  streams.frame(step(8));
  streams.frame(step(0, { run: 2 }));
  streams.frame(step(1, { run: 2 }));
  const two = await client(port);
  await expect.poll(() => two.events().length).toBe(3);
  expect(timesOf(one)).toEqual([9, 1, 2]);
  const { run, samples } = historyOf(two);
  expect([run, samples[0]?.since_ns, samples.at(-1)?.t_ns]).toEqual([2, 0, 2]);
});

/** Frames of which the sockets of this host cannot hold 40 MB, and samples of `text` bytes, one every two seconds. */
async function overrun(streams: EventStreams, text: number): Promise<number> {
  const large = {
    events: Array.from({ length: 2000 }, () => ({ kind: "mark" as const, where: "x".repeat(40), count: 1 })),
    queues: { bytes: [], peak: Array.from({ length: text / 10 }, () => 123_456_789) },
  };
  const frames = Math.ceil(40e6 / JSON.stringify(large).length);
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  for (let i = 0; i < frames; i++) {
    vi.advanceTimersByTime(2000);
    streams.frame(step(i, large));
    await new Promise(setImmediate);
  }
  return frames;
}

it("keeps of sessions the latest for a client that does not read, has what it missed for it, and goes on for others", async () => {
  const { streams, port } = await serve();
  const slow = await client(port, true);
  const quick = await client(port);
  await expect.poll(() => quick.events().length).toBe(1);
  const frames = await overrun(streams, 10);
  streams.session(sessionOf({ name: "second" }));
  streams.session(sessionOf({ name: "latest" }));
  const names = (one: Client) => one.events().flatMap(({ data }) => (data.name === undefined ? [] : [data.name]));
  // The client that reads is behind by no more than a few.
  await expect.poll(() => names(quick).at(-1)).toBe("latest");
  slow.resume();
  await expect.poll(() => timesOf(slow).at(-1)).toBe(frames);
  expect(names(slow)).toEqual(["fake", "latest"]);
  // It gets whole frames while there was room, samples of the rest, and the last one whole.
  const whole = slow.events().filter(({ event }) => event === "frame").length;
  expect(whole).toBeGreaterThan(0);
  expect(whole).toBeLessThan(frames);
  expect(timesOf(slow)).toEqual(upTo(frames));
  streams.frame(step(frames));
  await expect.poll(() => slow.events().at(-1)?.data.t_ns).toBe(frames + 1);
});

it("has for who is slow for long the newest of what it missed, and no more", async () => {
  const { streams, port } = await serve();
  const slow = await client(port, true);
  await expect.poll(() => streams.watched).toBe(true);
  const frames = await overrun(streams, 20_000);
  slow.resume();
  await expect.poll(() => timesOf(slow).at(-1)).toBe(frames);
  const part = historyOf(slow);
  expect(part.samples.length).toBeGreaterThan(5);
  expect(JSON.stringify(part).length).toBeLessThan(300_000);
  const gaps = timesOf(slow).filter((time, i, all) => time !== (all[i - 1] ?? 0) + 1);
  expect(gaps).toEqual([frames - part.samples.length + 1]);
});

it("has room for so many pages, and says so to the next", async () => {
  const { ask, port, streams } = await serve();
  const pages = await Promise.all(Array.from({ length: 16 }, () => client(port)));
  await expect.poll(() => streams.full).toBe(true);
  expect((await ask("/api/live")).status).toBe(429);
  pages[0]?.close();
  await expect.poll(() => streams.full).toBe(false);
});

it("looks at no more of a frame that nobody sees than what the history keeps", () => {
  const streams = new EventStreams();
  const looked = new Set<string | symbol>();
  const frame = new Proxy(frameOf(), {
    get: (target, name) => {
      looked.add(name);
      return target[name as keyof Frame];
    },
  });
  streams.frame(frame);
  expect([...looked].sort()).toEqual(["events", "flows", "queues", "run", "since_ns", "t_ns"]);
});

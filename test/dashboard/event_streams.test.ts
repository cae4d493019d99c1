/** Server-sent events: in order for who keeps up, never a burden by who does not. */
import { connect } from "node:net";
import { expect, it } from "vitest";
import { EventStreams } from "../../src/dashboard/event_streams.js";
import { frameOf, serve, sessionOf } from "./fake_source.js";

interface Client {
  events(): { event: string; data: Record<string, unknown> }[];
  /** Reads again. */
  resume(): void;
  close(): void;
}

/** `paused`: does not read. */
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
  return [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(([, event = "", data = ""]) => ({
    event,
    data: JSON.parse(data) as Record<string, unknown>,
  }));
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

it("keeps nothing for a client that does not read but the latest session, and goes on for the others", async () => {
  const { streams, port } = await serve();
  const slow = await client(port, true);
  const quick = await client(port);
  await expect.poll(() => quick.events().length).toBe(1);
  const large = frameOf({
    events: Array.from({ length: 2000 }, () => ({ kind: "mark", where: "x".repeat(40), count: 1 })),
  });
  const bytes = JSON.stringify(large).length;
  // More than what the sockets of this host may hold for both.
  const frames = Math.ceil(40e6 / bytes);
  for (let i = 0; i < frames; i++) {
    streams.frame({ ...large, t_ns: i });
    await new Promise(setImmediate);
  }
  streams.session(sessionOf({ name: "second" }));
  streams.session(sessionOf({ name: "latest" }));
  // The one that reads is behind by no more than a few.
  await expect.poll(() => quick.events().at(-1)?.data.name, { timeout: 20_000 }).toBe("latest");
  slow.resume();
  await expect.poll(() => slow.events().at(-1)?.data.name, { timeout: 20_000 }).toBe("latest");
  const got = slow.events().filter(({ event }) => event === "frame");
  expect(got.length).toBeGreaterThan(0);
  expect(got.length).toBeLessThan(frames);
  // What came is whole, and in order.
  const times = got.map(({ data }) => data.t_ns as number);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(slow.events().filter(({ data }) => data.name === "second")).toEqual([]);
  streams.frame(frameOf({ t_ns: -1 }));
  await expect.poll(() => slow.events().at(-1)?.data.t_ns).toBe(-1);
});

it("has room for so many pages, and says so to the next", async () => {
  const { ask, port, streams } = await serve();
  const pages = await Promise.all(Array.from({ length: 16 }, () => client(port)));
  await expect.poll(() => streams.full).toBe(true);
  expect((await ask("/api/live")).status).toBe(429);
  pages[0]?.close();
  await expect.poll(() => streams.full).toBe(false);
});

it("composes nothing for nobody", () => {
  const streams = new EventStreams();
  const untouchable = new Proxy(frameOf(), {
    get: () => {
      throw new Error("nobody looks on");
    },
  });
  expect(() => streams.frame(untouchable)).not.toThrow();
});

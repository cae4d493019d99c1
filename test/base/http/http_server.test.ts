/** An HTTP server that strangers cannot keep busy: dashboards and metrics are of its kind. */
import { EventEmitter, once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { Connections } from "../../../src/base/http/connections.js";
import { HttpServer, listen } from "../../../src/base/http/http_server.js";
import { eventually } from "../../patience.js";

// Files that ran before in this process may have loaded what imports it, and those that come after it are to have the true one.
vi.hoisted(() => vi.resetModules());
afterAll(() => void vi.resetModules());
vi.mock("node:http", async (original) => {
  const http = await original<typeof import("node:http")>();
  return { ...http, createServer: vi.fn(http.createServer) };
});

const kPurpose = { name: "page", field: "page", hint: "another port" };

async function serve(answer = "hello"): Promise<number> {
  const server = await HttpServer.listen({ address: "127.0.0.1", port: 0 }, kPurpose, (_, response) => {
    response.end(answer);
  });
  onTestFinished(() => server.close());
  return server.port;
}

/** Connections that have said `text`. */
async function hold(port: number, count: number, text: string): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1").on("error", () => {}));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) socket.write(text);
  return sockets;
}

it("answers however many connections somebody holds who finishes no request", async () => {
  const port = await serve();
  const held = await hold(port, 300, "GET / HTTP/1.1\r\nHost: 127");
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("hello");
  await eventually(() => expect(held.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(128));
});

it("looks every second for requests that take longer than ten", async () => {
  await serve();
  const patience = { requestTimeout: 10_000, headersTimeout: 10_000, connectionsCheckingInterval: 1000 };
  expect(vi.mocked(createServer)).toHaveBeenCalledWith(patience);
});

it("gives up on a client that reads nothing of its answer", async () => {
  await serve();
  const server = vi.mocked(createServer).mock.results.at(-1)?.value as Server;
  expect(server.timeout).toBe(30_000);
});

it("makes room for the newest connection by the oldest that asks nothing", () => {
  const connections = new Connections(2);
  const [a, b, c, d] = Array.from({ length: 4 }, () => fakeSocket());
  for (const socket of [a, b]) connections.add(socket as Socket);
  connections.begin(a as Socket);
  connections.add(c as Socket);
  expect([a, b, c].map((socket) => socket?.destroyed)).toEqual([false, true, false]);
  connections.begin(c as Socket);
  // Both are busy.
  connections.add(d as Socket);
  expect([a, c, d].map((socket) => socket?.destroyed)).toEqual([false, false, true]);
  connections.end(a as Socket);
  const e = fakeSocket();
  connections.add(e);
  expect([a, c, e].map((socket) => socket?.destroyed)).toEqual([true, false, false]);
});

it("says which address is none of an interface that is up, and what to do about loopback", async () => {
  const wanted = (address: string) => {
    const server = new EventEmitter() as unknown as Server;
    server.listen = (() => {
      setImmediate(() => server.emit("error", Object.assign(new Error("x"), { code: "EADDRNOTAVAIL" })));
    }) as unknown as Server["listen"];
    return listen(server, { address, port: 9464 }, kPurpose);
  };
  await expect(wanted("127.0.0.1")).rejects.toMatchObject({
    message: "page: cannot listen at 127.0.0.1:9464: no interface that is up has this address",
    hint: "bring up the loopback interface: ip link set lo up",
  });
  await expect(wanted("10.9.9.9")).rejects.toMatchObject({ hint: "another port" });
});

function fakeSocket(): Socket {
  const socket = { destroyed: false, on: () => socket, destroy: () => Object.assign(socket, { destroyed: true }) };
  return socket as unknown as Socket;
}

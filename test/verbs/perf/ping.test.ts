import { describe, expect, it } from "vitest";
import { connect } from "../../../src/verbs/connection.js";
import { type Ping, pingClient, pingServer, pingText } from "../../../src/verbs/perf/ping.js";
import { FakeNetwork } from "./fake_network.js";

const kServer = "10.0.0.1";
const kClient = "10.0.0.2";
const noSignal = () => new AbortController().signal;

// Memory that rping 44 offers for pings 0 and 9 of 64 bytes, as a Linux rxe peer read it.
const kPing0 =
  "72646d612d70696e672d303a204142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f70717200";
const kPing9 =
  "72646d612d70696e672d393a204a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a4100";

async function pings(network: FakeNetwork, { size = 64, count = 3, verify = true } = {}) {
  const seen: Record<"server" | "client", Ping[]> = { server: [], client: [] };
  const [server, client] = [network.device(kServer).verbs, network.device(kClient).verbs];
  await Promise.all([
    pingServer(
      server,
      7174,
      noSignal(),
      () => {},
      (ping) => seen.server.push(ping),
    ),
    pingClient(client, kServer, { port: 7174, size, count, verify }, noSignal(), (ping) => seen.client.push(ping)),
  ]);
  return seen;
}

describe("a ping", () => {
  it("has rping's text", () => {
    expect(pingText(0, 64).toString("hex")).toBe(kPing0);
    expect(pingText(9, 64).toString("hex")).toBe(kPing9);
    expect(pingText(58, 64).subarray(14, -1).toString()).toMatch(/^ABC/);
  });

  it.each([26, 64, 65_535])("is read by the server and written back, %d bytes", async (size) => {
    const network = new FakeNetwork();
    const { server, client } = await pings(network, { size });
    const texts = [0, 1, 2].map((number) => pingText(number, size).toString("latin1", 0, size - 1));
    expect(server.map(({ text }) => text)).toEqual(texts);
    expect(client.map(({ text }) => text)).toEqual(texts);
    const one = ["send", "rdma_read", "send", "send", "rdma_write", "send"];
    expect(network.sent.map(({ opcode }) => opcode)).toEqual([...one, ...one, ...one]);
    expect(network.sent.filter(({ opcode }) => opcode === "send").every(({ bytes }) => bytes.length === 16)).toBe(true);
  });

  it("that comes back changed is an error when it is verified", async () => {
    const altered = () => {
      const network = new FakeNetwork();
      network.alter = (bytes) => {
        if (bytes.length > 16) bytes.writeUInt8(0x2a, 20);
      };
      return network;
    };
    await expect(pings(altered())).rejects.toThrow("ping 0: the text came back changed");
    expect((await pings(altered(), { verify: false })).client).toHaveLength(3);
  });

  it("is refused where nobody listens", async () => {
    const network = new FakeNetwork();
    network.device(kServer);
    const client = network.device(kClient).verbs;
    const options = { port: 7174, size: 64, count: 1, verify: true };
    await expect(pingClient(client, kServer, options, noSignal(), () => {})).rejects.toThrow("invalid service ID");
  });

  it.each([
    [12, "the peer sent 12 bytes where rping sends 16"],
    [16, "the peer offers 65536 bytes"],
  ])("of a peer that sends nonsense ends with an error: %d bytes", async (length, message) => {
    const network = new FakeNetwork();
    const server = pingServer(
      network.device(kServer).verbs,
      7174,
      noSignal(),
      () => {},
      () => {},
    );
    const client = network.device(kClient).verbs;
    const queue = client.createCompletionQueue();
    queue.onCompletion(() => {});
    const domain = client.allocateProtectionDomain();
    const queuePair = domain.createQueuePair({ sendCompletions: queue, receiveCompletions: queue });
    const region = domain.registerMemory(16);
    Buffer.from(region.buffer).writeUInt32BE(65_536, 12);
    const outcome = expect(server).rejects.toThrow(message);
    await connect(client, { address: kServer, port: 7174, queuePair });
    queuePair.postSend({ opcode: "send", local: { region, length } });
    await outcome;
  });

  it("waits until it is told to stop", async () => {
    const abort = new AbortController();
    const waiting = pingServer(
      new FakeNetwork().device(kServer).verbs,
      7174,
      abort.signal,
      () => abort.abort(),
      () => {},
    );
    await expect(waiting).rejects.toThrow("aborted");
  });
});

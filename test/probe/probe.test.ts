import { describe, expect, it } from "vitest";
import { listen } from "../../src/probe/listen.js";
import { type ProbeOptions, probe } from "../../src/probe/probe.js";
import { type Arrival, arrivalSchema, probeSchema } from "../../src/probe/report.js";
import { buildProbe, kAcknowledge, kCnp, readFrame } from "../../src/probe/roce_frame.js";
import { packets } from "./captures.js";
import { type FakeOptions, fakeNetwork, refusal, reply } from "./fake_network.js";

/** A frame whose ICRC is right, from `source`. */
const frame = (source: string, ecn: "ce" | "ect1" = "ect1") =>
  buildProbe({ source, destination: "10.0.0.1", sourcePort: 0xc000, identification: 1, dscp: 26, ecn, qpn: 7, psn: 9 });

async function run(options: Partial<ProbeOptions> = {}, fake: FakeOptions = {}) {
  const network = fakeNetwork(fake);
  const report = await probe(network, "10.0.0.2", {
    count: 3,
    qpn: 0x11,
    ecn: "ce",
    timeout: 1000,
    signal: new AbortController().signal,
    random: () => 0.5,
    ...options,
  });
  expect(probeSchema.parse(report)).toEqual(report);
  expect(network.openLinks).toBe(0);
  return { report, network };
}

describe("probe", () => {
  it("sends what it was asked for, with PSNs in the past of a queue pair that began at 0", async () => {
    const { network } = await run({ count: 2, qpn: 0x123, ecn: "ect1" });
    expect(network.sent.map(({ qpn, ecn, psn, icrcOk }) => ({ qpn, ecn, psn, icrcOk }))).toEqual([
      { qpn: 0x123, ecn: "ect1", psn: 0xd0_0000, icrcOk: true },
      { qpn: 0x123, ecn: "ect1", psn: 0xd0_0001, icrcOk: true },
    ]);
  });

  it("waits out its time where nobody answers", async () => {
    const { report, network } = await run();
    expect(report).toMatchObject({ responder: "silent", path_ecn: "unknown", sent: 3, answers: [] });
    expect(network.now()).toBe(3 * 0.25 + 2 * 50 + 1000);
  });

  it("takes ICMP for a refusal, and its quotation for what arrived", async () => {
    const kept = await run({}, { answer: (packet) => [refusal(packet)] });
    expect(kept.report).toMatchObject({ responder: "refused", path_ecn: "survives", arrived_ecn: "ce" });
    const bleached = await run({}, { answer: (packet) => [refusal(packet, 26 << 2)] });
    expect(bleached.report).toMatchObject({ responder: "refused", path_ecn: "changed", arrived_ecn: "not-ect" });
    expect(bleached.report.answers[0]).toMatchObject({ kind: "icmp", source: "10.0.0.2" });
    expect(bleached.network.now()).toBeLessThan(200);
  });

  it.each([
    ["ce", "survives"],
    ["ect0", "survives"],
    ["not-ect", "changed"],
  ] as const)("takes a CNP for %s as proof that CE arrived: the path's ECN %s", async (ecn, path_ecn) => {
    const cnp = packets("cnp_injected").find((packet) => readFrame(packet)?.opcode === kCnp);
    if (cnp === undefined) throw new Error("no CNP in the capture");
    const network = fakeNetwork({ answer: () => [cnp] });
    const address = cnp.subarray(12, 16).join(".");
    const signal = new AbortController().signal;
    const report = await probe(network, address, { count: 1, qpn: 0x11, ecn, timeout: 1000, signal, random: () => 0 });
    expect(report).toMatchObject({ responder: "answers", path_ecn, arrived_ecn: "ce" });
    expect(report.answers).toMatchObject([{ kind: "cnp", icrc_ok: true, source: address }]);
    // Nothing more to wait for.
    expect(network.now()).toBeLessThan(100);
  });

  it("does not believe a CNP with a wrong ICRC, and says so", async () => {
    const { report } = await run({}, { answer: (packet) => [reply(packet, kCnp)] });
    expect(report).toMatchObject({ responder: "silent", path_ecn: "unknown" });
    expect(report.answers[0]).toMatchObject({ kind: "cnp", icrc_ok: false, time_ms: 0.25 });
  });

  it("tells ACK from NAK", async () => {
    const answer = (packet: Buffer) => [reply(packet, kAcknowledge, 0x1f), reply(packet, kAcknowledge, 0x60)];
    const { report } = await run({ ecn: "ect0", count: 1 }, { answer });
    expect(report.answers.map(({ kind, detail }) => [kind, detail])).toEqual([
      ["ack", "ACK"],
      ["nak", "NAK, sequence error"],
    ]);
  });

  it("takes frames of the responder for a sign of life, keeps ten, and ignores those of others", async () => {
    const { report } = await run(
      {},
      { arriving: [frame("10.0.0.3"), ...Array.from({ length: 20 }, () => frame("10.0.0.2"))] },
    );
    expect(report.responder).toBe("answers");
    expect(report.answers.map(({ kind, source }) => `${kind} ${source}`)).toEqual(Array(10).fill("other 10.0.0.2"));
  });

  it("stops when told to, and closes what it opened", async () => {
    const abort = new AbortController();
    const { report, network } = await run(
      { signal: abort.signal, count: 100 },
      {
        answer: () => {
          abort.abort();
          return [];
        },
      },
    );
    expect([report.sent, network.sent.length]).toEqual([1, 1]);
  });

  it("notes a port that belongs to somebody else", async () => {
    const { report } = await run({}, { portIsOurs: false });
    expect(report.notes).toEqual(["UDP 4791 of this host belongs to another socket or an rxe device"]);
  });
});

describe("listen", () => {
  it("hands over frames until it has as many as it wants", async () => {
    const arrivals: Arrival[] = [];
    const network = fakeNetwork({ arriving: [frame("10.0.0.2"), frame("10.0.0.3", "ce"), frame("10.0.0.4")] });
    const arrived = await listen(network, {
      count: 2,
      timeout: 1000,
      signal: new AbortController().signal,
      onReady: () => {},
      onArrival: (arrival) => arrivals.push(arrivalSchema.parse(arrival)),
    });
    expect(arrived).toBe(2);
    expect(arrivals.map(({ source, ecn, icrc_ok }) => [source, ecn, icrc_ok])).toEqual([
      ["10.0.0.2", "ect1", true],
      ["10.0.0.3", "ce", true],
    ]);
    expect(network.openLinks).toBe(0);
  });
});

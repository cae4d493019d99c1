import { describe, expect, it } from "vitest";
import { failureOf, kAddresses, kMacs, kPort, kResponseMs, kRetries, setUp } from "./pair.js";

describe("datagram services", () => {
  it("are found, with words of both sides", async () => {
    const net = setUp();
    const asked: string[] = [];
    net.server.cm.services.listen(kPort, ({ remoteAddress, privateData }) => {
      asked.push(`${remoteAddress} ${privateData.toString().replace(/\0+$/, "")}`);
      return { qpn: 21, qkey: 0x1234567, privateData: Buffer.from("welcome") };
    });
    const finding = net.client.cm.services.resolve(kAddresses[1], kPort, Buffer.from("hello"));
    await net.clock.run(10);
    const { privateData, ...service } = await finding;
    expect(service).toEqual({ remoteAddress: kAddresses[1], remoteMac: kMacs[1], remoteQpn: 21, qkey: 0x1234567 });
    expect(privateData.subarray(0, 8).toString()).toBe("welcome\0");
    expect(asked).toEqual(["10.9.0.1 hello"]);
    expect(net.clock.pending).toBe(0);
  });

  it("are asked for again when a message is lost, and given up at last", async () => {
    const net = setUp((message, count) => message.kind === "SIDR_REP" && count === 1);
    net.server.cm.services.listen(kPort, () => ({ qpn: 21, qkey: 1 }));
    const finding = net.client.cm.services.resolve(kAddresses[1], kPort);
    await net.clock.run(kResponseMs + 10);
    expect((await finding).remoteQpn).toBe(21);
    const deaf = setUp(() => true);
    const failing = failureOf(deaf.client.cm.services.resolve(kAddresses[1], kPort));
    await deaf.clock.run(kResponseMs * (kRetries + 1) + 10);
    expect((await failing)?.message).toContain("does not answer");
    expect(deaf.clock.pending).toBe(0);
  });

  it("that are none or refuse say so", async () => {
    const net = setUp();
    const none = failureOf(net.client.cm.services.resolve(kAddresses[1], 5000));
    net.server.cm.services.listen(kPort, () => undefined);
    const refused = failureOf(net.client.cm.services.resolve(kAddresses[1], kPort));
    await net.clock.run(10);
    expect((await none)?.message).toContain("no such service");
    expect((await refused)?.message).toContain("refused by the service");
  });

  it("that take their time are asked once, and answer again when the answer was lost", async () => {
    const net = setUp((message, count) => message.kind === "SIDR_REP" && count === 1);
    let asked = 0;
    let answer = (_: { qpn: number; qkey: number } | undefined) => {};
    net.server.cm.services.listen(kPort, () => {
      asked++;
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const finding = net.client.cm.services.resolve(kAddresses[1], kPort);
    await net.clock.run(2 * kResponseMs);
    answer({ qpn: 21, qkey: 1 });
    await net.clock.run(kResponseMs + 10);
    expect((await finding).remoteQpn).toBe(21);
    expect(asked).toBe(1);
    // Nothing is kept for longer than the request may come again.
    await net.clock.run(2 * kResponseMs);
    expect(net.clock.pending).toBe(0);
  });

  it("are not waited for any more when whoever asked goes", async () => {
    const net = setUp(() => true);
    const gone = new AbortController();
    const failing = failureOf(net.client.cm.services.resolve(kAddresses[1], kPort, undefined, { signal: gone.signal }));
    await net.clock.run(10);
    gone.abort();
    expect((await failing)?.message).toContain("not asked any more");
    expect(net.clock.pending).toBe(0);
  });
});

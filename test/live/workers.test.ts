/** One switch on several workers, on ordinary traffic: the ports of each reach those of the other. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { metric, network, ping, portOf, startSwitch } from "./daemons.js";

describeLive("a switch on two workers", () => {
  it.each([
    ["af_packet", "backend: af_packet"],
    ["af_packet, shaped", "backend: af_packet, rate: 1Gbps"],
    ["af_xdp", "backend: af_xdp"],
    ["af_packet in, af_xdp out", "receive: af_packet, transmit: af_xdp"],
    ["live", "backend: live"],
  ])("passes frames between them, and is told of as one: %s", async (_, fields) => {
    const net = await network();
    const { socket, url, child, finished } = await startSwitch(net, {
      ports: ["a", "b"].map((host, worker) => portOf(net, host, `${fields}, worker: ${worker}`)),
      more: "workers: [{ cpu: 0 }, { polling: adaptive }]\n",
    });
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
    expect(await ping(net, 200)).toEqual({ sent: 200, received: 200 });

    const learned = (await ask(socket, "fdb")).filter(({ kind }) => kind === "learned");
    expect(learned.map(({ ports }) => ports[0]).sort()).toEqual(["a", "b"]);
    const { ports, buffer } = await ask(socket, "switch");
    expect(ports.map(({ name, up }) => [name, up])).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect(ports.flatMap(({ queue_bytes, ingress_bytes }) => [...queue_bytes, ...ingress_bytes])).toEqual(
      new Array(32).fill(0),
    );
    expect(buffer.occupied).toBe(0);
    for (const port of ["a", "b"]) {
      expect(await metric(url, `weir_port_up{device="sw0",port="${port}"}`)).toBe(1);
    }
    const sent = (await ask(socket, "counters")).counters.filter(({ name }) => name === "tx_packets");
    expect(sent.map(({ labels }) => labels.port)).toEqual(["a", "b"]);
    for (const { value } of sent) expect(value).toBeGreaterThanOrEqual(203);

    child.kill("SIGTERM");
    expect((await finished).status).toBe(0);
  });
});

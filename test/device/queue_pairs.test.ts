/** Queue pairs of flows: those that the wire is handed, and those that a simulation lays out by itself, are the same. */
import { describe, expect, it } from "vitest";
import { composeSimulation } from "../../src/clocks/sim/compose.js";
import { kFirstQpn } from "../../src/device/behaviour.js";
import { Frames } from "../../src/device/capture/frames.js";
import { composeNetwork } from "../../src/device/network.js";
import { flowEnds, queuePairOf } from "../../src/device/queue_pairs.js";
import type { SimulationAddon } from "../../src/native/simulation_types.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import { nativeCore } from "../obstacles.js";

const addon = nativeCore<SimulationAddon>();

/** Flows there and back between three hosts; where switches route, two of them have another router than the third. */
function scenarioOf(forwarding: string, type: string, operation: string) {
  return parseScenario({
    duration: "1ms",
    warmup: "0ms",
    transport: { type },
    topology: {
      link: { rate: "10Gbps", delay: "1us" },
      hosts: ["a", "b", "c"],
      switches: ["s", "t"],
      links: ["a -- s", "b -- s", "s -- t", "t -- c"],
    },
    switch: { forwarding },
    congestion: { algorithm: "none" },
    traffic: [
      { id: "x", from: ["a", "b"], to: "c", qps: 2, bytes: "2KB", operation },
      { id: "y", from: "c", to: "a", bytes: "2KB", priority: 2, dscp: 11, source_mac: "own", operation },
    ],
  }).scenario;
}

const bigEndian = (bytes: Uint8Array, at: number, count: number) =>
  [...bytes.subarray(at, at + count)].reduce((number, one) => number * 256 + one, 0);

describe("queue pairs of flows", () => {
  it.each([
    ["static", "stream", "write"],
    ["static", "rc", "send"],
    ["routed", "rc", "write"],
    ["routed", "rc", "read"],
  ])("are on the wire what a simulation makes of them: %s, %s, %s", (forwarding, type, operation) => {
    const scenario = scenarioOf(forwarding, type, operation);
    const fabric = new Fabric(scenario);
    const network = composeNetwork(scenario, fabric);
    const taps = scenario.hosts.map((_, i) => ({ device: scenario.switches.length + i, port: 0 }));
    const simulation = new addon.Simulation(composeSimulation(scenario, fabric, taps));
    simulation.run(1e6, 1e9);
    // Headers of what leaves each host, by the address and the queue pair that it is for.
    const frames = new Frames(simulation.drainTrace(), taps.length);
    const sent = new Map<string, object>();
    while (frames.read()) {
      const { bytes, at, tap } = frames;
      const destination_ip = [...bytes.subarray(at + 30, at + 34)].join(".");
      sent.set(`${tap} ${destination_ip} ${bigEndian(bytes, at + 47, 3)}`, {
        destination_mac: bigEndian(bytes, at, 6),
        source_mac: bigEndian(bytes, at + 6, 6),
        source_ip: bytes.slice(at + 26, at + 30),
        udp_source_port: bigEndian(bytes, at + 34, 2),
        dscp: (bytes[at + 15] as number) >> 2,
      });
    }
    [...flowEnds(scenario).values()].forEach((ends, host) => {
      ends.forEach((end, place) => {
        const pair = queuePairOf(network, end);
        if (end.sends) {
          const { remote_qpn, priority } = pair;
          const own = { qpn: kFirstQpn + place, remote_qpn, priority };
          expect(simulation.senderState(end.number)).toMatchObject(own);
        }
        const { source_mac = pair.path.source_mac } = pair;
        const { destination_mac, source_ip, destination_ip, udp_source_port, dscp } = pair.path;
        const seen = sent.get(`${host} ${destination_ip.join(".")} ${pair.remote_qpn}`);
        // A receiver without acknowledgements sends nothing, and acknowledgements may have another DSCP.
        if (end.sends || type === "rc")
          expect(seen).toMatchObject({
            destination_mac,
            source_mac,
            source_ip,
            udp_source_port,
            ...(end.sends && { dscp }),
          });
      });
    });
    simulation.close();
  });
});

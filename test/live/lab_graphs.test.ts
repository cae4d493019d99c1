/** Message graphs on real frames: every operation ends, in an order that the graph allows, and no frame is unaccounted for. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { starText } from "../fixtures/networks.js";
import { describeLive } from "./capability.js";
import { folder, labRun } from "./weir.js";

const kScenario = `
name: graphs
scale: 200
topology: ${starText(["a", "b", "c", "d"], { rate: "10Gbps", delay: "1us" })}
congestion: { algorithm: none }
transport: { type: rc, timeout: 6 }
probes: { interval: 1ms }
traffic:
  - { id: job, pattern: collective, collective: allreduce, algorithm: ring, size: 2MB, iterations: 2, place: [a, b, c, d], eager: 1KB, rendezvous: 10KB }
  - { id: pairs, pattern: collective, collective: alltoall, size: 400KB, per_host: 2, eager: 1KB, rendezvous: 10KB, operation: send, start: 1ms }
`;

const kMachines = `
name: machines
scale: 400
topology: { kind: rail, machines: 2, nics: 2, spines: 1, link: { rate: 10Gbps, delay: 1us } }
congestion: { algorithm: none }
transport: { type: rc, timeout: 6 }
probes: { interval: 1ms }
traffic:
  - { id: rings, pattern: collective, collective: allreduce, algorithm: ring, size: 2MB, inside_rate: 100Gbps, inside_latency: 1us }
  - { id: pairs, pattern: collective, collective: alltoall, size: 400KB, inside_rate: 100Gbps, inside_latency: 1us }
`;

interface Traced {
  name: string;
  ph: string;
  ts: number;
  pid: number;
  tid: number;
  id: number;
}

describeLive("weir lab run with message graphs", () => {
  it("carries all operations out, and ends then", async () => {
    const path = folder();
    const file = join(path, "graphs.yaml");
    writeFileSync(file, kScenario);
    // A busy host makes a run invalid, but it ends nevertheless.
    const { status, stderr, result } = await labRun(path, { file });
    expect([0, 3], stderr).toContain(status);
    const { graphs = [] } = result;
    const [job, pairs] = graphs;
    expect(job).toMatchObject({ id: "job", ranks: 4, messages: 48, bytes: 24e6 });
    expect(pairs).toMatchObject({ id: "pairs", ranks: 8, messages: 56 });
    for (const { ended, operations, time_s, ideal_s } of graphs) {
      expect(ended).toBe(operations);
      // Nothing is faster than each message alone.
      expect(time_s).toBeGreaterThan(ideal_s ?? 0);
    }
    expect(result.frames.sent + result.frames.duplicated).toBe(
      result.frames.received + result.frames.dropped + result.frames.impaired + result.frames.missing,
    );
    const { traceEvents } = JSON.parse(readFileSync(join(path, "out/timeline.json"), "utf8")) as {
      traceEvents: Traced[];
    };
    const ends = traceEvents.filter(({ ph }) => ph === "e");
    expect(ends).toHaveLength(48 + 56);
    const ofRank = ends.filter(({ pid, tid }) => pid === 0 && tid === 0).map(({ ts }) => ts);
    expect(ofRank).toEqual([...ofRank].sort((a, b) => a - b));
  });

  it("has machines of several NICs, each NIC with a link of its own", async () => {
    const path = folder();
    const file = join(path, "machines.yaml");
    writeFileSync(file, kMachines);
    const { status, stderr, result } = await labRun(path, { file });
    expect([0, 3], stderr).toContain(status);
    const { graphs = [] } = result;
    for (const { ended, operations } of graphs) expect(ended).toBe(operations);
    // Each ring leaves a machine by one NIC, and all pairs of two machines have flows; within a machine there are none.
    const pairs = result.flows.map(({ from, to }) => `${from} ${to}`);
    expect(pairs.slice(0, 4)).toEqual(["h1-1 h2-1", "h1-2 h2-2", "h2-1 h1-1", "h2-2 h1-2"]);
    expect(pairs).toHaveLength(4 + 8);
    expect(result.flows.every(({ packets }) => packets > 0)).toBe(true);
  });
});

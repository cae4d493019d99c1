/** Figure 1 of the DCQCN paper from made-up measurements of this host. */
import { afterAll, describe, expect, it, vi } from "vitest";
import type { CpuUse } from "../../engine/bench/cpu.js";
import type { Bench } from "../../engine/experiment.js";
import { judge } from "../../engine/verdict.js";
import { DCQCN_FIGURE_1 } from "../message_sizes.js";
import type { Measured } from "../message_sizes_wire.js";

const cpu = (own: Partial<CpuUse>): CpuUse => ({
  ...{ client: 0, server: 0, client_nic: 0, server_nic: 0, kernel: 0, others: 0 },
  ...own,
});

/** Sixteen cores, an adapter in hardware, TCP that is bound by its CPU: what the paper saw. */
const kAsInThePaper: Measured = {
  tcp: [1, 2, 4, 8, 10].map((gbps) => ({ bps: gbps * 1e9, cpu: cpu({ client: 4, server: 3, kernel: 1 }) })),
  rdma: [1, 2, 3, 4, 5, 6].map((i) => ({ bps: 9.2e9, cpu: cpu({ client: 0.4 / i, server: 0.05 }) })),
  latency: { average: { tcp: 25.4, read: 1.7, write: 1.7, send: 2.8 }, median: { tcp: 25, write: 1.7, send: 2.8 } },
  others: 0.02,
  cores: 16,
};

const kSoft: Measured = {
  ...kAsInThePaper,
  rdma: kAsInThePaper.rdma.map(() => ({
    bps: 2e9,
    cpu: cpu({ client: 1, client_nic: 0.75, server: 0.5, server_nic: 0.5 }),
  })),
  latency: { average: { tcp: 10, read: 40, write: 20, send: 30 }, median: { tcp: 10, write: 20, send: 30 } },
  cores: 2,
};

const { measured } = vi.hoisted(() => ({ measured: { next: undefined as Measured | undefined } }));
// Files that ran before in this process may have loaded what imports it, and those that come after it are to have the true one.
vi.hoisted(() => vi.resetModules());
afterAll(() => void vi.resetModules());
vi.mock("../message_sizes_wire.js", async (original) => ({
  ...(await original<object>()),
  measureOnWire: async () => measured.next,
}));

/** Observes it as if this host had measured it. */
async function onWire(next: Measured) {
  measured.next = next;
  const { signal } = new AbortController();
  return (DCQCN_FIGURE_1.bench as Bench).run({ directory: "", signal, onProgress: () => {} });
}

async function rulings(next: Measured) {
  const { observation } = await onWire(next);
  return judge(DCQCN_FIGURE_1, [{ clock: "wire", observation }]).map(({ verdicts }) => verdicts[0]?.ruling);
}

describe("figure 1 on the wire", () => {
  it("measures all that it names", async () => {
    const { values } = (await onWire(kSoft)).observation;
    expect(Object.keys(values)).toEqual(Object.keys(DCQCN_FIGURE_1.quantities));
  });

  it("holds in all it says for what the paper saw", async () => {
    expect(await rulings(kAsInThePaper)).toEqual(Array.from({ length: 7 }, () => "holds"));
  });

  it("falls short for a NIC in software", async () => {
    const short = "falls short";
    expect(await rulings(kSoft)).toEqual(["holds", "holds", short, short, short, short, "holds"]);
  });

  it("has CPU as a share of all cores, with and without the NIC's thread", async () => {
    expect((await onWire(kSoft)).observation.values).toMatchObject({
      tcp_cpu: 175,
      tcp_small: 10,
      tcp_small_cpu: 400,
      tcp_cost: 0.8,
      rdma_client_cpu: 50,
      rdma_client_app: 12.5,
      rdma_server_cpu: 25,
      rdma_server_app: 0,
      rdma_cost: 0.75,
      tcp_to_rdma: 0.25,
      send_to_write: 1.5,
    });
  });

  it("draws TCP as far as iperf3 goes", async () => {
    const [throughput, use, latency] = (await onWire(kSoft)).observation.plots;
    expect(throughput?.curves.map(({ label, x }) => [label, x.length])).toEqual([
      ["TCP", 5],
      ["RDMA READ", 6],
    ]);
    expect(use?.curves).toHaveLength(4);
    expect(latency?.x_names?.map(({ label }) => label)).toEqual(["TCP", "READ", "WRITE", "SEND"]);
  });

  it("does not count while others use the CPUs", async () => {
    expect((await onWire({ ...kSoft, others: 0.15 })).doubts).toEqual([]);
    expect((await onWire({ ...kSoft, others: 0.5 })).doubts).toEqual(["other programs used 50% of a core, above 15%"]);
  });
});

/** The parts of figure 1's measurement on real links: RDMA by two processes of the command line, TCP by the distribution's programs. */
import { expect, it } from "vitest";
import { rdma, tcpLatency, tcpThroughput } from "../../papers/engine/bench/exchange.js";
import { HostPair } from "../../papers/engine/bench/host_pair.js";
import { kWeir } from "../command.js";
import { kPatienceMs } from "../limits.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { liveObstacle } from "./capability.js";
import { folder } from "./weir.js";

async function onPair<T>(measure: (pair: HostPair, signal: AbortSignal) => Promise<T>): Promise<T> {
  const pair = await HostPair.create(1500);
  try {
    return await measure(pair, AbortSignal.timeout(kPatienceMs));
  } finally {
    pair.close();
  }
}

describeUnless(liveObstacle(), "RDMA between two processes", () => {
  it("has a rate, and CPU of both ends with their NICs' threads", async () => {
    const run = { test: "read-bw", size: 4096, seconds: 2 } as const;
    const { row, cpu } = await onPair((pair, signal) => rdma(pair, run, { directory: folder(), signal, weir: kWeir }));
    expect(row).toMatchObject({ size: 4096 });
    expect(row.data_rx_rate).toBeGreaterThan(0);
    expect(cpu.client_nic).toBeGreaterThan(0);
    expect(cpu.server_nic).toBeGreaterThan(0);
    expect(cpu.client).toBeGreaterThan(cpu.client_nic);
  });

  it("ends when it is stopped, and its processes with it", async () => {
    const stop = new AbortController();
    const run = { test: "write-lat", size: 2048, seconds: 30 } as const;
    const running = onPair((pair) => {
      setTimeout(() => stop.abort(), 300);
      return rdma(pair, run, { directory: folder(), signal: stop.signal, weir: kWeir });
    });
    await expect(running).rejects.toThrow(/aborted|SIGKILL/);
  });
});

describeUnless(liveObstacle() ?? lacking("iperf3", "sockperf"), "TCP between two processes", () => {
  it("has a rate and a latency", async () => {
    const directory = folder();
    const [throughput, latency] = await onPair(async (pair, signal) => [
      await tcpThroughput(pair, { size: 65536, seconds: 1, streams: 2 }, { directory, signal }),
      await tcpLatency(pair, { size: 2048, seconds: 1 }, { directory, signal }),
    ]);
    expect(throughput.bps).toBeGreaterThan(1e6);
    expect(throughput.cpu.client).toBeGreaterThan(0);
    expect(latency.average).toBeGreaterThan(0);
    expect(latency.median).toBeGreaterThan(0);
  });
});

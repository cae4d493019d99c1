/**
 * Goodput of a reliable connection against loss on the way, for both ways to recover from it, and whether every byte is right.
 *
 * Host a writes random data into memory of host b through a switch and reads it back; the switch loses, reorders or repeats
 * frames in both directions, so acknowledgements and READ responses suffer too. Data is right when the SHA-256 of what was
 * generated, of what is in b's memory and of what was read back agree. Path MTU 4096, window 256 packets, local ACK timeout
 * 16.8 ms, congestion control off (as in figure 21 of the DCQCN paper, whose testbed had 40 Gb/s links and NICs that go back n).
 */
import { createHash, randomFillSync } from "node:crypto";
import { connect, type Device, listen, type QueuePair } from "../../src/verbs/index.js";
import type { BenchOptions, Row } from "../row.js";
import { Fabric } from "./fabric.js";

export const name = "loss";
export const title = "A reliable connection under loss, path MTU 4096";

type Recovery = "go-back-n" | "selective-repeat";
interface Outcome {
  write_gbps: number;
  read_gbps: number;
  retransmitted: number;
  timeouts: number;
  lost: number;
  right: boolean;
}

const kFaults: readonly (readonly [string, object])[] = [
  ["none", {}],
  ["loss 0.01%", { loss: "0.01%" }],
  ["loss 0.1%", { loss: "0.1%" }],
  ["loss 1%", { loss: "1%" }],
  ["loss 5%", { loss: "5%" }],
  ["reordering 1%", { reorder: "1%", reorder_delay: "100us" }],
  ["duplication 1%", { duplicate: "1%" }],
];
const kChunk = 16 << 20;
const kMessage = 1 << 20;
const kPort = 7000;
/** 4.096 us x 2^12 */
const kTimeout = 12;
/** Which frames are lost differs from run to run. */
const kTolerance = 0.3;

export async function run(options: BenchOptions): Promise<Row[]> {
  const total = (options.quick ? 64 : 512) << 20;
  const rows: Row[] = [];
  for (const [fault, impairment] of kFaults) {
    for (const recovery of ["go-back-n", "selective-repeat"] as const) {
      const name = `${fault}, ${recovery}`;
      if (!options.wants(name)) continue;
      process.stderr.write(`  ${name}\n`);
      rows.push(toRow(name, await measure(impairment, recovery, total)));
    }
  }
  return rows;
}

function toRow(name: string, { write_gbps, read_gbps, retransmitted, timeouts, lost, right }: Outcome): Row {
  const goodput = (value: number) => ({ value, unit: "Gb/s", better: "more" as const, tolerance: kTolerance });
  return {
    name,
    metrics: {
      write: goodput(write_gbps),
      read: goodput(read_gbps),
      lost: { value: lost, unit: "" },
      "sent again": { value: retransmitted, unit: "" },
      timeouts: { value: timeouts, unit: "" },
      "bytes right": { value: right ? 1 : 0, unit: "", better: "more", tolerance: 0 },
    },
    ...(!right && { note: "WRONG BYTES" }),
  };
}

async function measure(impairment: object, recovery: Recovery, total: number): Promise<Outcome> {
  const fabric = await Fabric.create({
    port: Object.keys(impairment).length > 0 ? { impairment } : {},
    switch: { ecn: { enabled: false } },
    device: { congestion: { algorithm: "none" } },
  });
  try {
    const { a, b } = fabric;
    const target = b.allocateProtectionDomain();
    const memory = target.registerMemory(total);
    const attributes = { recovery, timeout: kTimeout };
    listen(b, kPort, (request) => {
      const queuePair = target.createQueuePair({ sendCompletions: b.createCompletionQueue() });
      void request.accept({ queuePair, attributes });
    });
    const domain = a.allocateProtectionDomain();
    const chunk = domain.registerMemory(kChunk);
    const queuePair = domain.createQueuePair({ sendCompletions: a.createCompletionQueue() });
    await connect(a, { address: "10.0.0.2", port: kPort, queuePair, attributes });
    const bytes = Buffer.from(chunk.buffer);
    const generated = createHash("sha256");
    const readBack = createHash("sha256");
    const seconds = { write: 0, read: 0 };
    for (let at = 0; at < total; at += kChunk) {
      randomFillSync(bytes);
      generated.update(bytes);
      seconds.write += await transfer(queuePair, "rdma_write", chunk, memory.remote(at));
    }
    for (let at = 0; at < total; at += kChunk) {
      bytes.fill(0);
      seconds.read += await transfer(queuePair, "rdma_read", chunk, memory.remote(at));
      readBack.update(bytes);
    }
    const there = createHash("sha256").update(Buffer.from(memory.buffer)).digest("hex");
    const digest = generated.digest("hex");
    const sum = (name: string, ...devices: Device[]) =>
      devices.reduce((all, device) => all + (device.counters().get(name) ?? 0), 0);
    return {
      write_gbps: (total * 8) / seconds.write / 1e9,
      read_gbps: (total * 8) / seconds.read / 1e9,
      retransmitted: sum("retransmitted", a, b),
      timeouts: sum("local_ack_timeout_err", a, b),
      lost: fabric.counters().get("lost") ?? 0,
      right: there === digest && readBack.digest("hex") === digest,
    };
  } finally {
    fabric.close();
  }
}

/** A whole chunk in messages; returns how long it took, s. */
async function transfer(
  queuePair: QueuePair,
  opcode: "rdma_write" | "rdma_read",
  region: ReturnType<ReturnType<Device["allocateProtectionDomain"]>["registerMemory"]>,
  { address, key }: { address: bigint; key: number },
): Promise<number> {
  const started = performance.now();
  for (let offset = 0; offset < kChunk; offset += kMessage) {
    const remote = { address: address + BigInt(offset), key };
    queuePair.postSend({ opcode, local: { region, offset, length: kMessage }, remote });
  }
  for (let left = kChunk / kMessage; left > 0; left--) {
    const { status } = await queuePair.sendCompletions.next();
    if (status !== "success") throw new Error(`${opcode}: ${status}`);
  }
  return (performance.now() - started) / 1000;
}

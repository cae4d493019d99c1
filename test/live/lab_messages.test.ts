/** Reliable connections of a lab on real frames: every packet sent again is accounted for, and every message has its completion time. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readRun } from "../../src/result/run_files.js";
import { starText } from "../fixtures/networks.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, start, sum, validLabRun } from "./weir.js";

/** Two that send 40 messages each to a third, and a closed loop of 200 messages; the first of them over a link that loses frames. */
const kMessages = (loss: string, more = "") => `
scale: 400
duration: 12ms
warmup: 1ms
topology: ${starText(["a", "b", "c"], { rate: "10Gbps", delay: "1us" }, { a: { impairment: { loss } } })}
transport: { type: rc, timeout: 6 }
congestion: { algorithm: none }
probes: { interval: 500us }
traffic:
  - { pattern: incast, from: [a, b], to: c, message: 16KB, bytes: 640KB }
  - { pattern: pairs, hosts: [a, b], count: 1, sizes: 30KB, stop: 10ms }
${more}`;
const kPacket = 1024;

interface Row {
  id: string;
  message: number;
  bytes: number;
  start: number;
  end: number;
  slowdown: number;
}

function rowsOf(path: string): Row[] {
  const [head = "", ...lines] = readFileSync(join(path, "out/fct.csv"), "utf8").trim().split("\n");
  expect(head).toBe("flow,id,from,to,message,bytes,start_ns,end_ns,ideal_ns,slowdown");
  return lines.map((line) => {
    const [, id = "", , , ...numbers] = line.split(",");
    const [message = 0, bytes = 0, begun = 0, end = 0, , slowdown = 0] = numbers.map(Number);
    return { id, message, bytes, start: begun, end, slowdown };
  });
}

/** Checks what holds for every run: frames, packets of data and acknowledgements each add up. */
function expectAccounted({ frames, flows, nics, switches, transport = {} }: LabResult): void {
  const of = (name: string) => transport[name] ?? 0;
  const { missing } = frames;
  expect(frames.sent + frames.duplicated).toBe(frames.received + frames.dropped + frames.impaired + missing);
  const pfc = sum(Object.values(switches).map((s) => sum(Object.values(s.pfc_sent))));
  const cnps = sum(Object.values(nics).map((nic) => nic.np_cnp_sent));
  const data = sum(flows.map(({ packets }) => packets));
  expect(frames.sent).toBe(data + of("tx_acks") + of("tx_naks") + cnps + pfc);
  // All data that came was in sequence, there before, or too early; and no more was lost than the network says.
  const arrived = sum(flows.map(({ received = 0 }) => received)) + of("duplicate_request") + of("out_of_sequence");
  const lost = frames.dropped + frames.impaired + Math.max(0, missing);
  expect(data - arrived).toBeGreaterThanOrEqual(0);
  expect(data - arrived).toBeLessThanOrEqual(lost + of("drop_wrong_state"));
}

describeLive("weir lab run with reliable connections", () => {
  it.each([
    ["go-back-n", "0%"],
    ["go-back-n", "1%"],
  ])("completes messages in order, %s with %s of loss, and counts what was sent again", async (recovery, loss) => {
    const file = join(folder(), "messages.yaml");
    writeFileSync(file, kMessages(loss));
    await expectMessages(file, recovery, loss);
  });

  /** Repeats the run until one is valid; the checks hold for any run, except the number of messages that were complete. */
  async function expectMessages(file: string, recovery: string, loss: string): Promise<void> {
    const out = folder();
    const args = ["lab", "run", file, "--json", "--quiet", "--out", join(out, "out")];
    const running = await start([...args, "--set", `transport.recovery=${recovery}`]);
    const { stdout, stderr } = await running.finished;
    await running.nothingLeft();
    const result = JSON.parse(stdout) as LabResult;
    expect(stderr).toBe("");
    expectAccounted(result);
    const { fct, transport = {}, flows } = result;
    const rows = rowsOf(out);
    expect(rows).toHaveLength(fct?.count ?? 0);
    expect(result.groups?.incast?.flows).toBe(2);
    // Rows are in the order of completion; those of the closed loop come one after another.
    expect(rows.map(({ end }) => end)).toEqual(rows.map(({ end }) => end).sort((x, y) => x - y));
    const loop = rows.filter(({ id }) => id.startsWith("pairs"));
    expect(loop.length).toBeGreaterThan(0);
    loop.forEach(({ message, bytes, start: posted, end }, i) => {
      expect([message, bytes]).toEqual([i, 30_000]);
      if (i > 0) expect(posted).toBeCloseTo(loop[i - 1]?.end as number, 0);
      expect(end).toBeGreaterThan(posted);
    });
    // All packets of a complete flow have come, once.
    for (const flow of flows.filter(({ id }) => rows.some((row) => row.id === id && row.bytes === 640_000))) {
      expect(flow.received).toBe(40 * Math.ceil(16_000 / kPacket));
    }
    const again = transport.retransmitted ?? 0;
    if (loss === "0%" && result.frames.missing === 0 && (transport.local_ack_timeout_err ?? 0) === 0) {
      expect([again, result.frames.impaired]).toEqual([0, 0]);
    } else if (loss !== "0%") {
      expect(again).toBeGreaterThan(0);
      expect(result.frames.impaired).toBeGreaterThan(0);
    }
  }

  it.each(["0%", "1%"])("READs what others ask for, with %s of loss, once and in order", async (loss) => {
    const file = join(folder(), "reads.yaml");
    writeFileSync(file, kMessages(loss));
    const out = folder();
    const reads = ["--set", "traffic.0.operation=read", "--set", "traffic.1.operation=read"];
    const running = await start(["lab", "run", file, "--json", "--quiet", "--out", join(out, "out"), ...reads]);
    const { stdout, stderr } = await running.finished;
    await running.nothingLeft();
    expect(stderr).toBe("");
    const { frames, flows, fct, transport = {} } = JSON.parse(stdout) as LabResult;
    expect(frames.sent + frames.duplicated).toBe(frames.received + frames.dropped + frames.impaired + frames.missing);
    const rows = rowsOf(out);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows).toHaveLength(fct?.count ?? 0);
    expect(transport.rx_read_requests).toBeGreaterThanOrEqual(rows.filter(({ bytes }) => bytes === 30_000).length);
    for (const { packets, received = 0 } of flows) expect(packets).toBeGreaterThanOrEqual(received);
    for (const flow of flows.filter(({ id }) => rows.some((row) => row.id === id && row.bytes === 640_000))) {
      expect(flow.received).toBe(40 * Math.ceil(16_000 / kPacket));
    }
    if (loss !== "0%") expect(transport.retransmitted).toBeGreaterThan(0);
  });

  it("has the completion times of virtual time, as far as this host allows, and is compared with them", async (context) => {
    const file = join(folder(), "messages.yaml");
    writeFileSync(file, kMessages("0%"));
    const { result, path } = await validLabRun(context, { file }, expectAccounted);
    expect(result.fidelity.completion_delay_us).toBeGreaterThan(0);
    const sim = join(path, "sim");
    const simulation = await start(["sim", "run", file, "--quiet", "--json", "--out", sim], [], true);
    expect((await simulation.finished).status).toBe(0);
    const { result: simulated } = readRun(join(sim, "result.json"));
    expect(result.fct?.count).toBeGreaterThan(0.8 * (simulated.fct?.count ?? 0));
    const p50 = (result.fct?.fct_us.p50 ?? 0) / (simulated.fct?.fct_us.p50 ?? 1);
    expect(p50).toBeGreaterThan(0.9);
    expect(p50).toBeLessThan(1.4);
    const compare = await start(["compare", sim, join(path, "out"), "--max-difference", "fct=60%"], [], true);
    const { status, stdout } = await compare.finished;
    expect(stdout).toContain("Flow completion times");
    expect(stdout).toContain("fct: ");
    expect(status).toBe(0);
  });

  it("runs DCTCP: marks come back in acknowledgements, one for each packet, and windows are in its series", async (context) => {
    const file = join(folder(), "dctcp.yaml");
    writeFileSync(file, kMessages("0%", "switch: { ecn: { kmin: 30KB, kmax: 30KB, pmax: 100% } }"));
    const args = ["--set", "congestion.algorithm=dctcp"];
    const { result, path } = await validLabRun(context, { file, args }, (any) => {
      expectAccounted(any);
      expect(sum(Object.values(any.nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
    });
    const { series } = readRun(join(path, "out/result.json"));
    const windows = Object.values(series.flows).map(({ cwnd_packets = [] }) => Math.max(...cwnd_packets));
    for (const window of windows) expect(window).toBeGreaterThanOrEqual(10);
    expect(result.switches.sw?.ecn_marked).toBeGreaterThan(0);
    expect(result.transport?.tx_acks).toBeGreaterThan(0.9 * sum(result.flows.map(({ received = 0 }) => received)));
    expect(result.frames.dropped).toBe(0);
  });
});

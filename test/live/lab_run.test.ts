/** Whole runs of the command line on real frames: every frame accounted for, whatever else this machine is doing. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Result } from "../../src/result/result.js";
import { starText } from "../fixtures/networks.js";
import { describeLive } from "./capability.js";
import { folder, kIncast, type LabResult, start, sum, validLabRun } from "./weir.js";

/** Two seconds of the incast, slow enough that a busy machine keeps up with it. */
const kIncast5ms = ["--duration", "5ms", "--set", "warmup=1ms"];
const kIncastRun = ["--scale", "400", ...kIncast5ms];
/** One sender far below what its links take, so that only the fault loses frames; the fault is at one of them. */
const kLossy = `
scale: 400
duration: 4ms
topology: ${starText(["a", "b"], {}, { a: { impairment: { loss: "1%" } } })}
switch: { ecn: { enabled: false }, pfc: { enabled: false } }
congestion: { algorithm: none }
traffic: [{ from: a, to: b, rate: 10Gbps }]
`;
const perPriority = (counts: Record<string, number>) => sum(Object.values(counts));
const pausesOf = (result: LabResult) => perPriority(result.switches.sw?.pauses as Record<string, number>);

/** Checks what holds for every run, with or without losses on purpose. */
function expectAccounted({ frames, flows, nics, switches, fidelity }: LabResult): void {
  const { missing } = frames;
  expect(frames.sent + frames.duplicated).toBe(frames.received + frames.dropped + frames.impaired + missing);
  // Losses of the host itself make the run invalid, and are told.
  const told = fidelity.reasons.filter((reason) => reason.includes("not accounted for"));
  expect(told).toEqual(missing === 0 ? [] : [`${missing} frames are not accounted for`]);
  const pfc = sum(Object.values(switches).map((s) => perPriority(s.pfc_sent)));
  const cnps = sum(Object.values(nics).map((nic) => nic.np_cnp_sent));
  // One lossless priority: a PFC frame speaks of one.
  expect(frames.sent).toBe(sum(flows.map((flow) => flow.packets)) + cnps + pfc);
  expect(sum(Object.values(switches).map((s) => perPriority(s.drops)))).toBe(frames.dropped);
}

/** The incast in virtual time. */
async function simulated(args: readonly string[]): Promise<Result> {
  const command = ["sim", "run", kIncast, "--quiet", "--json", "--out", join(folder(), "out"), ...args];
  const { status, stdout, stderr } = await (await start(command, [], true)).finished;
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout) as Result;
}

describeLive("weir lab run", () => {
  /** The first valid run under DCQCN; others are held against it. */
  let underDcqcn: LabResult | undefined;

  it("delivers every frame of an incast, and reports it in one document that keeps the contract", async (context) => {
    const { result, stderr, path } = await validLabRun(context, { args: kIncastRun }, expectAccounted);
    underDcqcn = result;
    expect(stderr).toBe("");
    expect(result).toMatchObject({
      scenario: "incast-4to1",
      clock: "wire",
      scale: 400,
      duration_s: 0.005,
      warmup_s: 0.001,
    });
    expect(result.frames).toMatchObject({ dropped: 0, impaired: 0, duplicated: 0 });
    expect(result.fidelity.host_drops).toBe(0);
    expect(result.flows.map((flow) => flow.lost)).toEqual([0, 0, 0, 0]);
    const { totals } = await simulated(kIncast5ms);
    expect(result.totals.goodput_bps / totals.goodput_bps).toBeGreaterThan(0.9);
    expect(result.totals.goodput_bps / totals.goodput_bps).toBeLessThan(1.1);
    // DCQCN at work: marks at the bottleneck become CNPs, and none of those is lost.
    const cnps = sum(Object.values(result.nics).map((nic) => nic.np_cnp_sent));
    expect(result.switches.sw?.ecn_marked).toBeGreaterThan(0);
    expect(result.nics.r?.np_cnp_sent).toBe(cnps);
    expect(cnps).toBeGreaterThan(0);
    expect(sum(Object.values(result.nics).map((nic) => nic.rp_cnp_handled))).toBe(cnps);
    // Four line-rate starts into one port: PFC has to act, and the hosts receive the frames that the switch sends.
    expect(pausesOf(result)).toBeGreaterThan(0);
    const received = sum(Object.values(result.nics).map((nic) => perPriority(nic.pfc_received)));
    expect(received).toBe(perPriority(result.switches.sw?.pfc_sent ?? {}));
    // The same document is in the folder, with the scenario as it was run.
    expect(JSON.parse(readFileSync(join(path, "out/result.json"), "utf8"))).toMatchObject({ frames: result.frames });
    expect(existsSync(join(path, "out/report.html"))).toBe(true);
  });

  it("pauses far more often without DCQCN, and still loses nothing", async (context) => {
    const none = ["--set", "congestion.algorithm=none"];
    const with_ = underDcqcn ?? (await validLabRun(context, { args: kIncastRun }, expectAccounted)).result;
    const { result: without } = await validLabRun(context, { args: [...kIncastRun, ...none] }, expectAccounted);
    for (const result of [with_, without]) expect(result.frames.dropped).toBe(0);
    expect(without.profile).toBe("none");
    expect(sum(Object.values(without.nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
    // The few of DCQCN are its line-rate start.
    expect(pausesOf(without)).toBeGreaterThan(20 * pausesOf(with_));
  });

  it("drops by the reason, and each one counted, when PFC is off as well", async (context) => {
    const off = ["congestion.algorithm=none", "switch.pfc.enabled=false"].flatMap((set) => ["--set", set]);
    const args = ["--scale", "400", "--duration", "2ms", "--set", "warmup=200us", ...off];
    const { result } = await validLabRun(context, { args }, (any) => {
      expectAccounted(any);
      expect(pausesOf(any)).toBe(0);
      expect(any.switches.sw?.pfc_sent).toEqual({});
      // All are data: the flows miss the frames that were dropped, or lost by the host.
      expect(sum(any.flows.map((flow) => flow.lost))).toBe(any.frames.dropped + any.frames.missing);
      expect(sum(any.flows.map((flow) => flow.packets - flow.lost))).toBe(any.frames.received);
    });
    expect(Object.keys(result.switches.sw?.drops ?? {})).toEqual(["lossy_threshold"]);
    // Four send what one link takes.
    expect(result.frames.dropped).toBeGreaterThan(result.frames.sent / 3);
  });

  it("accounts for faults on purpose", async (context) => {
    // Faults hit frames in the order in which they come, so on the wire only the sums repeat.
    const set = ["loss=1%", "duplicate=1%", "corrupt=1%"].flatMap((fault) => [
      "--set",
      `topology.link.impairment.${fault}`,
    ]);
    const none = ["--set", "congestion.algorithm=none"];
    const args = ["--scale", "400", "--duration", "2ms", "--set", "warmup=200us", ...none, ...set];
    const { result } = await validLabRun(context, { args }, expectAccounted);
    const { sent, impaired, duplicated } = result.frames;
    // Two links each way; the draws are independent, so six standard deviations contain them.
    for (const hit of [impaired, duplicated]) {
      expect(Math.abs(hit - 0.02 * sent)).toBeLessThan(6 * Math.sqrt(0.02 * sent) + 0.001 * sent);
    }
    // Lost on the way, or refused at its end for the wrong ICRC.
    const missed = sum(result.flows.map((flow) => flow.lost));
    expect(missed).toBeGreaterThan(impaired);
    expect(missed).toBeLessThan(impaired + 0.03 * sent);
  });

  it("sees 1% of loss on one link as just that", async (context) => {
    const file = join(folder(), "lossy.yaml");
    writeFileSync(file, kLossy);
    const { result } = await validLabRun(context, { file }, expectAccounted);
    const [flow] = result.flows;
    expect(result.frames.dropped + result.frames.duplicated).toBe(0);
    expect(result.frames.impaired).toBeGreaterThan(0);
    // All losses are data of the one flow.
    expect(flow?.lost).toBe(result.frames.impaired + result.frames.missing);
    expect(result.frames.received).toBe((flow?.packets ?? 0) - result.frames.impaired);
  });
});

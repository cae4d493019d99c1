/** One scenario on two machines, joined by a VXLAN of the kernel: conserved to the frame, whatever else happens. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, type TestContext } from "vitest";
import type { Result } from "../../src/result/result.js";
import { faultsOf } from "../fixtures/closed_schema.js";
import { eventually } from "../patience.js";
import { describeMachines, type Machine, machines } from "./machines.js";
import { Standing } from "./standing.js";
import { type Finished, folder, type Running, start, sum } from "./weir.js";

/** Four senders to one receiver: two beside it, two on the other machine. */
const kIncast = `
name: incast
scale: 400
duration: 6ms
topology:
  link: { rate: 10Gbps, delay: 2us }
  hosts: [s1, s2, s3, s4, r]
  switches: [left, right]
  links: [s1 -- left, s2 -- left, s3 -- right, s4 -- right, r -- right, left -- right]
traffic: [{ id: incast, from: [s1, s2, s3, s4], to: r }]
fidelity: { lateness: 60ms }
parts:
  one: { nodes: [left], interfaces: { left -- right: vx0 } }
  two: { nodes: [right], interfaces: { right -- left: vx0 } }
`;
/** With these PFC alone stops the senders, hop by hop, back over the tunnel. */
const kPauses = [
  ...["--set", "congestion.algorithm=none", "--set", "switch.ecn.enabled=false"],
  ...["--set", "switch.buffer.total=1MB", "--set", "switch.buffer.threshold=50KB"],
];
const kReliable = ["--set", "transport.type=rc", "--set", "traffic.0.bytes=300KB", "--set", "traffic.0.message=30KB"];
const kParts = ["one", "two"] as const;
const kRuns = 4;

interface Merged extends Result {
  merged: NonNullable<Result["merged"]>;
  frames: NonNullable<Result["frames"]>;
}

/** The scenario's file, and a part of it on each machine, begun. */
async function begin(place: string, pair: readonly Machine[], args: readonly string[] = []): Promise<Running[]> {
  const file = join(place, "incast.yaml");
  writeFileSync(file, kIncast);
  const options = ["--json", "--quiet", "--wait", "60s", ...args];
  return Promise.all(
    kParts.map((part, i) =>
      start(["lab", "run", file, "--part", part, "--out", join(place, part), ...options], pair[i]?.inside, true),
    ),
  );
}

async function merge(place: string): Promise<Finished> {
  const folders = kParts.map((part) => join(place, part));
  return (await start(["lab", "merge", ...folders, "--out", join(place, "all"), "--json"], [], true)).finished;
}

/** Checks that every frame is accounted for, in each part and in both. */
function expectConserved(parts: readonly Result[], { frames, merged, flows }: Merged): void {
  for (const { frames: own } of parts) {
    const {
      sent = 0,
      duplicated = 0,
      from_parts = 0,
      received = 0,
      dropped = 0,
      missing = 0,
      to_parts = 0,
    } = own ?? {};
    expect(sent + duplicated + from_parts).toBe(received + dropped + to_parts + missing);
  }
  expect(frames.sent + frames.duplicated).toBe(frames.received + frames.dropped + frames.impaired + frames.missing);
  const lost = sum(merged.links.map((link) => link.lost));
  expect(frames.missing).toBe(lost + sum(parts.map((part) => part.frames?.missing ?? 0)));
  // The link has the sent frames of one part and the received ones of the other, each by its own count.
  const ends = parts.map((part) => part.part?.links[0]);
  expect(merged.links).toMatchObject([
    { link: "left -- right", from: "one", to: "two", sent: ends[0]?.sent, received: ends[1]?.received },
    { link: "left -- right", from: "two", to: "one", sent: ends[1]?.sent, received: ends[0]?.received },
  ]);
  for (const { packets, received = 0, lost } of flows)
    expect(packets).toBeGreaterThanOrEqual(received + Math.min(lost, 0));
}

/**
 * Both parts and their merged result, until in a run this host, which is two machines at once, has lost no frame. It need not
 * have kept up: each run is checked for what holds for any.
 */
async function wholeRun(context: TestContext, args: readonly string[] = []): Promise<Merged> {
  const pair = await machines();
  const place = folder();
  for (let run = 1; ; run++) {
    for (const part of [...kParts, "all"]) rmSync(join(place, part), { recursive: true, force: true });
    const running = await begin(place, pair, args);
    // The hosts' own stacks have something to say on the interface meanwhile, which is none of the lab's.
    const pings = pair[0].namespace.run("ping", ["-i", "0.2", "-c", "20", "-W", "1", "198.51.100.2"]);
    const finished = await Promise.all(running.map((one) => one.finished));
    const { stdout } = await pings;
    expect(stdout).toContain("20 packets transmitted");
    for (const { status, stderr } of finished) expect([0, 3], stderr).toContain(status);
    const parts = finished.map((one) => JSON.parse(one.stdout) as Result);
    const { status, stdout: document, stderr } = await merge(place);
    expect([0, 3], stderr).toContain(status);
    const result = JSON.parse(document) as Merged;
    for (const one of [...parts, result]) expect(faultsOf(one)).toEqual([]);
    expectConserved(parts, result);
    expect(result.fidelity.valid).toBe(status === 0);
    expect(result.merged.parts.map(({ name, valid }) => [name, valid])).toEqual(
      kParts.map((name, i) => [name, parts[i]?.fidelity.valid]),
    );
    for (const one of running) await one.nothingLeft();
    const { missing, dropped } = result.frames;
    if (missing === 0 && dropped === 0) return result;
    if (run === kRuns)
      context.skip(`this host has lost frames in each of ${kRuns} runs: ${result.fidelity.reasons.join("; ")}`);
  }
}

const perPriority = (counts: Readonly<Record<string, number>> = {}) => sum(Object.values(counts));

describeMachines("a lab on two machines", () => {
  it("delivers every frame of an incast across both, with marks and CNPs", async (context) => {
    const { merged, frames, flows, nics, switches, totals } = await wholeRun(context);
    expect(frames).toMatchObject({ dropped: 0, impaired: 0, missing: 0 });
    expect(flows.map(({ id, lost, end }) => [id, lost, end])).toEqual(
      ["s1", "s2", "s3", "s4"].map((host) => [`incast/${host}`, 0, undefined]),
    );
    for (const flow of flows) expect(flow.received).toBe(flow.packets);
    // Two of the four senders are beyond the tunnel: CNPs reach them, and marks made there come here.
    expect(switches.right?.ecn_marked).toBeGreaterThan(0);
    for (const host of ["s1", "s2"]) expect(nics[host]?.rp_cnp_handled).toBeGreaterThan(0);
    expect(sum(Object.values(nics).map((nic) => nic.rp_cnp_handled))).toBe(nics.r?.np_cnp_sent);
    expect(merged.links.every(({ sent }) => sent > 0)).toBe(true);
    expect(totals.goodput_bps).toBeGreaterThan(0);
  });

  it("passes PFC, which keeps it without loss", async (context) => {
    const { frames, switches } = await wholeRun(context, kPauses);
    expect(frames).toMatchObject({ dropped: 0, impaired: 0, missing: 0 });
    // Nobody else pauses the switch that is alone with its senders.
    expect(perPriority(switches.left?.pfc_received)).toBeGreaterThan(0);
    expect(perPriority(switches.left?.pfc_sent)).toBeGreaterThan(0);
  });

  it("knows when the messages of reliable connections across both were complete", async (context) => {
    const { fct, flows } = await wholeRun(context, kReliable);
    expect(fct).toMatchObject({ count: 4, incomplete: 0 });
    expect(fct?.slowdown.p50).toBeGreaterThan(1);
    for (const { goodput_bps } of flows) expect(goodput_bps).toBeGreaterThan(0);
  });

  it("counts what the network between the machines loses, and says that the result is not valid", async () => {
    const pair = await machines();
    const place = folder();
    const running = await begin(place, pair);
    await Promise.all(running.map((one) => one.untilTraffic()));
    await sleep(1500);
    await pair[0].namespace.run("ip", ["link", "set", "under0", "down"]);
    await sleep(500);
    await pair[0].namespace.run("ip", ["link", "set", "under0", "up"]);
    const finished = await Promise.all(running.map((one) => one.finished));
    const { status, stdout, stderr } = await merge(place);
    expect(status, stderr).toBe(3);
    const result = JSON.parse(stdout) as Merged;
    expectConserved(
      finished.map((one) => JSON.parse(one.stdout) as Result),
      result,
    );
    expect(sum(result.merged.links.map((link) => link.lost))).toBeGreaterThan(0);
    expect(result.fidelity.reasons.join("\n")).toContain("the network between them loses frames");
  });

  it("ends at all parts when one is ended, and says where that was", async () => {
    const pair = await machines();
    const place = folder();
    const [one, two] = (await begin(place, pair, ["--duration", "60ms"])) as [Running, Running];
    await Promise.all([one.untilTraffic(), two.untilTraffic()]);
    await sleep(3000);
    two.child.kill("SIGINT");
    const [first, second] = await Promise.all([one.finished, two.finished]);
    expect(second.status, second.stderr).toBe(130);
    expect(first.status, first.stderr).toBe(3);
    const { fidelity, until_s } = JSON.parse(first.stdout) as Result;
    expect(fidelity.reasons[0]).toContain("part two has ended: ended by SIGINT");
    expect(until_s).toBeLessThan(0.06);
  });

  it("waits for the others as long as it may, and leaves nothing", async () => {
    const [machine] = await machines();
    const place = folder();
    const file = join(place, "incast.yaml");
    writeFileSync(file, kIncast);
    const out = join(place, "one");
    const args = ["lab", "run", file, "--part", "one", "--out", out, "--wait", "1s"];
    const running = await start(args, machine.inside, true);
    const { status, stderr } = await running.finished;
    expect(status).toBe(1);
    expect(stderr).toContain("part one waits for two");
    expect(stderr).toContain("part one has waited 1 s for two");
    expect(stderr).toContain("weir lab run FILE --part two");
    expect(existsSync(out)).toBe(false);
    await running.nothingLeft();
  });

  it("refuses an interface that is missing, down, or too narrow, with what to do", async () => {
    const [machine] = await machines(1400);
    const place = folder();
    const file = join(place, "incast.yaml");
    writeFileSync(file, kIncast);
    const run = async (...args: string[]) => {
      const out = join(place, "out");
      const running = await start(["lab", "run", file, "--part", "one", "--out", out, ...args], machine.inside, true);
      const { status, stderr } = await running.finished;
      return `${status} ${stderr}`;
    };
    const narrow = await run();
    expect(narrow).toContain("1 error: vx0 has an MTU of 1400, and left -- right needs 1500");
    expect(narrow).toContain("ip link set vx0 mtu 1500");
    await machine.namespace.run("ip", ["link", "set", "vx0", "down"]);
    expect(await run()).toContain("vx0, the end of left -- right, is down");
    expect(await run("--set", "parts.one.interfaces={left -- right: vx9}")).toContain("there is no interface vx9");
  });

  it("stays up in parts, and programs reach hosts on the other machine", async () => {
    const pair = await machines();
    const file = join(folder(), "incast.yaml");
    writeFileSync(file, kIncast);
    const labs = pair.map(({ inside }) => new Standing(inside));
    for (const [i, lab] of labs.entries()) {
      const { status, stderr } = await lab.start("lab", "up", file, "--part", kParts[i] ?? "").finished;
      expect(status, stderr).toBe(0);
    }
    const [lab] = labs as [Standing, Standing];
    await eventually(async () => {
      const { status, stdout } = await lab.start("lab", "exec", "s1", "--", "ping", "-c", "2", "-W", "2", "r").finished;
      expect(stdout).toContain(" 0% packet loss");
      expect(status).toBe(0);
    });
    for (const one of labs) expect((await one.start("lab", "down", "--all").finished).status).toBe(0);
  });
});

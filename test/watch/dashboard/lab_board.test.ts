/** A lab behind a dashboard: runs, parameters, and what the page hears of them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LabBoard, type RunEnd, type RunOrder } from "../../../src/watch/dashboard/lab_board.js";
import { LabScenario } from "../../../src/watch/dashboard/lab_scenario.js";
import type { Frame, Session } from "../../../src/watch/dashboard/protocol.js";
import { FakeLab } from "./fake_lab.js";

const kText = `
name: small
scale: auto
duration: 100ms
warmup: 20ms
topology: { hosts: [a, b, c], switches: [sw], links: [a -- sw, b -- sw, c -- sw] }
switch: { ecn: { kmin: 10KB } }
congestion: { parameters: { rp_time_reset: 300 } }
traffic: [{ id: x, from: [a, b], to: c }]
probes: { interval: 10ms }
`;

interface Run {
  order: RunOrder;
  end(end: RunEnd): void;
  fail(error: Error): void;
}

/** A board whose runs end when a test says so, or are aborted. */
/** @param keeps A run that is stopped has something to keep, and ends by itself. */
function board(set: readonly string[] = [], text = kText, keeps = false) {
  const runs: Run[] = [];
  const told: (Session | Frame)[] = [];
  const warnings: string[] = [];
  const audience = {
    watched: true,
    session: (session: Session) => void told.push(structuredClone(session)),
    frame: (frame: Frame) => void told.push(structuredClone(frame)),
  };
  const execute = (order: RunOrder) =>
    new Promise<RunEnd>((resolve, reject) => {
      if (!keeps) order.signal.addEventListener("abort", () => reject(order.signal.reason));
      runs.push({ order, end: resolve, fail: reject });
    });
  const settings = LabScenario.parse("lab.yaml", text, set);
  const options = { version: "1.2.3", execute, warn: (warning: string) => void warnings.push(warning) };
  return { board: new LabBoard(settings, audience, options), runs, told, warnings, audience };
}

/** The newest run, begun on a lab. */
function begin({ runs }: { runs: Run[] }) {
  const { order } = runs.at(-1) as Run;
  const lab = new FakeLab(order.scenario);
  order.observer.begun?.(lab);
  return { lab, observer: order.observer };
}

const parameter = (session: Session, path: string) => session.parameters.find((one) => one.path === path)?.value;

describe("the session of a lab", () => {
  it("has topology, flows, queues with thresholds, and parameters as they are written", () => {
    const session = board(["switch.ecn.kmax=100KB"]).board.session();
    expect(session).toMatchObject({
      kind: "lab",
      name: "small",
      duration_ns: 100e6,
      congestion_control: "dcqcn",
      flows: [
        { id: "x/a", from: "a", to: "c", priority: 3 },
        { id: "x/b", from: "b", to: "c", priority: 3 },
      ],
      queues: [{ name: "sw:c:3", switch: "sw", port: "c", priority: 3, kmin: 10_000, kmax: 100_000, qeq: null }],
      runs: [],
    });
    expect(session.topology.nodes).toContainEqual({ name: "sw", kind: "switch" });
    expect(session.topology.links).toContainEqual({ from: "a", to: "sw", rate_bps: 40e9 });
    expect(parameter(session, "switch.ecn.kmin")).toBe("10KB");
    expect(parameter(session, "switch.ecn.kmax")).toBe("100KB");
    expect(parameter(session, "switch.ecn.pmax")).toBe("1%");
    expect(parameter(session, "switch.buffer.xon_offset")).toBe("3KB");
    // Parameters have the spelling of the file: with the other one beside it, one would be given twice.
    expect(parameter(session, "congestion.parameters.rp_time_reset")).toBe("300us");
    expect(parameter(session, "congestion.parameters.rpg_time_reset")).toBeUndefined();
    expect(parameter(session, "congestion.parameters.rpg_ai_rate")).toBe("40Mbps");
    expect(parameter(session, "congestion.profile")).toBe("paper-sigcomm15");
  });

  it("takes every value that it shows", () => {
    for (const { path, value } of board().board.session().parameters) {
      expect(() => LabScenario.parse("lab.yaml", kText, [`${path}=${value}`]), path).not.toThrow();
    }
  });

  it("has the queues on the paths of flows besides those that are probed, 64 at most", () => {
    const text = `
topology: { hosts: [a, b, c], switches: [s, t], links: [a -- s, b -- s, s -- t, t -- c] }
traffic: [{ from: [a, b], to: c, priority: 3 }, { from: c, to: a, priority: 4 }]
probes: { queues: ["t:c:3"] }
`;
    const names = board([], text)
      .board.session()
      .queues.map(({ name }) => name);
    expect(names).toEqual(["t:c:3", "s:t:3", "t:s:4", "s:a:4"]);
    const wide = `
topology: { kind: leaf-spine, leaves: 6, spines: 4, hosts: 16 }
traffic: [{ pattern: permutation }]
`;
    expect(board([], wide).board.session().queues.length).toBe(64);
  });

  it("lists QCN's parameters under QCN", () => {
    const qcn = kText
      .replace(/congestion: .*/, "congestion: { algorithm: qcn }")
      .replace("{ ecn:", "{ qcn: { enabled: true }, ecn:");
    const session = board([], qcn).board.session();
    expect(session.queues[0]?.qeq).toBe(26_000);
    expect(parameter(session, "switch.qcn.cpQSp")).toBe("26KB");
    expect(parameter(session, "congestion.parameters.rpgByteReset")).toBeDefined();
    expect(session.parameters.filter(({ group }) => group === "DCQCN")).toEqual([]);
  });
});

describe("changes", () => {
  it("go to the running lab, are kept with the run, and hold for the runs after it", async () => {
    const it = board();
    it.board.start();
    const { lab } = begin(it);
    lab.time = 30e6;
    it.board.change(["switch.ecn.kmax=1MB", "congestion.parameters.rpg_ai_rate=80Mbps"]);
    expect(lab.changes).toHaveLength(1);
    expect(lab.changes[0]?.scenario.switches[0]?.ecn.kmax).toBe(1e6);
    expect(lab.changes[0]?.set).toEqual(["switch.ecn.kmax=1MB", "congestion.parameters.rpg_ai_rate=80Mbps"]);
    const session = it.told.at(-1) as Session;
    expect(session.queues[0]?.kmax).toBe(1e6);
    expect(session.runs[0]).toMatchObject({
      set: [],
      changes: [{ t_ns: 30e6, set: ["switch.ecn.kmax=1MB", "congestion.parameters.rpg_ai_rate=80Mbps"] }],
    });
    it.runs[0]?.end({ folder: "/r/1", valid: true });
    await it.board.settled();
    it.board.change(["switch.ecn.kmax=2MB"]);
    it.board.start();
    const { order } = it.runs[1] as Run;
    expect(order.set).toEqual(["congestion.parameters.rpg_ai_rate=80Mbps", "switch.ecn.kmax=2MB"]);
    expect(order.scenario.switches[0]?.ecn.kmax).toBe(2e6);
    expect(it.board.session().runs.map(({ id, state, changes }) => [id, state, changes.length])).toEqual([
      [1, "complete", 1],
      [2, "running", 0],
    ]);
  });

  it("that come before traffic are made when it begins, and those after it wait for the next run", () => {
    const it = board();
    it.board.start();
    it.board.change(["switch.ecn.kmin=1KB"]);
    const { lab } = begin(it);
    expect(lab.changes.map(({ set }) => set)).toEqual([["switch.ecn.kmin=1KB"]]);
    expect(it.board.session().runs[0]?.changes).toEqual([{ t_ns: 0, set: ["switch.ecn.kmin=1KB"] }]);
    lab.time = 100e6;
    it.board.change(["switch.ecn.kmin=2KB"]);
    expect(lab.changes).toHaveLength(1);
    expect(parameter(it.board.session(), "switch.ecn.kmin")).toBe("2KB");
  });

  it.each([
    ["switch.ecn.kmin=9MB", "switch.ecn.kmin", /9 MB is greater than kmax/],
    ["switch.ecn.kmni=9MB", "switch.ecn.kmni", /unknown field/],
    ["switch.ecn.pmax=7", "switch.ecn.pmax", /out of range/],
    ["congestion.parameters.rpg_time_reset=1s", "congestion.parameters.rp_time_reset", /given twice/],
    ["congestion.parameters.dce_tcp_g=1024", "congestion.parameters.dce_tcp_g", /leaves alpha as it is/],
    ["duration=2s", "duration", /duration cannot change here/],
    ["topology.hosts=[a, b, c, d]", "topology.hosts", /topology.hosts cannot change here/],
    ["congestion.library.file=/tmp/evil.so", "congestion.library.file", /congestion.library.file cannot change here/],
    ["switch.buffer.total=99MB", "switch.buffer.total", /switch.buffer.total cannot change here/],
    ["congestion.algorithm=none", "congestion.algorithm", /congestion.algorithm cannot change here/],
    ["traffic.0.to=b", "traffic.0.to", /./],
    ["switch.ecn.kmin=10KB", "switch.ecn.kmin", /this changes nothing/],
    ["nonsense", undefined, /no value/],
    ["__proto__.x=1", undefined, /__proto__.x cannot change here/],
  ])("are refused as a whole: %s", (bad, field, message) => {
    const it = board();
    it.board.start();
    const { lab } = begin(it);
    const before = it.board.session();
    const set = /nothing/.test(message.source) ? [bad] : ["switch.ecn.pmax=2%", bad];
    expect(() => it.board.change(set)).toThrow(message);
    if (field !== undefined && /twice|leaves|greater|unknown|range/.test(message.source)) {
      expect(() => it.board.change([bad])).toThrow(expect.objectContaining({ field }));
    }
    expect(it.board.session()).toEqual(before);
    expect(lab.changes).toEqual([]);
  });

  it("that mlx5's profile cannot have are refused: its cuts have slots", () => {
    const { board: one } = board([], kText.replace("{ parameters: { rp_time_reset: 300 } }", "{ profile: mlx5 }"));
    expect(() => one.change(["congestion.parameters.rate_reduce_monitor_period=0us"])).toThrow(
      /no time between two cuts/,
    );
  });

  it("of single devices are taken too, by their own paths", () => {
    const text = kText.replace("switches: [sw]", "switches: { sw: { ecn: { kmax: 50KB } } }");
    const { board: one } = board([], text);
    expect(() => one.change(["switch.ecn.kmax=60KB"])).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("topology.switches.NAME.ecn.kmax") }),
    );
    one.change(["topology.switches.sw.ecn.kmax=60KB"]);
    expect(one.session().queues[0]?.kmax).toBe(60_000);
  });

  it("warn of what is questionable", () => {
    const it = board();
    it.board.change(["switch.ecn.kmin=20MB", "switch.ecn.kmax=30MB"]);
    expect(it.warnings).toEqual([expect.stringContaining("PFC may act before ECN")]);
  });
});

describe("runs", () => {
  it("are one at a time, at the scale of the first", async () => {
    const it = board();
    it.board.run("start");
    expect(() => it.board.run("start")).toThrow("a run is under way");
    expect(it.runs[0]?.order.scenario.scale).toBe("auto");
    begin(it);
    expect(it.board.session().scale).toBe(10);
    it.runs[0]?.end({ folder: "/r/1", valid: false });
    expect(await it.board.settled()).toMatchObject({ id: 1, state: "complete", valid: false, folder: "/r/1" });
    it.board.run("start");
    expect(it.runs[1]?.order.scenario.scale).toBe(10);
  });

  it("that are stopped leave their mark, and nothing else", async () => {
    const it = board();
    expect(() => it.board.run("stop")).toThrow("no run is under way");
    it.board.run("start");
    const { observer } = begin(it);
    it.board.run("stop");
    observer.ended?.();
    const run = await it.board.settled();
    expect(run).toMatchObject({ id: 1, state: "stopped", valid: null, error: null, folder: null });
    expect(await it.board.result(1)).toBeUndefined();
    expect((it.told.at(-1) as Session).runs).toEqual([run]);
  });

  it("tell of faults and failures of the scenario when they happen", () => {
    const faults = "faults: [{ at: 20ms, device: a, kind: drop, for: 30ms }, { at: 20ms, device: b, kind: down }]";
    const made = board([], `${kText}${faults}\nscale: 10\n`.replace("scale: auto\n", ""));
    made.board.start();
    const { lab, observer } = begin(made);
    const changes = () => made.board.session().runs[0]?.changes;
    expect(changes()).toEqual([]);
    lab.pass(observer, 20e6);
    const first = [
      { t_ns: 20e6, set: ["drop at a begins"] },
      { t_ns: 20e6, set: ["link b -- sw goes down"] },
    ];
    expect(changes()).toEqual(first);
    lab.pass(observer, 10e6);
    expect(changes()).toEqual(first);
    lab.pass(observer, 70e6);
    expect(changes()).toEqual([...first, { t_ns: 50e6, set: ["drop at a ends"] }]);
  });

  it("that fail say why", async () => {
    const it = board();
    it.board.start();
    it.runs[0]?.fail(new Error("cannot open a packet socket"));
    expect(await it.board.settled()).toMatchObject({ state: "failed", error: "cannot open a packet socket" });
    it.board.start();
    expect(it.runs).toHaveLength(2);
  });

  it("end when the process is asked to", async () => {
    const it = board();
    it.board.start();
    const reason = new Error("stopped by SIGINT");
    expect(await it.board.settled(reason)).toMatchObject({ state: "stopped" });
    expect(it.runs[0]?.order.signal.reason).toBe(reason);
  });

  it("that are stopped while traffic flows keep what there was", async () => {
    const it = board([], kText, true);
    it.board.start();
    it.board.run("stop");
    expect(it.runs[0]?.order.signal.aborted).toBe(true);
    it.runs[0]?.end({ folder: "/tmp/run", valid: false });
    // It does not count as one that the host did not keep up with.
    expect(await it.board.settled()).toMatchObject({ state: "stopped", folder: "/tmp/run", valid: null });
  });

  it("keep their documents on disk", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "result.json"), '{"scenario":"small"}');
    writeFileSync(join(folder, "series.json"), '{"interval_s":1}');
    const it = board();
    it.board.start();
    it.runs[0]?.end({ folder, valid: true });
    await it.board.settled();
    expect(JSON.parse((await it.board.result(1)) ?? "")).toEqual({ scenario: "small", series: { interval_s: 1 } });
    rmSync(join(folder, "series.json"));
    await expect(it.board.result(1)).rejects.toThrow("the result of run 1 cannot be read");
  });
});

describe("frames", () => {
  it("come from the beginning on, whether somebody looks on or not, no faster than 20 a second", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    vi.advanceTimersByTime(1000);
    const it = board();
    it.audience.watched = false;
    it.board.start();
    const { lab, observer } = begin(it);
    const wait = (ms: number) => {
      vi.advanceTimersByTime(ms);
      lab.pass(observer, 1e6 * ms);
    };
    wait(50);
    wait(20);
    wait(20);
    wait(20);
    expect(it.told).toMatchObject([
      { run: 1, since_ns: 0, t_ns: 50e6 },
      { run: 1, since_ns: 50e6, t_ns: 110e6 },
    ]);
    lab.time += 1e6;
    observer.ended?.();
    expect(it.told.slice(2)).toMatchObject([{ since_ns: 110e6, t_ns: 111e6 }]);
    expect(it.board.inspect({ port: "sw:c" })).toBeUndefined();
  });

  it("come with inspections of ports and queue pairs", () => {
    const it = board();
    it.board.start();
    begin(it);
    expect(it.board.inspect({ port: "sw:a" })).toMatchObject({
      title: "port of sw to a",
      facts: expect.arrayContaining([{ name: "interface", value: "up" }]),
      counters: [{ name: "rx_packets", value: 0 }],
    });
    expect(it.board.inspect({ port: "a:sw" })).toMatchObject({ title: "port of a to sw" });
    for (const port of ["a:b", "sw", "sw:a:3", "nobody:sw", ""]) expect(it.board.inspect({ port })).toBeUndefined();
    expect(it.board.inspect({ qp: "nobody" })).toBeUndefined();
  });
});

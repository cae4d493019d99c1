/** Dashboards of real labs and daemons: what they stream moves, what is changed there changes the network, and nothing is left. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, get, request } from "node:http";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { Frame, History, RunDescription, Sample, Session } from "../../src/watch/dashboard/protocol.js";
import { sampleOf } from "../../src/watch/dashboard/sample.js";
import { kRoot } from "../command.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser } from "./capability.js";
import { freePort, network, portOf, startNic, startSwitch, weir } from "./daemons.js";
import { folder, kIncast, kSlowLinks, start } from "./weir.js";

/** Thresholds that no queue reaches. */
const kUnmarked = ["switch.ecn.kmin=900MB", "switch.ecn.kmax=950MB"];

/** A page that reads all that comes. */
class Page {
  readonly frames: Frame[] = [];
  /** Samples of the run of the last frame or sample: each moment once. */
  samples: Sample[] = [];
  private samplesOf = -1;
  sessions: Session[] = [];

  constructor(
    readonly url: string,
    private readonly token?: string,
  ) {}

  get session(): Session {
    return this.sessions.at(-1) as Session;
  }
  get run(): RunDescription | undefined {
    return this.session?.runs.at(-1);
  }

  /** Opens the stream and waits until it has the session. */
  async open(): Promise<this> {
    let text = "";
    const stream = get(`${this.url}/api/live`, { headers: this.#headers(), agent: false }, (response) => {
      response.setEncoding("utf8").on("data", (part: string) => {
        const events = (text + part).split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) this.#take(event);
      });
      response.on("error", () => {});
    });
    stream.on("error", () => {});
    onTestFinished(() => void stream.destroy());
    await eventually(() => expect(this.sessions.length).toBeGreaterThan(0));
    return this;
  }

  post(path: string, body: unknown): Promise<number> {
    const headers = { ...this.#headers(), "content-type": "application/json", origin: this.url };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}${path}`, { method: "POST", headers, agent: false }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode ?? 0));
      });
      sent.on("error", reject).end(JSON.stringify(body));
    });
  }

  /** Events of a kind in all these frames. */
  count(wanted: string, frames: readonly Frame[] = this.frames): number {
    const events = frames.flatMap((frame) => frame.events.filter(({ kind }) => kind === wanted));
    return events.reduce((sum, { count }) => sum + count, 0);
  }

  #headers(): Record<string, string> {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }

  #take(event: string): void {
    const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
    if (kind === "frame") {
      const frame = JSON.parse(data ?? "") as Frame;
      this.frames.push(frame);
      this.#know({ run: frame.run, samples: [sampleOf(frame)] });
    }
    if (kind === "history") this.#know(JSON.parse(data ?? "") as History);
    if (kind === "session") this.sessions.push(JSON.parse(data ?? "") as Session);
  }

  #know({ run, samples }: History): void {
    if (run !== this.samplesOf) this.samples = [];
    this.samplesOf = run;
    for (const sample of samples) {
      if (sample.t_ns <= (this.samples.at(-1)?.t_ns ?? Number.NEGATIVE_INFINITY)) continue;
      this.samples = [...this.samples.filter(({ t_ns }) => t_ns <= sample.since_ns), sample];
    }
  }
}

/** Counts of events by kind, from the first of these samples on until `t_ns`; they are without a gap. */
function eventsUntil(samples: readonly Sample[], t_ns: number): Record<string, number> {
  const counts: Record<string, number> = {};
  const some = samples.filter((sample) => sample.t_ns <= t_ns);
  for (const [i, { since_ns, events }] of some.entries()) {
    expect(since_ns).toBe(some[i - 1]?.t_ns ?? since_ns);
    for (const [kind, count] of Object.entries(events)) counts[kind] = (counts[kind] ?? 0) + count;
  }
  return counts;
}

/** `weir lab run --dashboard` on the incast in this network, where the test can reach it. */
async function lab(more: readonly string[] = [], as: readonly string[] = []) {
  const out = join(folder(), "out");
  const port = await freePort();
  const args = ["lab", "run", kIncast, "--quiet", "--json", "--out", out, "--dashboard", String(port), ...more];
  const running = await start([...args, ...kSlowLinks, "--set", "fidelity.lateness=60ms"], as, true);
  const url = `http://127.0.0.1:${port}`;
  let said = "";
  running.child.stderr?.on("data", (text: string) => {
    said += text;
  });
  // Changes need the token that is printed at the start.
  const [, token] = await eventually(() => {
    const found = new RegExp(`^dashboard: ${url}/\\?token=(\\w+)$`, "m").exec(said);
    expect(found, said).not.toBeNull();
    return found as RegExpExecArray;
  });
  await eventually(async () => expect((await fetch(url)).status).toBe(200));
  expect(await new Page(url).post("/api/run", { action: "stop" })).toBe(401);
  const page = await new Page(url, token).open();
  // The run that has begun may be over before a busy machine gets here: another one is seen from its start.
  await page.post("/api/run", { action: "stop" });
  await eventually(() => expect(page.run?.state).not.toBe("running"));
  expect(await page.post("/api/run", { action: "start" })).toBe(200);
  // The stream is heard beside the answer.
  await state(page, "running");
  await eventually(() => expect(page.frames.at(-1)?.run).toBe(page.run?.id));
  return { ...running, out, page };
}

const state = (page: Page, wanted: RunDescription["state"]) => eventually(() => expect(page.run?.state).toBe(wanted));

describeLive("weir lab run --dashboard", () => {
  it("streams a run, changes it, writes that down, runs again, and leaves nothing", async () => {
    const { page, out, child, finished, nothingLeft } = await lab(["--duration", "600ms"]);
    expect(page.session).toMatchObject({ kind: "lab", name: "incast-4to1", scale: 40, duration_ns: 600e6 });
    expect(page.session.queues.map(({ name }) => name)).toEqual(["sw:r:3"]);
    // DCQCN is at work.
    await eventually(() => expect(page.count("mark")).toBeGreaterThan(0));
    // A page that comes now knows as much of the run as one that saw all of it.
    const late = await new Page(page.url).open();
    await eventually(() => expect(late.frames.length).toBeGreaterThan(0));
    const until = late.samples.at(-1)?.t_ns ?? 0;
    await eventually(() => expect(page.samples.at(-1)?.t_ns).toBeGreaterThanOrEqual(until));
    expect(late.samples[0]?.since_ns).toBe(page.samples[0]?.since_ns);
    expect(eventsUntil(late.samples, until)).toEqual(eventsUntil(page.samples, until));
    expect(await page.post("/api/parameters", { set: kUnmarked })).toBe(200);
    await eventually(() => expect(page.session.queues[0]).toMatchObject({ kmin: 900e6, kmax: 950e6 }));
    // Once it is in force, nothing is marked any more, rates rise, and PFC is what limits the queue.
    const unmarked = () => page.frames.slice(1 + page.frames.findLastIndex((frame) => page.count("mark", [frame]) > 0));
    await eventually(() => {
      expect(page.count("pfc", unmarked())).toBeGreaterThan(0);
      expect(Math.max(...unmarked().map(({ queues }) => queues.peak[0] ?? 0))).toBeGreaterThan(400_000);
    });
    await state(page, "complete");

    const complete = page.run as RunDescription;
    const frames = page.frames.filter(({ run }) => run === complete.id);
    expect(frames.map(({ t_ns }) => t_ns)).toEqual(frames.map(({ t_ns }) => t_ns).sort((a, b) => a - b));
    const rates = frames.map(({ flows }) => flows.rate);
    expect(rates.flat().every((rate) => rate === null || (rate > 0 && rate <= 4e9))).toBe(true);
    expect(rates.some((all) => all.length === 4 && !all.includes(null))).toBe(true);
    expect(frames.some(({ links }) => links.some(({ backward_bps }) => backward_bps > 1e8))).toBe(true);
    const kinds = new Set(page.frames.flatMap(({ events }) => events.map(({ kind }) => kind)));
    expect([...kinds]).toEqual(expect.arrayContaining(["mark", "cnp", "pfc"]));

    const result = JSON.parse(await (await fetch(`${page.url}/api/runs/${complete.id}`)).text());
    const at_s = expect.closeTo((complete.changes[0]?.t_ns ?? 0) / 1e9, 3);
    expect(result.changes).toEqual([{ at_s, set: kUnmarked }]);
    expect(Object.keys(result.series.flows)).toHaveLength(4);
    const own = complete.folder as string;
    expect(JSON.parse(readFileSync(join(own, "result.json"), "utf8")).changes).toEqual(result.changes);
    expect(readFileSync(join(own, "report.html"), "utf8")).toContain("Changed by hand while it ran");
    const folders = readdirSync(join(out, ".."));

    // Another run, stopped: it keeps what there was, if there was traffic.
    expect(await page.post("/api/run", { action: "start" })).toBe(200);
    await eventually(() => expect(page.frames.at(-1)?.run).toBe(complete.id + 1));
    expect(await page.post("/api/run", { action: "start" })).toBe(422);
    expect(await page.post("/api/run", { action: "stop" })).toBe(200);
    await state(page, "stopped");
    expect(page.run).toMatchObject({ id: complete.id + 1, set: expect.arrayContaining(kUnmarked), valid: null });

    // One more is under way when the process is asked to end.
    expect(await page.post("/api/run", { action: "start" })).toBe(200);
    await eventually(() => expect(page.frames.at(-1)?.run).toBe(complete.id + 2));
    child.kill("SIGINT");
    const { status, stdout, stderr } = await finished;
    expect(status, stderr).toBe(130);
    expect(stderr).toContain(`dashboard: ${page.url}/?token=`);
    // A document and a folder for each run that has something to keep, and nothing of the others.
    const kept = readdirSync(join(out, ".."));
    expect(kept).toEqual(expect.arrayContaining(folders));
    expect(kept.filter((name) => !/^out(-\d+)?$/.test(name))).toEqual([]);
    expect(stdout.match(/^\{$/gm)).toHaveLength(kept.length);
    await nothingLeft();
  });

  it("keeps planned changes of rates when parameters are changed beside them", async () => {
    const planned = ["--duration", "10s", "--set", "changes=[{at: 60ms, switch: sw, port: r, rate: 1Gbps}]"];
    const { page, child, finished, nothingLeft } = await lab(planned);
    const sent = () => page.frames.at(-1)?.links.at(-1)?.backward_bps ?? Number.POSITIVE_INFINITY;
    await eventually(() => expect(page.frames.length).toBeGreaterThan(2));
    expect(await page.post("/api/parameters", { set: ["switch.ecn.kmax=100KB"] })).toBe(200);
    await eventually(() => expect(page.frames.at(-1)?.t_ns).toBeGreaterThan(80e6));
    await eventually(() => expect(sent()).toBeLessThan(1.2e9));
    // Reaction points of queue pairs that send have it too: none falls below 800 Mb/s, which four on 1 Gb/s did before.
    await eventually(() => expect(page.frames.at(-1)?.flows.rate.some((rate) => (rate ?? 0) < 0.8e9)).toBe(true));
    const set = ["switch.ecn.kmax=120KB", "congestion.parameters.rpg_min_rate=800Mbps"];
    expect(await page.post("/api/parameters", { set })).toBe(200);
    const changed = page.frames.at(-1)?.t_ns ?? 0;
    await eventually(() => expect(page.frames.at(-1)?.t_ns).toBeGreaterThan(changed + 20e6));
    expect(sent()).toBeLessThan(1.2e9);
    await eventually(() =>
      expect(page.frames.at(-1)?.flows.rate.every((rate) => (rate ?? 0) >= 0.8e9 - 1e6)).toBe(true),
    );
    child.kill("SIGTERM");
    expect((await finished).status).toBe(143);
    await nothingLeft();
  });
});

describeOrdinaryUser("weir lab run --dashboard without root", () => {
  it("is reached from the host's network although the lab lives in another one", async () => {
    const { page, child, finished, nothingLeft } = await lab([], kOrdinaryUser);
    await eventually(() => expect(page.frames.at(-1)?.t_ns).toBeGreaterThan(0));
    child.kill("SIGINT");
    expect((await finished).status).toBe(130);
    await nothingLeft();
    await expect(fetch(page.url)).rejects.toThrow();
  });
});

describeLive("dashboards of daemons", () => {
  it("stream, and change parameters until the file is read again", async () => {
    const net = await network();
    const [port, nicPort] = [await freePort(), await freePort()];
    const token = "a-token-of-some-length";
    const { child, log, socket } = await startSwitch(net, {
      ports: [portOf(net, "a", "rate: 500Mbps"), portOf(net, "b", "rate: 200Mbps")],
      more: `ecn: { kmin: 20KB, kmax: 200KB, pmax: 10% }\ndashboard: { port: ${port} }\n`,
    });
    await startNic(net, "b", { pairs: ["qpn: 0x11"] });
    await startNic(net, "a", {
      pairs: ["send: {}"],
      more: `dashboard: { port: ${nicPort}, token: ${token} }\n`,
    });
    // Nobody looks on, and yet the past is known.
    const asked = async () => (await (await fetch(`http://127.0.0.1:${port}/api/session`)).json()) as Session;
    await eventually(async () => expect((await asked()).queues.map(({ name }) => name)).toContain("sw0:b:3"));
    // Users of the control socket may change parameters, and nobody else; nor does the log tell the token.
    const { dashboard } = await ask(socket, "status");
    const address = `http://127.0.0.1:${port}`;
    const own = new URL(dashboard ?? "").searchParams.get("token") ?? undefined;
    expect(own).toMatch(/^[0-9a-f]{32}$/);
    expect(log().find(({ msg }) => msg === "started")).toMatchObject({ dashboard: `${address}/` });
    expect(JSON.stringify(log())).not.toContain(own);
    const shown = await weir("show", "dashboard", "--socket", socket).finished;
    expect(shown).toMatchObject({ status: 0, stdout: `sw0: ${address}/?token=${own}\n` });
    expect(await new Page(address).post("/api/parameters", { set: ["ecn.kmin=1KB"] })).toBe(401);
    const page = await new Page(address, own).open();
    await eventually(() => expect(page.samples.length).toBeGreaterThan(0));
    const [first] = page.samples as [Sample];
    expect(first.t_ns - first.since_ns).toBeGreaterThan(900e6);
    expect(first.since_ns).toBeLessThan(1e9);
    await eventually(() => expect(page.session.queues.map(({ name }) => name)).toContain("sw0:b:3"));
    await eventually(() => expect(page.frames.some(({ links }) => (links[1]?.backward_bps ?? 0) > 1e7)).toBe(true));
    expect(await page.post("/api/parameters", { set: ["ecn.kmin=0", "ecn.kmax=1", "ecn.pmax=1"] })).toBe(200);
    const from = page.frames.length;
    await eventually(() => expect(page.count("mark", page.frames.slice(from))).toBeGreaterThan(0));
    expect(await page.post("/api/parameters", { set: ["ports.0.rate=1Gbps"] })).toBe(422);
    expect(log().at(-1)).toMatchObject({ set: ["ecn.kmin=0", "ecn.kmax=1", "ecn.pmax=1"] });

    const denied = await fetch(`http://127.0.0.1:${nicPort}/api/session`);
    expect(denied.status).toBe(401);
    const nic = await new Page(`http://127.0.0.1:${nicPort}`, token).open();
    await eventually(() => expect(nic.frames.some(({ flows }) => (flows.alpha[0] ?? 0) > 0)).toBe(true));
    expect(nic.session.flows).toEqual([{ id: "qp0", from: "roce-a", to: "peer", priority: 3 }]);

    child.kill("SIGHUP");
    await eventually(() => expect(page.session.queues.find(({ name }) => name === "sw0:b:3")?.kmin).toBe(20_000));
  });

  it("says whose port is taken and what to set", async () => {
    const port = await freePort();
    const taken = createServer().listen(port, "127.0.0.1");
    onTestFinished(() => void taken.close());
    const path = folder();
    const file = join(path, "sw.yaml");
    writeFileSync(
      file,
      `ports: [{ interface: lo }]\nmetrics: false\ncontrol: ${path}/s.sock\ndashboard: { port: ${port} }\n`,
    );
    const { status, stderr } = await weir("switch", "-c", file).finished;
    expect(status).toBe(1);
    expect(stderr).toContain(`error: dashboard: cannot listen at 127.0.0.1:${port}: the port is taken`);
    expect(stderr).toContain("hint: set dashboard.address and dashboard.port, or dashboard: false");
  });
});

it("has its page built, which these tests need", () => {
  expect(existsSync(join(kRoot, "dist/web/dashboard/index.html"))).toBe(true);
});

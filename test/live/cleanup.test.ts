/** However a run ends, no process, namespace, device or socket is left; and the status shows who ended it. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { runLab } from "../../src/clocks/lab/run.js";
import { controlSockets, kLabSuffix } from "../../src/device/control_client.js";
import { controlDirectory } from "../../src/host/control_directory.js";
import type { Result, Series } from "../../src/result/result.js";
import { loadScenario } from "../../src/scenario/scenario.js";
import { endWithTest } from "../end_with_test.js";
import { faultsOf } from "../fixtures/closed_schema.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser } from "./capability.js";
import { namespacesHeld } from "./processes.js";
import { folder, kIncast, labRun, start, sum } from "./weir.js";

/** A run that is long enough to be in the middle of it. */
const endless = (path: string) => [
  "lab",
  "run",
  kIncast,
  "--json",
  "--quiet",
  // The slower, the less CPU it takes from other tests.
  "--scale",
  "4000",
  "--duration",
  "10s",
  "--out",
  join(path, "out"),
];

describeLive("a run that is stopped", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s exits with %i, keeps what there was, and leaves nothing else", async (signal, status) => {
    const path = folder();
    const running = await start(endless(path));
    await running.untilTraffic();
    // Traffic begins a moment after its threads are there: the signal comes in the midst of it.
    await sleep(1500);
    running.child.kill(signal);
    const { stdout, ...ended } = await running.finished;
    expect(ended).toEqual({ status, signal: null, stderr: "" });
    await running.nothingLeft();
    const result = JSON.parse(stdout) as Result;
    expect(faultsOf(result)).toEqual([]);
    expect(result.fidelity.valid).toBe(false);
    expect(result.fidelity.reasons[0]).toMatch(new RegExp(`^ended by ${signal}, at [\\d.]+ \\w+ of 10 s$`));
    expect(result.until_s).toBeGreaterThan(0);
    expect(result.until_s).toBeLessThan(10);
    expect(sum(result.flows.map(({ packets }) => packets))).toBeGreaterThan(0);
    expect(JSON.parse(readFileSync(join(path, "out/result.json"), "utf8"))).toEqual(result);
    const { time_s } = JSON.parse(readFileSync(join(path, "out/series.json"), "utf8")) as Series;
    expect(time_s.at(-1)).toBeLessThanOrEqual(result.until_s as number);
    expect(existsSync(join(path, "out/report.html"))).toBe(true);
  });

  it("by a second SIGINT ends at once, and leaves nothing", async () => {
    const running = await start(endless(folder()));
    await running.untilTraffic();
    running.child.kill("SIGINT");
    running.child.kill("SIGINT");
    expect(await running.finished).toMatchObject({ status: 130, signal: null });
    await running.nothingLeft();
  });

  it("by SIGKILL leaves nothing either, but its socket until somebody looks for labs", async () => {
    const running = await start([...endless(folder()), "--set", "name=killed"]);
    await running.untilTraffic();
    running.child.kill("SIGKILL");
    expect(await running.finished).toMatchObject({ status: null, signal: "SIGKILL" });
    await running.nothingLeft();
    await eventually(async () => {
      expect(await controlSockets(controlDirectory())).not.toContain("killed.lab");
      expect(existsSync(join(controlDirectory(), `killed${kLabSuffix}`))).toBe(false);
    });
  });

  it("by a capture that cannot be written says so, exits with 1, and leaves nothing", async () => {
    const path = folder();
    const out = join(path, "out");
    const running = await start(["lab", "run", kIncast, "--quiet", "--out", out, "--capture", `r:${path}/none/r.pcap`]);
    const { status, stdout, stderr } = await running.finished;
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain(`${path}/none/r.pcap`);
    expect(stderr).toMatch(/^error: /);
    await running.nothingLeft();
    expect(existsSync(out)).toBe(false);
  });
});

describeLive("a capture that a full disk cuts short", () => {
  it("is told of on stderr, by its name, and in the result", async () => {
    const args = ["--capture", "r--sw:/dev/full", "--duration", "5ms", "--set", "warmup=1ms"];
    const { stderr, result } = await labRun(folder(), { args });
    expect(stderr).toBe("warning: the capture is cut short: /dev/full: No space left on device\n");
    expect(result.fidelity.capture_errors).toEqual(["/dev/full: No space left on device"]);
  });
});

describeLive("a run in a process that goes on", () => {
  it("by a capture that cannot be written any more leaves neither namespaces nor a socket", async () => {
    const path = folder();
    execFileSync("mkfifo", [join(path, "r.pcapng")]);
    const reader = spawn("head", ["-c", "1000", join(path, "r.pcapng")], { stdio: "ignore" });
    endWithTest(reader);
    const before = namespacesHeld();
    const name = `full-${process.pid}`;
    const { scenario } = loadScenario(kIncast, { set: [`name=${name}`, "duration=20ms", "warmup=2ms"] });
    const run = runLab(scenario, {
      capture: [{ target: "r", file: "r.pcapng" }],
      folder: path,
      control: { warn: () => {} },
      signal: new AbortController().signal,
    });
    await expect(run).rejects.toThrow(`cannot write ${path}/r.pcapng: EPIPE`);
    expect(namespacesHeld()).toEqual(before);
    expect(existsSync(`/run/weir/${name}.lab.sock`)).toBe(false);
  });
});

describeOrdinaryUser("a run without root", () => {
  it("gives a result that keeps the contract, and leaves nothing", async () => {
    const { result } = await labRun(folder(), {
      as: kOrdinaryUser,
      args: ["--duration", "20ms", "--set", "warmup=2ms"],
    });
    // Losses of a busy host are counted, and the run is not valid then.
    const { sent, received, dropped, missing } = result.frames;
    expect(received + dropped + missing).toBe(sent);
    expect(sum(result.flows.map((flow) => flow.lost))).toBeLessThanOrEqual(dropped + missing);
    if (result.fidelity.valid) expect(dropped + missing).toBe(0);
    // Rights that an ordinary user may not have are told, not hidden.
    expect(result.fidelity.tuning).toEqual(expect.arrayContaining([expect.stringContaining("nice")]));
  });

  it("keeps the text of a scenario that comes by a pipe, although two processes need it", async () => {
    const path = folder();
    const args = ["lab", "run", "/dev/stdin", "--quiet", "--duration", "5ms", "--set", "warmup=1ms"];
    const piped = [...kOrdinaryUser, "sh", "-c", `cat ${kIncast} | "$@"`, "sh"];
    const { finished, nothingLeft } = await start([...args, "--out", join(path, "out")], piped);
    const { status, stderr } = await finished;
    expect([0, 3], stderr).toContain(status);
    const { text } = JSON.parse(readFileSync(join(path, "out/scenario.json"), "utf8"));
    expect(text).toBe(readFileSync(kIncast, "utf8"));
    await nothingLeft();
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("passes %s on: exits with %i and leaves nothing", async (signal, status) => {
    const running = await start(endless(folder()), kOrdinaryUser);
    await running.untilTraffic();
    running.child.kill(signal);
    expect(await running.finished).toMatchObject({ status, signal: null });
    await running.nothingLeft();
  });

  it("takes its child along when it is killed", async () => {
    const running = await start(endless(folder()), kOrdinaryUser);
    await running.untilTraffic();
    running.child.kill("SIGKILL");
    expect(await running.finished).toMatchObject({ status: null, signal: "SIGKILL" });
    await running.nothingLeft();
  });
});

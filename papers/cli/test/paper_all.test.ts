/** `weir paper all` as real processes: its report, going on where it ended, and its end by a signal. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { weir } from "../../../test/cli/harness.js";
import { kMain } from "../../../test/command.js";
import { kPatienceMs } from "../../../test/limits.js";
import { kTestMarker, markedProcesses } from "../../../test/live/processes.js";
import { nativeObstacle, skipWhere } from "../../../test/obstacles.js";
import { eventually } from "../../../test/patience.js";
import type { Summary } from "../../engine/all/summary.js";
import type { PaperDocument } from "../../engine/document.js";

skipWhere(nativeObstacle());

const root = mkdtempSync(join(tmpdir(), "weir-paper-all-cli-"));
afterAll(() => rmSync(root, { recursive: true }));

const kCommand = [kMain, "paper", "all"];
/** Two models that take no time, and simulations that take many seconds. */
const kQuick = "qcn-shu-fig3,qcn-shu-fig4";
const kSlow = "qcn-shu-fig10";

const call = (out: string, ...args: string[]) =>
  spawnSync(process.execPath, [...kCommand, "--out", out, ...args], { encoding: "utf8", timeout: kPatienceMs });
const json = <T>(...path: string[]) => JSON.parse(readFileSync(join(...path), "utf8")) as T;

describe("weir paper all", () => {
  it("makes one report, and does not run again what is complete", () => {
    const out = join(root, "resumed");
    const first = call(out, "--only", kQuick);
    expect(first).toMatchObject({ status: 0 });
    expect(first.stderr).toContain("2 experiments: 2 to run; results in");
    expect(first.stderr).toMatch(/qcn-shu-fig3: done, .*of 2 done/);
    expect(first.stdout).toContain(`report: ${join(out, "report.html")}`);
    const page = readFileSync(join(out, "report.html"), "utf8");
    for (const id of kQuick.split(",")) expect(page).toContain(`<section class="experiment" id="${id}">`);
    expect(page).not.toMatch(/(?:src|href)="https?:/);
    expect(readdirSync(out).sort()).toEqual([...kQuick.split(","), "report.html", "report.md", "summary.json"]);
    const summary = json<Summary>(out, "summary.json");
    expect(summary).toMatchObject({ complete: true, options: { clocks: ["sim", "model"], seed: null } });

    const made = (id: string) => json<PaperDocument>(out, id, "paper.json").made?.at;
    const before = made("qcn-shu-fig3");
    const second = call(out, "--only", kQuick, "--json");
    expect(second).toMatchObject({ status: 0 });
    expect(second.stderr).toBe(`2 experiments: 0 to run, 2 complete before; results in ${out}\n`);
    expect((JSON.parse(second.stdout) as Summary).experiments.every(({ reused }) => reused)).toBe(true);
    expect(made("qcn-shu-fig3")).toBe(before);

    const third = call(out, "--only", "qcn-shu-fig3", "--fresh", "--quiet");
    expect(third).toMatchObject({ status: 0, stderr: "" });
    expect(made("qcn-shu-fig3")).not.toBe(before);
  });

  it("takes what weir paper ID has made in the same place", async () => {
    const out = join(root, "single");
    expect((await weir(["paper", "qcn-shu-fig3", "--quiet", "--out", join(out, "qcn-shu-fig3")])).status).toBe(0);
    const all = await weir(["paper", "all", "--only", "qcn-shu-fig3", "--out", out]);
    expect(all.status).toBe(0);
    expect(all.stderr).toContain("1 experiment: 0 to run, 1 complete before");
  });

  it("asks for rights before it runs on the wire", async () => {
    const out = join(root, "wire");
    const argv = ["paper", "all", "--only", "qcn-netfpga-fig8", "--on", "wire", "--out", out];
    expect((await weir(argv, undefined, 77)).status).toBe(77);
    expect(existsSync(out)).toBe(false);
  });

  it("tells bad usage", async () => {
    for (const [argv, message] of [
      [["--only", "qcn-shu-fig33"], "did you mean qcn-shu-fig3?"],
      [["--only", "qcn-shu-fig3", "--on", "sim"], "none of the experiments runs on sim"],
      [["--on", "ns3"], "no clock ns3"],
      [["--jobs", "0"], "--jobs 0: not a number from 1 to 1024"],
      [["--reference", join(root, "nowhere")], "nowhere: no such folder"],
      [["qcn-shu-fig3"], "too many arguments"],
    ] as const) {
      const ran = await weir(["paper", "all", "--out", join(root, "bad"), ...argv]);
      expect(ran.status, message).toBe(2);
      expect(ran.stderr).toContain(message);
    }
    expect(existsSync(join(root, "bad"))).toBe(false);
  });
});

describe("weir paper all that is ended", () => {
  function start(out: string) {
    const marker = randomUUID();
    const child: ChildProcess = spawn(
      process.execPath,
      [...kCommand, "--out", out, "--only", `qcn-shu-fig3,${kSlow}`, "--jobs", "2"],
      { stdio: "ignore", env: { ...process.env, [kTestMarker]: marker } },
    );
    onTestFinished(() => void child.kill("SIGKILL"));
    const underWay = () =>
      eventually(() => {
        expect(existsSync(join(out, "qcn-shu-fig3", "paper.json"))).toBe(true);
        expect(existsSync(join(out, kSlow, "sim"))).toBe(true);
      });
    const nobodyLeft = () => eventually(() => expect(markedProcesses(marker)).toEqual([]));
    const ended = new Promise((resolve) => child.on("exit", resolve));
    return { child, underWay, nobodyLeft, ended };
  }

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s keeps what is complete, says what is missing, and exits with %i", async (signal, status) => {
    const out = join(root, signal);
    const { child, underWay, nobodyLeft, ended } = start(out);
    await underWay();
    child.kill(signal);
    expect(await ended).toBe(status);
    await nobodyLeft();
    expect(readdirSync(out).sort()).toEqual(["qcn-shu-fig3", "report.html", "report.md", "summary.json"]);
    const { complete, experiments } = json<Summary>(out, "summary.json");
    expect(complete).toBe(false);
    expect(experiments.map(({ id, state }) => [id, state])).toEqual([
      ["qcn-shu-fig3", "complete"],
      [kSlow, "not run"],
    ]);
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain(`<li>${kSlow}: not run</li>`);
  });

  it("by SIGKILL leaves no process, and is resumed", async () => {
    const out = join(root, "SIGKILL");
    const { child, underWay, nobodyLeft } = start(out);
    await underWay();
    child.kill("SIGKILL");
    await nobodyLeft();
    expect(existsSync(join(out, kSlow, "paper.json"))).toBe(false);
    const resumed = call(out, "--only", "qcn-shu-fig3");
    expect(resumed).toMatchObject({ status: 0 });
    expect(resumed.stderr).toContain("1 experiment: 0 to run, 1 complete before");
  });
});

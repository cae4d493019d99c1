import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type FakeSim, finishedLab, weir } from "../../../test/cli/harness.js";
import { fakeOutcome, invalid } from "../../engine/test/fakes.js";

const directory = mkdtempSync(join(tmpdir(), "weir-paper-cli-"));
afterAll(() => rmSync(directory, { recursive: true }));
const out = (name: string) => ["--out", join(directory, name)];

const finished: FakeSim = async () => fakeOutcome({ clock: "sim" });

describe("weir paper list", () => {
  it("shows every experiment with its paper, figure, clocks and time", async () => {
    const { status, stdout } = await weir(["paper", "list"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Kabbani and Yasuda\nqcn-netfpga-fig8 +wire 2 min, sim 2 s\n {4}figure 8: queue and/m);
    expect(stdout).toMatch(/^Shu et al\.\n(?:.+\n)*qcn-shu-fig3 +model 1 s\n {4}figure 3: /m);
    for (const line of stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80);
  });

  it("is JSON on request", async () => {
    const { stdout } = await weir(["paper", "list", "--json"]);
    const list = JSON.parse(stdout) as { id: string; clocks: string[]; seconds: Record<string, number> }[];
    expect(list.find(({ id }) => id === "qcn-shu-fig5")).toMatchObject({
      paper: "Shu et al.",
      place: "figure 5",
      clocks: ["wire", "sim", "model"],
      seconds: { wire: 200 },
    });
  });
});

describe("weir paper ID", () => {
  it("runs the model, prints statements with verdicts, and leaves a report", async () => {
    const { status, stdout } = await weir(["paper", "qcn-shu-fig4", "--quiet", ...out("fig4")]);
    // A statement that falls short is a result, no failure.
    expect(status).toBe(0);
    expect(stdout).toContain('2. "Given a determined byte threshold');
    expect(stdout).toMatch(/ {3}model {2}holds {8}time on 10 Gb\/s/);
    expect(stdout).toContain(`report: ${join(directory, "fig4", "report.html")}`);
    for (const name of ["report.html", "report.md", "figure.svg", "paper.json"]) {
      expect(existsSync(join(directory, "fig4", name)), name).toBe(true);
    }
  });

  it("prints one JSON document on request, and nothing else", async () => {
    const { stdout } = await weir(["paper", "qcn-shu-fig3", "--json", "--on", "model", ...out("json")]);
    expect(JSON.parse(stdout)).toMatchObject({ experiment: "qcn-shu-fig3", complete: true });
  });

  it("leaves the wire out unless asked for, and asks for rights before it runs there", async () => {
    const virtual = await weir(
      ["paper", "qcn-netfpga-fig8", "--json", "--quiet", ...out("sim")],
      finishedLab,
      77,
      finished,
    );
    expect((JSON.parse(virtual.stdout) as { clocks: string[] }).clocks).toEqual(["sim"]);
    const real = ["paper", "qcn-netfpga-fig8", "--on", "wire", "--quiet", ...out("wire")];
    expect((await weir(real, finishedLab, 77, finished)).status).toBe(77);
  });

  it("exits with 3 when a run is invalid", async () => {
    const late: FakeSim = async () => fakeOutcome(invalid("the host was late"));
    const ran = await weir(["paper", "qcn-netfpga-fig8", "--quiet", ...out("late")], finishedLab, undefined, late);
    expect(ran.status).toBe(3);
    expect(ran.stdout).toContain("INVALID (the host was late)");
  });

  it("exits with the signal's status when stopped, with what was done until then", async () => {
    const stopped: FakeSim = async (_options, signals) => {
      signals.emit("SIGINT", "SIGINT");
      return fakeOutcome({ until_s: 1, ...invalid("stopped at 1 s of 20 s") });
    };
    const ran = await weir(
      ["paper", "qcn-shu-fig12", "--jobs", "1", ...out("stopped")],
      finishedLab,
      undefined,
      stopped,
    );
    expect(ran.status).toBe(130);
    expect(ran.stdout).toContain("INCOMPLETE (stopped)");
    expect(ran.stdout).toContain("sim, qcn-t-seed1: seed 1, INCOMPLETE (not run)");
    expect(ran.stderr).toContain("SIGINT: stopping");
  });

  it("tells bad usage", async () => {
    const unknown = await weir(["paper", "qcn-shu-fig55"]);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toContain("no experiment qcn-shu-fig55");
    expect(unknown.stderr).toContain("did you mean qcn-shu-fig5?");
    for (const [argv, message] of [
      [["qcn-shu-fig3", "--on", "sim"], "qcn-shu-fig3 does not run on sim"],
      [["qcn-shu-fig3", "--on", "ns3"], "no clock ns3"],
      [["qcn-shu-fig3", "--seed", "x"], "--seed x: not a number from 0 to 4294967295"],
      [["qcn-shu-fig3", "--reference", join(directory, "nowhere")], "nowhere: no such folder"],
      [["qcn-shu-fig3", "--scale", "0.5"], "--scale 0.5: not a number from 1 on"],
    ] as const) {
      const ran = await weir(["paper", ...argv]);
      expect(ran.status, message).toBe(2);
      expect(ran.stderr).toContain(message);
    }
  });
});

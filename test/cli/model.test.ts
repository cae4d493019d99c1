/** `weir model`: what it prints, what it leaves, and what it refuses. */
import { EventEmitter } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { weir as run } from "./harness.js";

const kIncast = fileURLToPath(new URL("./fixtures/incast.yaml", import.meta.url));
const folder = () => join(mkdtempSync(join(tmpdir(), "weir-")), "out");
const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), "utf8"));
const weir = (...argv: string[]) => run(["model", ...argv]);

describe("weir model run", () => {
  it("prints tables, and leaves the files of a run", async () => {
    const out = folder();
    const { status, stdout, stderr } = await weir("run", kIncast, "--out", out, "--series-format", "csv");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("incast: model, seed 1, 0.1 s, profile paper-sigcomm15, path MTU 1024\n");
    expect(stdout).toContain("fidelity: valid, equations\n");
    expect(stdout.endsWith(`\nreport: ${join(out, "report.html")}\n`)).toBe(true);
    expect(readdirSync(out).sort()).toEqual([
      "cnps.csv",
      "flows.csv",
      "marks.csv",
      "queues.csv",
      "report.html",
      "result.json",
      "scenario.json",
      "series.json",
    ]);
    expect(json(out, "result.json")).toMatchObject({ clock: "model", model: { delay_us: 54 } });
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("fluid equations");
  });

  it("prints one JSON document, with overrides and the series on request", async () => {
    const out = folder();
    const options = ["--json", "--series", "--quiet", "--duration", "20ms", "--delay", "50us", "--set", "warmup=1ms"];
    const { stdout } = await weir("run", kIncast, "--out", out, ...options);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ duration_s: 0.02, warmup_s: 0.001, model: { delay_us: 50 } });
    expect(result.series.time_s).toHaveLength(201);
    expect(json(out, "scenario.json")).toMatchObject({ set: ["warmup=1ms", "duration=20ms"] });
  });

  it("compares with another run", async () => {
    const [one, other] = [folder(), folder()];
    await weir("run", kIncast, "--out", one);
    await weir("run", kIncast, "--out", other, "--delay", "60us");
    const { status, stdout } = await run([
      "compare",
      one,
      other,
      "--labels",
      "54,60",
      "--max-difference",
      "goodput=1%",
    ]);
    expect(status).toBe(0);
    expect(stdout).toContain("sw:r:3");
  });

  it("refuses what the equations cannot describe, and leaves nothing", async () => {
    const out = folder();
    const { status, stderr } = await weir("run", kIncast, "--out", out, "--set", "congestion.profile=mlx5");
    expect(status).toBe(2);
    expect(stderr).toBe(
      "error: the fluid model cannot take scenario incast: congestion.profile: mlx5 has the slotted form; the equations are those of the paper's\n" +
        "  hint: use paper-sigcomm15 or ns3-rdma\n",
    );
    expect(existsSync(out)).toBe(false);
  });
});

describe("weir model fixed-point", () => {
  it("prints the five figures as JSON", async () => {
    const options = ["--flows", "8", "--rate", "40Gbps", "--mtu", "1500", "--profile", "paper-sigcomm15", "--json"];
    const { status, stdout } = await weir("fixed-point", ...options);
    expect(status).toBe(0);
    const point = JSON.parse(stdout);
    expect(Object.keys(point)).toEqual(["p", "alpha", "rate_bps", "target_rate_bps", "queue_bytes"]);
    expect(point).toMatchObject({
      rate_bps: 5e9,
      p: expect.closeTo(0.00681625, 8),
      queue_bytes: expect.closeTo(137_917, 0),
    });
  });

  it("has null for a queue that there is not", async () => {
    expect(JSON.parse((await weir("fixed-point", "--flows", "64", "--json")).stdout).queue_bytes).toBeNull();
    expect((await weir("fixed-point", "--flows", "64")).stdout).toContain("none");
    expect((await weir("fixed-point", "--flows", "2", "--kmin", "40KB", "--kmax", "40KB", "--json")).stdout).toContain(
      '"queue_bytes": null',
    );
  });

  it("warns of a target that no flow reaches", async () => {
    expect((await weir("fixed-point", "--flows", "1")).stderr).toContain(
      "warning: the target rate is above the link's",
    );
    expect((await weir("fixed-point", "--flows", "2")).stderr).toBe("");
  });

  it("takes parameters by their mlx5 names", async () => {
    const p = async (...set: string[]) =>
      JSON.parse((await weir("fixed-point", "--flows", "2", "--json", ...set.flatMap((one) => ["--set", one]))).stdout)
        .p;
    expect(await p("rpg_time_reset=110us")).toBeLessThan(await p());
    expect(await p("rpg_time_reset=55", "rp_ai_rate=40")).toBe(await p());
  });

  const bad: [string[], RegExp][] = [
    [["--flows", "0"], /--flows 0: not a number from 1 to 1000000/],
    [["--flows", "2", "--rate", "40"], /no unit/],
    [["--flows", "2", "--rate", "1kbps"], /--rate 1kbps: out of range\n {2}hint: must be 1 Mb\/s to 10 Tb\/s/],
    [["--flows", "2", "--mtu", "9"], /--mtu 9: not a number from 64 to 65535/],
    [["--flows", "2", "--pmax", "0%"], /--pmax 0%: out of range\n {2}hint: must be more than 0/],
    [["--flows", "2", "--kmin", "300KB"], /--kmin 300 KB is more than --kmax 200 KB/],
    [["--flows", "2", "--profile", "x"], /--profile x: unknown\n {2}hint: use one of paper-sigcomm15/],
    [["--flows", "2", "--profile", "otg"], /otg has the slotted form/],
    [["--flows", "2", "--set", "rpg_x=1"], /rpg_x: unknown field/],
    [
      ["--flows", "2", "--set", "rpg_time_reset=1ns"],
      /rpg_time_reset: 1ns is out of range\n {2}hint: must be 1 us to 10 s/,
    ],
    [["--flows", "2", "--set", "rpg_gd"], /--set rpg_gd: no value/],
    [[], /required option '--flows <n>'/],
  ];
  it.each(bad)("refuses %s", async (options, message) => {
    const { status, stderr, stdout } = await weir("fixed-point", ...options);
    expect(stderr).toMatch(message);
    expect([status, stdout]).toEqual([2, ""]);
  });
});

describe("weir model stability", () => {
  it("has a row for each combination", async () => {
    const options = ["--flows", "2,8", "--delay", "4us, 85us", "--g", "1/256,1/16", "--ai-rate", "40Mbps"];
    const { status, stdout } = await weir("stability", ...options, "--json");
    expect(status).toBe(0);
    const rows = JSON.parse(stdout);
    expect(rows).toHaveLength(8);
    expect(rows[0]).toMatchObject({ flows: 2, delay_us: 4, g: 1 / 256, ai_rate_bps: 40e6, stable: true });
    expect(rows[5]).toMatchObject({ flows: 8, delay_us: 85, g: 1 / 256, stable: false });
    expect(rows[5].phase_margin_deg).toBeLessThan(0);
  });

  it("prints a table, with dashes where there is nothing to be stable", async () => {
    const { stdout } = await weir("stability", "--flows", "2,8,64", "--delay", "85us");
    expect(stdout).toMatch(/^ +2 +85 us .* yes /m);
    expect(stdout).toMatch(/^ +8 +85 us .* NO /m);
    expect(stdout).toMatch(/^ +64 +85 us .* none +- /m);
  });

  it("refuses a part that is none", async () => {
    expect(await weir("stability", "--flows", "2", "--g", "1/0")).toMatchObject({ status: 2 });
    expect((await weir("stability", "--flows", "2,x")).stderr).toContain("--flows x: not a number");
  });
});

describe("weir model sweep", () => {
  it("is gone: what draws its figures is said", async () => {
    const { status, stderr } = await weir("sweep", "timer", "--json");
    expect(status).toBe(2);
    expect(stderr).toContain("  hint: weir paper dcqcn-fig11, or weir paper dcqcn-fig12\n");
    expect((await weir("--help")).stdout).toContain("weir paper dcqcn-fig11, weir paper dcqcn-fig12\n");
  });
});

describe("Ctrl-C", () => {
  const interrupted = (...argv: string[]) => {
    const signals = new EventEmitter();
    // The first turn of the event loop after the first piece of work.
    setTimeout(() => signals.emit("SIGINT", "SIGINT"), 1);
    return run(["model", ...argv], undefined, undefined, undefined, signals);
  };

  it("ends a run where it is, with its results", async () => {
    const out = folder();
    const { status, stderr } = await interrupted("run", kIncast, "--out", out, "--duration", "20s");
    expect(status).toBe(130);
    expect(stderr).toContain("SIGINT: stopping; once more to quit at once\n");
    const result = json(out, "result.json");
    expect(result.fidelity.valid).toBe(false);
    expect(result.until_s).toBeLessThan(20);
  });
});

describe("help", () => {
  it.each(["run", "fixed-point", "stability"])("%s has examples", async (verb) => {
    const { status, stdout } = await weir(verb, "--help");
    expect(status).toBe(0);
    expect(stdout).toContain("Examples:");
  });
});

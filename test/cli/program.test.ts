import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { weir } from "./harness.js";

const kIncast = fileURLToPath(new URL("./fixtures/incast.yaml", import.meta.url));

describe("weir", () => {
  it("prints its version", async () => {
    expect(await weir(["--version"])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      stderr: "",
    });
  });

  it.each([
    [[]],
    [["lab"]],
    [["lab", "run"]],
    [["validate"]],
    [["--nonsense"]],
    [["lab", "run", "a.yaml", "--sede", "1"]],
  ])("takes %j for bad usage", async (argv) => {
    const { status, stdout, stderr } = await weir(argv);
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/Usage:|error: /);
  });

  it.each(["version", "-v"])("prints it for %s, too", async (asked) => {
    expect(await weir([asked])).toEqual(await weir(["--version"]));
  });

  it.each([
    ["x.yml", "weir lab run x.yml, or weir sim run x.yml"],
    ["lab x.yaml --json", "weir lab run x.yaml"],
    ["sim x.json", "weir sim run x.json"],
    ["model x.yaml", "weir model run x.yaml"],
    ["plan x.yaml", "weir plan check x.yaml"],
  ])("tells who writes weir %s how a scenario is run", async (line, hint) => {
    const { status, stdout, stderr } = await weir(line.split(" "));
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^error: unknown command '[\w.]+'\n/);
    expect(stderr).toContain(`\n  hint: ${hint}\n`);
  });

  it.each([
    ["run x.yaml", "x.yaml is no program", "weir lab run x.yaml, or weir sim run x.yaml"],
    ["run", "no program to run", "weir run -- ibv_devices; a scenario: weir lab run FILE, or weir sim run FILE"],
  ])("tells who writes weir %s what that runs", async (line, error, hint) => {
    const { status, stderr } = await weir(line.split(" "));
    expect(status).toBe(2);
    expect(stderr).toContain(`error: ${error}\n  hint: ${hint}\n`);
  });

  it.each([["vaildate x.yaml"], ["sweep x.yaml"], ["lab start"]])("has no such hint for weir %s", async (line) => {
    const { status, stderr } = await weir(line.split(" "));
    expect(status).toBe(2);
    expect(stderr).not.toContain("hint:");
  });

  it("suggests the verb that was meant", async () => {
    const { status, stderr } = await weir(["vaildate", "x.yaml"]);
    expect(status).toBe(2);
    expect(stderr).toContain("error: unknown command 'vaildate'\n(Did you mean validate?)");
  });

  it.each([["lab run"], ["validate"], ["schema"], ["profiles"], ["report"]])("helps with %s", async (verb) => {
    const { status, stdout, stderr } = await weir([...verb.split(" "), "--help"]);
    expect(status).toBe(0);
    expect(stderr).toBe("");
    expect(stdout).toContain(`Usage: weir ${verb}`);
  });

  it("shows examples and exit statuses in its help", async () => {
    const { stdout } = await weir(["--help"]);
    expect(stdout).toContain("weir lab run incast.yaml");
    expect(stdout).toContain("Exit status: 0 ok");
  });
});

describe("weir validate", () => {
  it("says ok and what the scenario comes to", async () => {
    const { status, stdout, stderr } = await weir(["validate", kIncast]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(
      `${kIncast}: ok: 3 hosts, 1 switch, 3 links, 2 flows, 100 ms at scale 40, congestion control paper-sigcomm15\n`,
    );
  });

  it("takes overrides, and prints one JSON document", async () => {
    const { stdout } = await weir([
      "validate",
      kIncast,
      "--json",
      "--set",
      "scale=80",
      "--set",
      "congestion.profile=mlx5",
    ]);
    expect(JSON.parse(stdout)).toMatchObject([
      { file: kIncast, hosts: 3, flows: 2, scale: 80, profile: "mlx5", warnings: [] },
    ]);
  });

  it("names the field of a bad scenario, looks at all files and gives status 2", async () => {
    const bad = join(mkdtempSync(join(tmpdir(), "weir-")), "bad.yaml");
    writeFileSync(bad, "name: bad\ntopology: 7\n");
    const { status, stdout, stderr } = await weir(["validate", bad, "nosuch.yaml", kIncast]);
    expect(status).toBe(2);
    expect(stderr).toContain(`error: scenario ${bad}`);
    expect(stderr).toContain("error: scenario nosuch.yaml: no such file");
    expect(stdout).toContain(`${kIncast}: ok`);
  });

  it("keeps stdout empty for errors with --json", async () => {
    const { status, stdout, stderr } = await weir(["validate", kIncast, "--json", "--set", "switch.ecn.kmin=300KB"]);
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^error: scenario .*switch\.ecn\.kmin: 300 ?KB is greater than kmax 200 ?KB\n {2}hint: /);
  });
});

describe("weir profiles", () => {
  it("lists every profile with the source of every value", async () => {
    const { stdout } = await weir(["profiles"]);
    expect(stdout).toMatch(/^paper-sigcomm15: /);
    expect(stdout).toMatch(/^rpg_time_reset +55us +paper figure 14$/m);
    expect(stdout).toMatch(/^mlx5: /m);
    expect(stdout).toMatch(/^netfpga: .* \(QCN\)$/m);
    expect(stdout).toMatch(/^rpgTimeReset +25ms +Kabbani and Yasuda section 3\.2: timer$/m);
  });

  it("gives the same as JSON", async () => {
    const profiles = JSON.parse((await weir(["profiles", "--json"])).stdout);
    const dcqcn = ["paper-sigcomm15", "mlx5", "mellanox-overview", "ns3-rdma", "hpcc-ns3", "otg"];
    const others = ["802.1qau", "netfpga", "shu", "timely-sigcomm15", "timely-snippet"];
    expect(Object.keys(profiles)).toEqual([...dcqcn, ...others]);
    expect(profiles["802.1qau"]).toMatchObject({
      algorithm: "qcn",
      parameters: { rpgGd: [7, "IEEE8021-CN-MIB default: G_d = 1/128"] },
    });
    expect(profiles["paper-sigcomm15"].parameters.rpg_time_reset).toEqual(["55us", "paper figure 14"]);
  });
});

describe("weir schema", () => {
  it.each(["scenario", "result"])("prints the JSON Schema of a %s", async (name) => {
    const { status, stdout } = await weir(["schema", name]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ $schema: expect.stringContaining("json-schema.org"), type: "object" });
  });

  it("lists them without a name", async () => {
    const { status, stdout } = await weir(["schema"]);
    expect(status).toBe(0);
    expect(stdout.match(/^weir schema (scenario|result|sweep|switch|nic) +\w/gm)).toHaveLength(5);
  });

  it("knows no others", async () => {
    expect(await weir(["schema", "../package"])).toMatchObject({ status: 2, stdout: "" });
  });
});

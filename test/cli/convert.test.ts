import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadScenario, parseScenarioText } from "../../src/scenario/scenario.js";
import { weir } from "./harness.js";

const kTopology = "5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 100Gbps 1us 0.01\n3 4 400Gbps 2us 0\n";
const kFlows = "3\n0 2 3 100 200000 2\n1 2 3 100 3000000000 2.001\n2 0 5 100 1000 2\n";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-convert-"));
  writeFileSync(join(path, "net.txt"), kTopology);
  writeFileSync(join(path, "flow.txt"), kFlows);
  return path;
}

describe("weir convert hpcc", () => {
  it("writes a scenario to stdout, with its flows, and what it does not say to stderr", async () => {
    const at = folder();
    const { status, stdout, stderr } = await weir([
      ...["convert", "hpcc", join(at, "net.txt"), "--flows", join(at, "flow.txt")],
    ]);
    expect(status).toBe(0);
    const { scenario, warnings } = parseScenarioText(stdout);
    expect(warnings).toEqual([]);
    expect(scenario.hosts.map(({ name }) => name)).toEqual(["h0", "h1", "h2"]);
    expect(scenario.links[2]).toMatchObject({ from: "h2", to: "s4", rate: 100e9, impairment: { loss: 0.01 } });
    expect(scenario.links[3]).toMatchObject({ from: "s3", to: "s4", rate: 400e9, delay: 2000 });
    expect(scenario.flows.map(({ from, to, priority, bytes, start }) => [from, to, priority, bytes, start])).toEqual([
      ["h0", "h2", 3, 200_000, 0],
      ["h1", "h2", 3, 3e9, 1e6],
      ["h2", "h0", 5, 1000, 0],
    ]);
    expect(scenario.switches[0]?.buffer.automatic).toBe(true);
    expect(scenario.switches[0]?.pfc.priorities).toEqual([3, 5]);
    // 3 GB at 100 Gb/s take 240 ms.
    expect(scenario.duration).toBeGreaterThan(240e6);
    expect(stderr).toMatch(/^note: the error rate of 1 link is impairment\.loss/m);
    expect(stderr).toMatch(/^note: times count from the first flow, which starts at 2 s/m);
    expect(readdirSync(at).sort()).toEqual(["flow.txt", "net.txt"]);
  });

  it("writes the same to files, a list for each priority, and never over others unless told to", async () => {
    const at = folder();
    const output = join(at, "my net.yaml");
    const convert = (...more: string[]) =>
      weir(["convert", "hpcc", join(at, "net.txt"), "--flows", join(at, "flow.txt"), "-o", output, ...more]);
    const { status, stdout } = await convert();
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${output}\n` });
    expect(readdirSync(at).sort()).toEqual([
      ...["flow.txt", "my net.flows-3.csv", "my net.flows-5.csv", "my net.yaml", "net.txt"],
    ]);
    const { scenario } = loadScenario(output);
    expect(scenario.flows.map(({ from, to, priority, bytes, start }) => [from, to, priority, bytes, start])).toEqual([
      ["h0", "h2", 3, 200_000, 0],
      ["h1", "h2", 3, 3e9, 1e6],
      ["h2", "h0", 5, 1000, 0],
    ]);
    writeFileSync(output, "mine");
    const again = await convert();
    expect(again.status).toBe(2);
    expect(again.stderr).toMatch(/^error: --output: .*my net\.flows-3\.csv is there\n {2}hint: .*--force/);
    expect(readFileSync(output, "utf8")).toBe("mine");
    expect((await convert("--force")).status).toBe(0);
    expect(readFileSync(output, "utf8")).toContain("headroom: auto");
  });

  it("has memory for the headroom of its links, however long they are", async () => {
    const at = folder();
    writeFileSync(join(at, "net.txt"), kTopology.replace(/2us/, "1ms"));
    const { stdout } = await weir(["convert", "hpcc", join(at, "net.txt")]);
    const [s3] = parseScenarioText(stdout).scenario.switches;
    expect(s3?.buffer.headroom).toBeGreaterThan(100e6);
    expect(s3?.buffer.total).toBeGreaterThan(8 * 100e6 + 32e6);
  });

  it("says where flows are too many for a scenario, which a list is not", async () => {
    const at = folder();
    writeFileSync(join(at, "flow.txt"), `20000\n${"0 1 3 100 1000 0\n".repeat(20_000)}`);
    const argv = ["convert", "hpcc", join(at, "net.txt"), "--flows", join(at, "flow.txt")];
    const { status, stdout, stderr } = await weir(argv);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^error: the scenario would have \d+ bytes; the limit is 1048576\n {2}hint: with --output/);
    expect((await weir([...argv, "-o", join(at, "made.yaml")])).status).toBe(0);
    expect(loadScenario(join(at, "made.yaml")).scenario.flows).toHaveLength(20_000);
  });

  it("weir validate says what headroom its links have", async () => {
    const at = folder();
    const made = join(at, "made.yaml");
    await weir(["convert", "hpcc", join(at, "net.txt"), "-o", made]);
    expect((await weir(["validate", made])).stdout).toMatch(
      /, headroom 54\.866 KB on 3 ports of 100 Gb\/s, 1 us, MTU 1500, headroom 262\.57 KB on 2 ports of 400 Gb\/s, 2 us, MTU 1500\n$/,
    );
    const [{ headroom }] = JSON.parse((await weir(["validate", made, "--json"])).stdout);
    expect(headroom[0]).toMatchObject({ rate_bps: 100e9, delay_ns: 1000, mtu: 1500, headroom_bytes: 54_866, ports: 3 });
    const plain = JSON.parse((await weir(["validate", made, "--json", "--set", "switch.buffer.headroom=1MB"])).stdout);
    expect(plain[0]).not.toHaveProperty("headroom");
  });

  it.each([
    [["net.txt", "--flows", "missing.txt"], /^error: file \S+missing\.txt: no such file/],
    [["flow.txt"], /^error: \S+flow\.txt:1: 1 columns in the first line/],
    [["net.txt", "--flows", "net.txt"], /^error: \S+net\.txt:1: 3 columns in the first line/],
    [["net.txt", "--force"], /^error: --force: not without --output/],
  ])("refuses %j", async (argv, message) => {
    const at = folder();
    const { status, stdout, stderr } = await weir([
      ...["convert", "hpcc"],
      ...argv.map((word) => (word.endsWith(".txt") ? join(at, word) : word)),
    ]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });
});

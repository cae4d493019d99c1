import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { weir } from "./harness.js";

const kExample = "examples/sonic/config_db.json";

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "weir-sonic-")), "config_db.json");
  writeFileSync(path, text);
  return path;
}

describe("weir switch --sonic --print", () => {
  it("is a switch.yaml on stdout, and what becomes of the tables on stderr", async () => {
    const { status, stdout, stderr } = await weir([
      "switch",
      "--sonic",
      kExample,
      "--map",
      "Ethernet0=a,Ethernet4=b",
      "--print",
    ]);
    expect(status).toBe(0);
    expect(parse(stdout)).toMatchObject({ name: "leaf1", ports: [{ interface: "a" }, { interface: "b" }] });
    expect(stderr).toMatch(/^used: .*WRED_PROFILE \(1\)/m);
    expect(stderr).toMatch(/^differs: WRED_PROFILE\|ROCE: /m);
    expect(stderr).toMatch(/^ignored: PORT\|Ethernet0 and 3 more\|lanes,fec: /m);
  });

  it("is one document with --json", async () => {
    const { stdout } = await weir(["switch", "--sonic", kExample, "--print", "--json"]);
    const { config, tables, notes } = JSON.parse(stdout);
    expect(config.ports).toHaveLength(4);
    expect(tables).toContainEqual({
      table: "SCHEDULER",
      keys: 3,
      taken: false,
      used: expect.arrayContaining(["type", "weight"]),
    });
    expect(notes).toContainEqual(expect.objectContaining({ kind: "ignored", table: "FEATURE" }));
  });

  it("says what is wrong, and its place", async () => {
    const bad = file('{"PORT": {"Ethernet0": {"speed": "1000"}}, "QUEUE": {"Ethernet0|3": {"wred_profile": "X"}}}');
    const { status, stderr } = await weir(["switch", "--sonic", bad, "--print"]);
    expect(status).toBe(2);
    expect(stderr).toContain("QUEUE|Ethernet0|3|wred_profile: there is no WRED_PROFILE|X");
  });

  it.each([
    [["switch"], "--config: missing"],
    [["switch", "-c", "examples/switch.yaml", "--sonic", kExample], "--sonic: not with --config"],
    [["switch", "-c", "examples/switch.yaml", "--print"], "--print: not without --sonic"],
    [["switch", "-c", "examples/switch.yaml", "--map", "a=b"], "--map: not without --sonic"],
    [["switch", "--sonic", kExample, "--scale", "0"], "--scale 0: not a number from 1 to 1000000"],
    [["switch", "--sonic", kExample, "--json"], "--json: not without --print"],
    [["switch", "--sonic", "/nonexistent", "--print"], "config_db /nonexistent: no such file"],
    [["switch", "--sonic", "README.md", "--print"], "README.md: is no JSON: "],
    [["switch", "--sonic", "/dev/zero", "--print"], "config_db /dev/zero: is too large; the limit is 16777216 bytes"],
    [["plan", "check"], "no scenario"],
    [["plan", "check", "examples/incast-4to1.yaml", "--sonic", kExample], "--sonic: not with a scenario"],
  ])("refuses %j", async (argv, message) => {
    const { status, stdout, stderr } = await weir(argv);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(`error: ${message}`);
  });
});

describe("weir plan check --sonic", () => {
  it("judges the switch by its cables and an incast", async () => {
    const { status, stdout } = await weir(["plan", "check", "--sonic", kExample, "--json"]);
    expect(status).toBe(0);
    const check = JSON.parse(stdout);
    expect(check).toMatchObject({ scenario: "leaf1", lossless: true, ecn_before_pfc: true });
    expect(check.pairs).toHaveLength(3);
    // 40 m at 5 ns/m, MTU 9100.
    expect(check.links).toContainEqual(
      expect.objectContaining({ peer: "Ethernet12", delay_ns: 200, needed_bytes: 3 * 9122 + 84 + 2 * 2500 + 394 * 64 }),
    );
  });

  it("finds what is lost, and what comes too late", async () => {
    const lossy = await weir(["plan", "check", "--sonic", kExample, "--set", "switch.buffer.headroom=50KB"]);
    expect(lossy.status).toBe(1);
    expect(lossy.stdout).toContain("lossless: NO");
    const late = await weir([
      "plan",
      "check",
      "--sonic",
      kExample,
      "--set",
      "switch.ecn.kmin=7MB",
      "--set",
      "switch.ecn.kmax=8MB",
    ]);
    expect(late.status).toBe(1);
    expect(late.stdout).toContain("ECN before PFC: NO");
  });
});

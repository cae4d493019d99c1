import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { SWITCH_PROFILES } from "../../src/models/buffers/index.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { weir } from "./harness.js";

const kIncast = fileURLToPath(new URL("./fixtures/incast.yaml", import.meta.url));
const json = async (...argv: string[]) => JSON.parse((await weir(["plan", ...argv, "--json"])).stdout);

describe("weir plan buffers", () => {
  it("gives the figures of the paper as one JSON document", async () => {
    const argv = "--ports 32 --priorities 8 --buffer 12MB --headroom 22.4KB --beta 8 --kmin 5KB".split(" ");
    expect(await json("buffers", ...argv)).toEqual({
      ports: 32,
      priorities: 8,
      buffer_bytes: 12_000_000,
      beta: 8,
      t_flight_bytes: 22_400,
      t_flight_terms: [],
      reserved_bytes: 5_734_400,
      shared_bytes: 6_265_600,
      t_pfc_static_bytes: 24_475,
      t_pfc_dynamic_bytes: 6_265_600,
      t_pfc_dynamic_alone_bytes: 3_132_800,
      t_ecn_static_bytes: 764.84,
      t_ecn_dynamic_bytes: 21_755.56,
      t_ecn_dynamic_one_priority_bytes: 97_900,
      kmin_bytes: 5_000,
      ecn_before_pfc: true,
      ecn_before_pfc_static: false,
      assumptions: expect.arrayContaining([
        expect.stringMatching(/^1 KB = 1000 bytes/),
        expect.stringMatching(/24\.47 and 21\.75 KB follow from t_flight = 22\.4 KB/),
        expect.stringMatching(
          /0\.85 KB printed for t_ECN static does not follow from its formula: 24\.475 \/ 32 is 0\.765/,
        ),
      ]),
    });
    expect((await json("buffers", ...argv, "--ports", "31")).assumptions.join()).not.toContain("0.85");
  });

  it("has the same for the profile of that switch, with its source", async () => {
    const found = await json("buffers", "--profile", "trident2");
    expect(found).toMatchObject({ profile: "trident2", t_flight_bytes: 22_400, t_pfc_static_bytes: 24_475 });
    expect(found.profile_source).toContain("section 4");
  });

  it("computes t_flight without --headroom, and lists its terms", async () => {
    const found = await json("buffers", "--ports", "32", "--buffer", "12MB", "--cable", "173m");
    expect(found.t_flight_bytes).toBe(22_402);
    expect(found.t_flight_terms).toHaveLength(6);
    const same = await json("buffers", "--ports", "32", "--buffer", "12MB", "--delay", "865ns");
    expect(same).toEqual(found);
    const { stdout } = await weir(["plan", "buffers", "--ports", "32", "--buffer", "12MB", "--cable", "173m"]);
    expect(stdout).toMatch(/^response +118 quanta of 512 bits \(802\.3 31B\.3\.7, 40 Gb\/s\) +7552$/m);
    expect(stdout).toMatch(/^t_flight +sum +22402$/m);
  });

  it("takes the terms that are given in place of a profile's headroom", async () => {
    const with2m = await json("buffers", "--profile", "trident2", "--cable", "2m", "--response", "0ns");
    expect(with2m.t_flight_bytes).toBe(2 * 1522 + 84 + 2 * 50 + 3072);
  });

  it("plans every profile with two priorities", async () => {
    for (const name of Object.keys(SWITCH_PROFILES)) {
      const found = await json("buffers", "--profile", name, "--priorities", "2");
      expect(found.shared_bytes, name).toBeGreaterThan(0);
    }
  });

  it("recommends marking with --rtt, and judges that Kmin", async () => {
    const found = await json("buffers", "--profile", "trident2", "--rtt", "50us");
    expect(found.recommended).toMatchObject({ kmin_bytes: 5_000, kmax_bytes: 200_000, pmax: 0.01 });
    const longer = await json("buffers", "--profile", "trident2", "--rtt", "500us");
    expect(longer).toMatchObject({ kmin_bytes: 50_000, ecn_before_pfc: false });
  });

  it("is a table for people", async () => {
    const { stdout, status } = await weir(["plan", "buffers", "--profile", "trident2", "--kmin", "30KB"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^t_PFC static +\(B - P n t_flight\) \/ \(P n\), the most +24\.475$/m);
    expect(stdout).toContain("ECN before PFC in the worst case, Kmin 30 KB: NO (static: NO)\n");
  });

  it.each([
    ["--ports 32", "--buffer: missing", "give --ports and --buffer, or --profile"],
    ["--buffer 12MB", "--ports: missing", "give --ports and --buffer, or --profile"],
    ["--ports 0 --buffer 12MB", "--ports 0: not a number from 1 to 1024", ""],
    ["--ports 32 --buffer 12MB --priorities 9", "--priorities 9: not a number from 1 to 8", ""],
    ["--ports 32 --buffer 12", "--buffer 12: no unit; use B, KB", "must be 1 KB to 1000 GB"],
    ["--ports 32 --buffer 10B", "--buffer 10B: out of range", "must be 1 KB to 1000 GB"],
    ["--profile x", "--profile x: unknown", "known: trident2"],
    ["--profile trident2 --beta 0", "--beta 0: not a number greater than 0, to 1024", ""],
    ["--profile trident2 --cable 3s", "--cable 3s: unknown length unit", "must be 0 mm to 1000 km"],
    ["--profile trident2 --headroom 1KB --cable 3m", "--cable: not with --headroom", "--headroom is t_flight itself"],
    ["--profile trident2 --delay 1us --cable 3m", "--delay: not with --cable", "give the length"],
    [
      "--ports 32 --buffer 12MB --headroom 80KB",
      "--buffer 12 MB: too small for the headroom: 8 priorities x 32 ports x 80 KB = 20.48 MB",
      "at most 4 priorities, or a buffer of more than 20.48 MB",
    ],
  ])("refuses %s", async (line, message, hint) => {
    const { status, stdout, stderr } = await weir(["plan", "buffers", ...line.split(" ")]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(`error: ${message}`);
    if (hint !== "") expect(stderr).toContain(`  hint: ${hint}`);
  });
});

describe("weir plan ecn", () => {
  it("ends with YAML that a scenario takes without a warning", async () => {
    const { stdout } = await weir(["plan", "ecn", "--rate", "100Gbps", "--rtt", "80us", "--flows", "64"]);
    const yaml = stdout.slice(stdout.indexOf("switch:\n"));
    const { scenario, warnings } = parseScenarioText(`${yaml}
topology: { kind: star, hosts: 3, link: { rate: 100Gbps, delay: 100ns } }
traffic: [{ from: [h2, h3], to: h1 }]
`);
    expect(warnings).toEqual([]);
    expect(scenario.switches[0]?.ecn).toMatchObject({ kmin: 20_000, kmax: 800_000, pmax: 0.01 });
    expect(scenario.congestion.parameters).toMatchObject({
      rpg_time_reset: 85_000,
      rpg_byte_reset: 40e6,
      rpg_ai_rate: 25e6,
      rpg_hai_rate: 125e6,
    });
  });

  it("names a source for every line", async () => {
    const { sources, parameters, alternatives } = await json("ecn", "--rate", "40Gbps", "--rtt", "50us");
    const named = [sources, ...Object.values(parameters), ...alternatives] as { source?: string }[];
    expect(named.slice(1).every(({ source }) => (source ?? "").length > 10)).toBe(true);
    expect(Object.keys(sources)).toEqual(["kmin", "kmax", "pmax"]);
  });

  it.each([
    [["--rate", "40Gbps"], "required option '--rtt <time>'"],
    [["--rate", "40", "--rtt", "50us"], "--rate 40: no unit"],
    [["--rate", "40Gbps", "--rtt", "0us"], "--rtt 0us: out of range\n  hint: must be 1 ns to 10 s"],
    [["--rate", "40Gbps", "--rtt", "50us", "--mtu", "9"], "--mtu 9: not a number from 576 to 16000"],
  ])("refuses %j", async (argv, message) => {
    const { status, stderr } = await weir(["plan", "ecn", ...argv]);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe("weir plan check", () => {
  it("exits with 0 where nothing is lost and ECN is first", async () => {
    const { status, stdout, stderr } = await weir(["plan", "check", kIncast]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("\nlossless: yes\nECN before PFC: yes (2 of 2 pairs of ports)\n");
  });

  it("exits with 1 where the headroom is too small, and says which link", async () => {
    const { status, stdout } = await weir(["plan", "check", kIncast, "--set", "switch.buffer.headroom=20KB"]);
    expect(status).toBe(1);
    expect(stdout).toContain("loss: sw: 20 KB is less than the 22.202 KB that may come from");
    expect(stdout).toContain("\nlossless: NO\n");
    expect(
      (await weir(["plan", "check", kIncast, "--set", "switch.buffer.headroom=20KB", "--response", "0ns"])).status,
    ).toBe(0);
  });

  it("exits with 1 where PFC comes first, with all of it in JSON", async () => {
    const set = ["--set", "switch.ecn.kmin=60KB", "--set", "switch.buffer.total=600KB"];
    const { status, stdout } = await weir(["plan", "check", kIncast, ...set, "--json"]);
    expect(status).toBe(1);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({ lossless: true, ecn_before_pfc: false });
    expect(found.pairs.every((pair: { ecn_before_pfc: boolean }) => !pair.ecn_before_pfc)).toBe(true);
    expect(found.findings[0]).toMatchObject({ kind: "order", device: "sw" });
  });

  it("exits with 2 for a scenario whose buffer does not hold the headroom", async () => {
    const { status, stderr } = await weir(["plan", "check", kIncast, "--set", "switch.buffer.total=100KB"]);
    expect(status).toBe(2);
    expect(stderr).toContain("switch.buffer.total: 100 KB is too small for the headroom");
  });
});

describe("weir plan", () => {
  it.each(["buffers", "ecn", "check", "profiles"])("helps with %s, by example", async (verb) => {
    const { status, stdout } = await weir(["plan", verb, "--help"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(new RegExp(`Examples?:\n  weir plan ${verb}`));
  });

  it("lists profiles with their sources", async () => {
    expect(await json("profiles")).toEqual(SWITCH_PROFILES);
    const { stdout } = await weir(["plan", "profiles"]);
    for (const name of Object.keys(SWITCH_PROFILES)) expect(stdout).toContain(`\n${name} `);
  });
});

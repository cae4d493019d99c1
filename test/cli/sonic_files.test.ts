/** Files in the shape that switches have them, from print to verdict. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { weir } from "./harness.js";

const folder = mkdtempSync(join(tmpdir(), "weir-sonic-files-"));
let files = 0;
function file(content: object | string): string {
  const path = join(folder, `db${files++}.json`);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const print = (path: string, ...more: string[]) => weir(["switch", "--sonic", path, "--print", ...more]);
const check = (path: string, ...more: string[]) => weir(["plan", "check", "--sonic", path, "--json", ...more]);

const identity = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [String(i), String(i)]));
const ports = (names: readonly string[], fields: object = { speed: "400000", admin_status: "up" }) =>
  Object.fromEntries(names.map((name) => [name, fields]));
const kTwo = ["Ethernet0", "Ethernet8"];

/** A line card with 6.44 GB of packet memory; its queues are those of a chassis. */
const card = () => ({
  DEVICE_METADATA: { localhost: { hostname: "lc1", asic_name: "asic0" } },
  PORT: ports(kTwo),
  PORT_QOS_MAP: {
    "Ethernet0,Ethernet8": {
      pfc_enable: "3,4",
      dscp_to_tc_map: "AZURE",
      tc_to_queue_map: "AZURE",
      tc_to_pg_map: "AZURE",
    },
  },
  DSCP_TO_TC_MAP: {
    AZURE: { ...Object.fromEntries(Array.from({ length: 64 }, (_, i) => [String(i), "1"])), "3": "3", "4": "4" },
  },
  TC_TO_QUEUE_MAP: { AZURE: { ...identity(10) } },
  TC_TO_PRIORITY_GROUP_MAP: { AZURE: { ...identity(8), "8": "0", "15": "7" } },
  BUFFER_POOL: { ingress_lossless_pool: { type: "both", mode: "dynamic", size: "6441610000", xoff: "11354112" } },
  BUFFER_PROFILE: {
    pg: { pool: "ingress_lossless_pool", size: "1248", xon_offset: "2288", xoff: "160000", dynamic_th: "0" },
  },
  BUFFER_PG: Object.fromEntries(kTwo.map((port) => [`${port}|3-4`, { profile: "pg" }])),
  WRED_PROFILE: {
    AZURE_LOSSLESS: {
      ...{ ecn: "ecn_all", wred_green_enable: "true", green_drop_probability: "5" },
      ...{ green_min_threshold: "2097152", green_max_threshold: "3000000000" },
    },
  },
  QUEUE: {
    ...Object.fromEntries(kTwo.map((port) => [`lc1|asic0|${port}|3-4`, { wred_profile: "AZURE_LOSSLESS" }])),
    "lc2|asic0|Ethernet0|3-4": { wred_profile: "AZURE_LOSSLESS" },
  },
});

describe("ranges of SONiC's YANG models", () => {
  it("are those of classes, queues and groups, each of its own", async () => {
    const { status, stderr } = await print(file(card()));
    expect(stderr).not.toContain("wrong:");
    expect(status).toBe(0);
  });

  it.each([
    ["TC_TO_QUEUE_MAP", "16", "1", "is not a number from 0 to 15"],
    ["TC_TO_QUEUE_MAP", "9", "10", "10 is out of range: 0 to 9"],
    ["TC_TO_PRIORITY_GROUP_MAP", "15", "8", "8 is out of range: 0 to 7"],
    ["DSCP_TO_TC_MAP", "5", "16", "16 is out of range: 0 to 15"],
  ] as const)("end where they end: %s %s -> %s", async (table, key, value, message) => {
    const db = card();
    Object.assign(db[table].AZURE, { [key]: value });
    const { status, stderr } = await print(file(db));
    expect(stderr).toContain(`${table}|AZURE|${key}: ${message}`);
    expect(status).toBe(2);
  });

  it("a queue that is not here is told where a DSCP leads to it", async () => {
    const db = card();
    Object.assign(db.DSCP_TO_TC_MAP.AZURE, { "46": "8" });
    const { status, stderr, stdout } = await print(file(db));
    expect(status).toBe(0);
    expect(stderr).toContain("TC_TO_QUEUE_MAP|AZURE|8: traffic class 8 is in queue 8 in SONiC");
    expect(loadSwitchDaemon("made.yaml", { text: stdout }).config.switch.dscp_map[46]).toBe(0);
  });
});

describe("deep buffers", () => {
  it("validate as they are printed, and have a verdict", async () => {
    const path = file(card());
    const { stdout, stderr } = await print(path);
    const { config } = loadSwitchDaemon("made.yaml", { text: stdout });
    expect(config.switch.buffer.total).toBeGreaterThan(6.4e9);
    expect(config.switch.ecn).toMatchObject({ kmin: 2_097_152, kmax: 3e9, priorities: [3, 4] });
    expect(stderr).toContain("QUEUE|lc2|asic0|Ethernet0|3-4: virtual output queues to ports of another card");
    expect(JSON.parse((await check(path)).stdout)).toMatchObject({ lossless: true, ecn_before_pfc: true });
  });

  it("sizes up to uint64 are taken as the most there is", async () => {
    const db = card();
    Object.assign(db.WRED_PROFILE.AZURE_LOSSLESS, { green_max_threshold: "18446744073709551615" });
    const { status, stdout } = await print(file(db));
    expect(status).toBe(0);
    expect(loadSwitchDaemon("made.yaml", { text: stdout }).config.switch.ecn.kmax).toBe(64e9);
  });
});

describe("ports", () => {
  it("of the largest switches are all there", async () => {
    const names = [...Array.from({ length: 512 }, (_, i) => `Ethernet${i * 2}`), "Ethernet1024", "Ethernet1026"];
    const path = file({ ...card(), PORT: ports(names, { speed: "100000", admin_status: "up" }), QUEUE: {} });
    const { status, stdout } = await print(path);
    expect(status).toBe(0);
    expect(loadSwitchDaemon("made.yaml", { text: stdout }).config.ports).toHaveLength(514);
    expect(JSON.parse((await check(path)).stdout).links).toHaveLength(514);
    const many = ports(Array.from({ length: 1025 }, (_, i) => `Ethernet${i}`));
    expect((await print(file({ PORT: many }))).stderr).toContain(
      "1025 ports are up, and a switch has 1024 at most here",
    );
  });

  it.each([[print], [check]])("none that is up is one sentence", async (verb) => {
    const { status, stdout, stderr } = await verb(
      file({ PORT: ports(kTwo, { speed: "100000", admin_status: "down" }) }),
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^error: config_db \S+: PORT: no port is up: /m);
  });

  it("without a speed are named by the file, and the way out too", async () => {
    const path = file({ PORT: ports(kTwo, { alias: "a" }), deployment_id: null, platform: "x86" });
    const { status, stderr } = await check(path);
    expect(status).toBe(2);
    expect(stderr).toContain(
      `error: config_db ${path}: PORT|Ethernet0 and 1 more|speed: is not there; --speed 100Gbps`,
    );
    const printed = await print(path);
    expect(printed.status).toBe(0);
    expect(printed.stderr).toContain("used: PORT (2)");
    expect(printed.stderr).not.toContain("wrong:");
    expect(printed.stderr).not.toMatch(/ignored: .*PORT[,:] .*no part of forwarding/);
  });

  it("have it of --speed: of all, or of the platform's port_config.ini", async () => {
    const path = file({ PORT: ports(kTwo, { alias: "a" }) });
    const ini = file("# name lanes alias speed\nEthernet0 1,2 e0 40000\nEthernet8 3,4 e8 10000\n");
    const rates = async (speed: string) =>
      loadSwitchDaemon("m.yaml", { text: (await print(path, "--speed", speed)).stdout }).config.ports.map(
        ({ rate }) => rate,
      );
    expect(await rates("25Gbps")).toEqual([25e9, 25e9]);
    expect(await rates(ini)).toEqual([40e9, 10e9]);
    const bad = file("# name lanes alias speed\nEthernet0 1,2 e0 fast\n");
    expect((await print(path, "--speed", bad)).stderr).toContain(`${bad}:2: "fast" is not a speed in Mb/s`);
  });
});

describe("verdicts", () => {
  it("over nothing are none", async () => {
    const path = file({ PORT: ports(kTwo) });
    const { status, stdout } = await check(path);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ lossless: null, ecn_before_pfc: null, deadlock_free: null });
    const { stdout: text } = await weir(["plan", "check", "--sonic", path]);
    expect(text).toContain("lossless: nothing to judge\n");
    expect(text).toContain("nothing to judge: no priority of any switch is lossless");
  });

  it("need no marks where the NICs take none", async () => {
    const db = card();
    db.WRED_PROFILE.AZURE_LOSSLESS.wred_green_enable = "false";
    const path = file(db);
    expect((await check(path)).status).toBe(1);
    const swift = ["--set", "congestion.algorithm=swift", "--set", "transport.type=rc"];
    const { status, stdout } = await check(path, ...swift);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ lossless: true, ecn_before_pfc: null, ecn_heard: false });
    expect((await weir(["plan", "check", "--sonic", path, ...swift])).stdout).toContain("swift takes no marks");
  });

  it("follow --set, as a switch.yaml or a scenario has it, also where the pool is too small", async () => {
    const db = card();
    Object.assign(db.BUFFER_POOL.ingress_lossless_pool, { size: "4000" });
    const path = file(db);
    expect((await print(path)).stderr).toContain("--set buffer.total=SIZE says otherwise");
    for (const field of ["buffer.total", "switch.buffer.total"]) {
      expect((await check(path, "--set", `${field}=8GB`)).status).toBe(0);
      const { stdout } = await print(path, "--set", `${field}=8GB`);
      expect(loadSwitchDaemon("m.yaml", { text: stdout }).config.switch.buffer.total).toBe(8e9);
    }
  });
});

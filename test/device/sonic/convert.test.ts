import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadSwitchDaemon } from "../../../src/device/file/load.js";
import { checkConverted, convertConfigDb, switchYaml } from "../../../src/device/sonic/convert.js";
import { placeOf } from "../../../src/device/sonic/notes.js";
import { sharedBytes } from "../../../src/scenario/thresholds.js";

const kExample = readFileSync(new URL("../../../examples/sonic/config_db.json", import.meta.url), "utf8");

type Tables = Record<string, Record<string, Record<string, unknown>>>;

/** The example with some of it changed. */
function changed(change: (db: Tables) => void, options: Parameters<typeof convertConfigDb>[2] = {}) {
  const db = JSON.parse(kExample) as Tables;
  change(db);
  return convertConfigDb(JSON.stringify(db), "config_db.json", options);
}

const told = ({ notes }: ReturnType<typeof changed>, kind: string) =>
  notes.filter((note) => note.kind === kind).map((note) => `${placeOf(note)}: ${note.message}`);

const section = (db: Tables, table: string) => db[table] as Record<string, Record<string, unknown>>;

describe("config_db.json", () => {
  it("becomes a switch.yaml that a switch takes", () => {
    const converted = changed(() => {});
    expect(told(converted, "wrong")).toEqual([]);
    const { config } = loadSwitchDaemon("made.yaml", { text: switchYaml(converted) });
    expect(config).toMatchObject({ name: "leaf1", switch: { trust: "dscp", pfc: { enabled: true, priorities: [3] } } });
    expect(config.ports.map(({ name, interface: netdev, rate }) => [name, netdev, rate])).toEqual([
      ["Ethernet0", "Ethernet0", 100e9],
      ["Ethernet4", "Ethernet4", 100e9],
      ["Ethernet8", "Ethernet8", 100e9],
      ["Ethernet12", "Ethernet12", 100e9],
    ]);
    expect(config.switch.dscp_map[26]).toBe(3);
    expect(config.switch.dscp_map[48]).toBe(6);
    expect(config.switch.dscp_map[0]).toBe(0);
    expect(config.switch.ecn).toMatchObject({
      enabled: true,
      kmin: 200_000,
      kmax: 800_000,
      pmax: 0.1,
      priorities: [3],
    });
    expect(config.switch.scheduler).toEqual({ strict: [6], weights: [40, 1, 1, 60, 1, 1, 1, 1] });
    expect(config.switch.pfc_watchdog).toEqual({
      enabled: true,
      action: "drop",
      detection_time: 400e6,
      restoration_time: 400e6,
    });
    expect(config.switch.buffer).toMatchObject({ priorities: 1, beta: 1, xon_offset: 18_000, lossy_alpha: 2 });
  });

  it("shares what its pool has left when headroom is taken", () => {
    const { config } = changed(() => {});
    // Three groups with 60 KB, one with 70 KB.
    expect(config.buffer).toMatchObject({ total: 12_000_000, headroom: 60_000 });
    const { config: loaded } = loadSwitchDaemon("made.yaml", { text: switchYaml(changed(() => {})) });
    expect(sharedBytes(loaded.switch.buffer, 4)).toBe(12_000_000 - 250_000);
  });

  it("has profiles for ports that differ from most", () => {
    expect(changed(() => {}).config.port_profiles).toEqual({
      "profile-1": { ports: ["Ethernet12"], buffer: { headroom: 70_000, beta: 1, xon_offset: 18_000, lossy_alpha: 2 } },
    });
    const { config } = changed((db) => {
      section(db, "WRED_PROFILE").LATE = { ...section(db, "WRED_PROFILE").ROCE, green_max_threshold: "900000" };
      section(db, "QUEUE")["Ethernet4|3"] = { wred_profile: "LATE" };
      delete section(db, "BUFFER_PG")["Ethernet12|3"];
      section(db, "BUFFER_PG")["Ethernet12|3"] = { profile: "pg_lossless_100000_5m_profile" };
    });
    expect(config.port_profiles).toEqual({
      "profile-1": { ports: ["Ethernet4"], ecn: { kmin: 200_000, kmax: 900_000, pmax: 0.1 } },
    });
  });

  it("keeps a headroom that is shared out of what is reserved", () => {
    const { config, shared_headroom, headroom } = changed((db) => {
      section(db, "BUFFER_POOL").ingress_lossless_pool = {
        type: "ingress",
        mode: "dynamic",
        size: "12000000",
        xoff: "100000",
      };
    });
    expect({ shared_headroom, headroom }).toEqual({ shared_headroom: 100_000, headroom: 250_000 });
    expect(config.buffer).toMatchObject({ total: 12_000_000 + 250_000 });
  });

  it("takes only the ports that are mapped, in the order of the file", () => {
    const map = new Map([
      ["Ethernet8", "veth8"],
      ["Ethernet0", "veth0"],
    ]);
    const { config, notes } = changed(() => {}, { map });
    expect(config.ports).toMatchObject([
      { name: "Ethernet0", interface: "veth0" },
      { name: "Ethernet8", interface: "veth8" },
    ]);
    expect(notes).toContainEqual(expect.objectContaining({ table: "PORT", keys: ["Ethernet4", "Ethernet12"] }));
    const other = changed(() => {}, { map: new Map([["Ethernet1", "veth0"]]) });
    expect(told(other, "wrong")).toContain("PORT|Ethernet1: is mapped to an interface, but is not there");
    expect(() => checkConverted(other)).toThrow("config_db config_db.json: PORT|Ethernet1: is mapped");
  });

  it("divides rates by the scale, and multiplies times", () => {
    const { config } = changed(() => {}, { scale: 100 });
    expect(config.ports).toContainEqual(expect.objectContaining({ rate: "1 Gb/s" }));
    expect(config.pfc_watchdog).toMatchObject({ detection_time: "40000ms" });
    expect(config.buffer).toEqual(changed(() => {}).config.buffer);
  });

  it("reads references of old files, and dumps of the database", () => {
    const before = changed(() => {}).config;
    const old = changed((db) => {
      for (const queue of Object.values(section(db, "QUEUE"))) {
        if (queue.wred_profile !== undefined) queue.wred_profile = `[WRED_PROFILE|${queue.wred_profile}]`;
        queue.scheduler = `[SCHEDULER|${queue.scheduler}]`;
      }
      for (const group of Object.values(section(db, "BUFFER_PG"))) group.profile = `[BUFFER_PROFILE|${group.profile}]`;
    });
    expect(old.config).toEqual(before);
    const flat = Object.fromEntries(
      Object.entries(JSON.parse(kExample) as Tables).flatMap(([table, entries]) =>
        Object.entries(entries).map(([key, fields]) => [`${table}|${key}`, fields]),
      ),
    );
    expect(convertConfigDb(JSON.stringify(flat), "config_db.json").config).toEqual(before);
  });

  it("finds headroom by speed, MTU and cable where no profile says it", () => {
    const { config, notes } = changed((db) => {
      db.BUFFER_PG = { "Ethernet0,Ethernet4,Ethernet8,Ethernet12|3": { profile: "NULL" } };
    });
    // Two frames and the one that crosses of 9122, PFC 84, 2 x 25 ns of 5 m, 394 quanta of 512 bits; the last port has 40 m.
    const headroom = (cable: number) => 3 * 9122 + 84 + 2 * cable + 394 * 64;
    expect(config.buffer).toMatchObject({ headroom: headroom(313) });
    expect(config.port_profiles).toMatchObject({ "profile-1": { buffer: { headroom: headroom(2500) } } });
    expect(notes).toContainEqual(expect.objectContaining({ kind: "differs", table: "BUFFER_PG", field: "profile" }));
  });

  it("keeps headroom at ports that have PFC only because others have", () => {
    const { config, notes } = changed((db) => {
      db.PORT_QOS_MAP = { "Ethernet0,Ethernet4,Ethernet8": Object.values(section(db, "PORT_QOS_MAP"))[0] ?? {} };
      delete section(db, "BUFFER_PG")["Ethernet12|3"];
    });
    const bytes = 3 * 9122 + 84 + 2 * 2500 + 394 * 64;
    expect(config.port_profiles).toMatchObject({ "profile-1": { ports: ["Ethernet12"], buffer: { headroom: bytes } } });
    expect(notes).toContainEqual(
      expect.objectContaining({ kind: "differs", table: "PORT_QOS_MAP", keys: ["Ethernet12"], field: "pfc_enable" }),
    );
  });

  it("leaves out ports that are not up", () => {
    const { config } = changed((db) => {
      delete section(db, "PORT").Ethernet0?.admin_status;
      (section(db, "PORT").Ethernet4 as Record<string, unknown>).admin_status = "down";
    });
    expect(config.ports).toMatchObject([{ name: "Ethernet8" }, { name: "Ethernet12" }]);
  });

  it("limits queues and ports as their schedulers do", () => {
    const { config } = changed((db) => {
      (section(db, "SCHEDULER").rest as Record<string, unknown>).pir = "125000000";
      section(db, "SCHEDULER").port = { type: "STRICT", pir: "1250000000" };
      for (const map of Object.values(section(db, "PORT_QOS_MAP"))) map.scheduler = "port";
    });
    expect(config.ports).toContainEqual(
      expect.objectContaining({ rate: "10 Gb/s", limits: { "0": { rate: "1 Gb/s" } } }),
    );
  });
});

describe("what is wrong in a config_db.json", () => {
  it.each<[string, (db: Tables) => void, string]>([
    [
      "a reference to nothing",
      (db) =>
        Object.assign(section(db, "QUEUE")["Ethernet0,Ethernet4,Ethernet8,Ethernet12|3"] ?? {}, {
          wred_profile: "ROCF",
        }),
      "QUEUE|Ethernet0,Ethernet4,Ethernet8,Ethernet12|3|wred_profile: there is no WRED_PROFILE|ROCF; did you mean ROCE?",
    ],
    [
      "a reference to another table",
      (db) => Object.assign(section(db, "BUFFER_PG")["Ethernet12|3"] ?? {}, { profile: "[BUFFER_POOL|x]" }),
      "BUFFER_PG|Ethernet12|3|profile: refers to BUFFER_POOL, where BUFFER_PROFILE is meant",
    ],
    [
      "a number out of range",
      (db) => Object.assign(section(db, "WRED_PROFILE").ROCE ?? {}, { green_drop_probability: "101" }),
      "WRED_PROFILE|ROCE|green_drop_probability: 101 is out of range: 0 to 100",
    ],
    [
      "no number",
      (db) => Object.assign(section(db, "PORT").Ethernet0 ?? {}, { speed: "fast" }),
      "PORT|Ethernet0|speed: fast is not a whole number: 1 to 1600000",
    ],
    [
      "thresholds the wrong way round",
      (db) => Object.assign(section(db, "WRED_PROFILE").ROCE ?? {}, { green_min_threshold: "900000" }),
      "WRED_PROFILE|ROCE|green_min_threshold: 900000 is more than green_max_threshold 800000",
    ],
    [
      "a type",
      (db) => Object.assign(section(db, "PORT").Ethernet0 ?? {}, { speed: { a: 1 } }),
      "PORT|Ethernet0|speed: is a mapping, not a text",
    ],
    [
      "an entry that is none",
      (db) => Object.assign(section(db, "SCHEDULER"), { rest: "fast" }),
      "SCHEDULER|rest: is fast, not an object of fields",
    ],
    ["a table that is none", (db) => Object.assign(db, { CABLE_LENGTH: 7 }), "CABLE_LENGTH: is 7, not a table"],
    [
      "a key without a number",
      (db) => Object.assign(section(db, "QUEUE"), { Ethernet0: {} }),
      "QUEUE|Ethernet0: is not PORT|NUMBER, such as Ethernet0|3-4",
    ],
    [
      "a range",
      (db) => Object.assign(section(db, "QUEUE"), { "Ethernet0|4-3": {} }),
      "QUEUE|Ethernet0|4-3: 4-3 is not a range such as 3-4",
    ],
    [
      "a word",
      (db) => Object.assign(section(db, "PFC_WD").Ethernet0 ?? {}, { action: "explode" }),
      "PFC_WD|Ethernet0|action: explode is not one of drop, forward, alert",
    ],
    [
      "priorities",
      (db) => Object.assign(Object.values(section(db, "PORT_QOS_MAP"))[0] ?? {}, { pfc_enable: "3,8" }),
      "PORT_QOS_MAP|Ethernet0,Ethernet4,Ethernet8,Ethernet12|pfc_enable: 3,8 is not a list of numbers from 0 to 7",
    ],
    [
      "a cable",
      (db) => Object.assign(section(db, "CABLE_LENGTH").AZURE ?? {}, { Ethernet0: "5 feet" }),
      "CABLE_LENGTH|AZURE|Ethernet0: 5 feet is not a length such as 300m",
    ],
    [
      "a DSCP",
      (db) => Object.assign(section(db, "DSCP_TO_TC_MAP").ROCE ?? {}, { "64": "1" }),
      "DSCP_TO_TC_MAP|ROCE|64: is not a number from 0 to 63",
    ],
    [
      "a VLAN",
      (db) => Object.assign(section(db, "VLAN_MEMBER"), { "Vlan7|Ethernet0": { tagging_mode: "tagged" } }),
      "VLAN_MEMBER|Vlan7|Ethernet0: there is no VLAN|Vlan7",
    ],
    [
      "a pool that is too small",
      (db) => Object.assign(section(db, "BUFFER_POOL").ingress_lossless_pool ?? {}, { size: "250000" }),
      "BUFFER_POOL|ingress_lossless_pool|size: 250000 is not more than the 250000 that priority groups reserve of it; --set buffer.total=SIZE says otherwise",
    ],
  ])("%s is told with its place, and refused", (_, change, message) => {
    const converted = changed(change);
    expect(told(converted, "wrong")).toEqual([message]);
    expect(() => checkConverted(converted)).toThrow(message);
  });

  it("does not hinder a switch that has none of it", () => {
    const map = new Map([["Ethernet4", "veth0"]]);
    const converted = changed(
      (db) => {
        Object.assign(section(db, "PORT").Ethernet0 ?? {}, { speed: "fast" });
        Object.assign(section(db, "QUEUE"), { "Ethernet99|3": { scheduler: "roce" } });
        Object.assign(db, { ACL_TABLE: { x: { ports: { a: 1 } } } });
      },
      { map },
    );
    expect(told(converted, "wrong").sort()).toEqual([
      "ACL_TABLE|x|ports: is a mapping, not a text",
      "PORT|Ethernet0|speed: fast is not a whole number: 1 to 1600000",
      "QUEUE|Ethernet99|3: there is no PORT|Ethernet99",
    ]);
    expect(() => checkConverted(converted)).not.toThrow();
  });

  it.each([
    ["", "is no JSON: "],
    ["{", "is no JSON: "],
    ['{"PORT": {"Ethernet0": {"speed": "1"}},}', "is no JSON: "],
    ["[]", "is a list, as for swssconfig, not an object of tables"],
    ['"x"', "is x, not an object of tables"],
    ["null", "is nothing, not an object of tables"],
  ])("%j is no config_db.json", (text, message) => {
    expect(() => convertConfigDb(text, "x.json")).toThrow(`x.json: ${message}`);
  });

  it("nor is a list that is nested without end", () => {
    expect(() => convertConfigDb("[".repeat(1e6), "x.json")).toThrow("x.json: is no JSON: ");
  });

  it("a file without ports is refused", () => {
    const converted = convertConfigDb("{}", "x.json");
    expect(told(converted, "wrong")).toEqual(["PORT: has no port"]);
  });
});

describe("what is otherwise than in SONiC", () => {
  it.each<[string, (db: Tables) => void, string]>([
    [
      "ports without VLANs and addresses",
      (db) => {
        delete db.VLAN;
        delete db.VLAN_MEMBER;
      },
      "PORT: no port is in a VLAN or has an address, and SONiC would forward nothing: all ports are one bridge here",
    ],
    [
      "a queue that another priority of PFC stops",
      (db) => Object.assign(section(db, "MAP_PFC_PRIORITY_TO_QUEUE").ROCE ?? {}, { "3": "4" }),
      "PORT_QOS_MAP|Ethernet0,Ethernet4,Ethernet8,Ethernet12|pfc_to_queue_map: PFC of priority 3 stops queue 4 in SONiC, and queue 3 here",
    ],
    [
      "a priority group without headroom",
      (db) => delete section(db, "BUFFER_PROFILE").pg_lossless_100000_40m_profile?.xoff,
      "BUFFER_PG|Ethernet12|3|profile: pg_lossless_100000_40m_profile has no xoff: this priority group is lossy although PFC is on",
    ],
  ])("%s is told", (_, change, message) => {
    expect(told(changed(change), "differs")).toContain(message);
  });

  it("fields that nothing looks at are ignored, each for a reason", () => {
    const ignored = told(
      changed((db) => Object.assign(db, { ACL_RULE: { x: { y: "z" } } })),
      "ignored",
    );
    expect(ignored).toContain("PORT|Ethernet0 and 3 more|lanes: of the hardware: an interface is taken as it is");
    expect(ignored).toContain("ACL_RULE: no access lists, mirrors or policers");
    expect(ignored).toContain("FEATURE: no part of forwarding, priorities or buffers");
  });
});

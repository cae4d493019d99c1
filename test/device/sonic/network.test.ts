/** VLANs, addresses and routes of a config_db.json, and what of them becomes of a switch.yaml. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadSwitchDaemon } from "../../../src/device/file/load.js";
import { checkConverted, convertConfigDb, switchYaml } from "../../../src/device/sonic/convert.js";
import { placeOf } from "../../../src/device/sonic/notes.js";

const kPorts = [0, 4, 8, 12, 16];

/** Five ports, and these tables. */
function convert(tables: object, map?: ReadonlyMap<string, string>) {
  const ports = kPorts.map((port) => [`Ethernet${port}`, { speed: "10000", admin_status: "up" }]);
  const text = JSON.stringify({ PORT: Object.fromEntries(ports), ...tables });
  return convertConfigDb(text, "config_db.json", { map });
}

/** The switch.yaml that is made, as a switch takes it. */
function loaded(tables: object) {
  const converted = convert(tables);
  checkConverted(converted);
  return loadSwitchDaemon("made.yaml", { text: switchYaml(converted) }).config;
}

const told = ({ notes }: ReturnType<typeof convert>, ...kinds: string[]) =>
  notes
    .filter(({ kind, table }) => kinds.includes(kind) && table !== "PORT")
    .map((note) => `${placeOf(note)}: ${note.message}`);

const vlans = (tables: object) => Object.fromEntries(loaded(tables).ports.map(({ name, vlans }) => [name, vlans]));
const untagged = { tagging_mode: "untagged" };
const tagged = { tagging_mode: "tagged" };

describe("VLANs of SONiC", () => {
  const two = {
    VLAN: { Vlan10: { vlanid: "10" }, Vlan20: {} },
    VLAN_MEMBER: {
      "Vlan10|Ethernet0": untagged,
      "Vlan10|Ethernet4": tagged,
      "Vlan20|Ethernet4": untagged,
      "Vlan20|Ethernet8": {},
    },
  };

  it("separate ports, and whoever is in none is alone", () => {
    expect(vlans(two)).toEqual({
      Ethernet0: { untagged: 10, tagged: [] },
      Ethernet4: { untagged: 20, tagged: [10] },
      Ethernet8: { untagged: 20, tagged: [] },
      Ethernet12: { untagged: 0, tagged: [] },
      Ethernet16: { untagged: 0, tagged: [] },
    });
    expect(told(convert(two), "wrong", "differs")).toEqual([]);
    expect(
      convert(two)
        .tables.filter(({ taken }) => taken)
        .map(({ table }) => table),
    ).toEqual(["PORT", "VLAN", "VLAN_MEMBER"]);
  });

  it("have a port channel at the first of its members that is taken", () => {
    const tables = {
      ...two,
      PORTCHANNEL: { PortChannel1: {} },
      PORTCHANNEL_MEMBER: { "PortChannel1|Ethernet12": {}, "PortChannel1|Ethernet16": {} },
      VLAN_MEMBER: { "Vlan10|PortChannel1": tagged },
    };
    expect(vlans(tables)).toMatchObject({ Ethernet12: { tagged: [10] }, Ethernet16: { untagged: 0, tagged: [] } });
    expect(told(convert(tables), "differs")).toEqual([
      "PORTCHANNEL_MEMBER|PortChannel1|Ethernet16: no link aggregation: Ethernet12 carries all of PortChannel1, and this port nothing",
    ]);
    const map = new Map([["Ethernet16", "veth0"]]);
    expect(convert(tables, map).config).toMatchObject({ ports: [{ name: "Ethernet16", vlans: { tagged: [10] } }] });
  });

  it.each([
    [
      { VLAN: { Vlan10: {} }, VLAN_MEMBER: { "Vlan7|Ethernet0": untagged } },
      "VLAN_MEMBER|Vlan7|Ethernet0: there is no VLAN|Vlan7",
    ],
    [
      { ...two, VLAN: { Vlan10: { vlanid: "4095" }, Vlan20: {} } },
      "VLAN|Vlan10|vlanid: 4095 is out of range: 1 to 4094",
    ],
    [
      { ...two, VLAN: { Vlan10: { vlanid: "11" }, Vlan20: {} } },
      "VLAN|Vlan10|vlanid: 11 is not the VLAN that it is named after",
    ],
    [
      { VLAN: { Blue: {} }, VLAN_MEMBER: { "Blue|Ethernet0": untagged } },
      "VLAN|Blue: is not named after a VLAN, such as Vlan100, and has no vlanid",
    ],
    [{ VLAN: { Vlan5000: {} } }, "VLAN|Vlan5000: 5000 is no VLAN: 1 to 4094"],
    [
      { ...two, VLAN_MEMBER: { "Vlan10|Ethernet0": untagged, "Vlan20|Ethernet0": untagged } },
      "VLAN_MEMBER|Vlan20|Ethernet0: Ethernet0 is in VLAN 10 without a tag, too",
    ],
    [
      { ...two, VLAN_MEMBER: { "Vlan10|Ethernet0": { tagging_mode: "trunk" } } },
      "VLAN_MEMBER|Vlan10|Ethernet0|tagging_mode: trunk is not one of tagged, untagged, priority_tagged",
    ],
    [
      { ...two, INTERFACE: { Ethernet0: {}, "Ethernet0|10.0.0.0/31": {} } },
      "INTERFACE|Ethernet0: has an address, and is in a VLAN, too (VLAN_MEMBER)",
    ],
    [
      { PORTCHANNEL_MEMBER: { "PortChannel1|Ethernet0": {} } },
      "PORTCHANNEL_MEMBER|PortChannel1|Ethernet0: there is no PORTCHANNEL|PortChannel1",
    ],
    [{ ...two, VLAN_MEMBER: { Vlan10: tagged } }, "VLAN_MEMBER|Vlan10: is not VLAN|PORT, such as Vlan100|Ethernet0"],
  ])("%j is refused", (tables, message) => {
    const converted = convert(tables);
    expect(told(converted, "wrong")).toEqual([message]);
    expect(() => checkConverted(converted)).toThrow(message);
  });
});

describe("addresses of SONiC", () => {
  const routed = {
    DEVICE_METADATA: { localhost: { hostname: "t0", mac: "98:03:9B:F6:02:80" } },
    VLAN: { Vlan10: { vlanid: "10" } },
    VLAN_MEMBER: { "Vlan10|Ethernet0": untagged, "Vlan10|Ethernet4": tagged },
    VLAN_INTERFACE: { Vlan10: {}, "Vlan10|192.168.0.1/21": {}, "Vlan10|fc02:1000::1/64": {} },
    INTERFACE: { Ethernet8: {}, "Ethernet8|10.0.0.0/31": {}, "Ethernet8|FC00::1/126": {} },
    PORTCHANNEL: { PortChannel1: {} },
    PORTCHANNEL_MEMBER: { "PortChannel1|Ethernet12": {} },
    PORTCHANNEL_INTERFACE: { PortChannel1: {}, "PortChannel1|10.0.0.2/31": {} },
    VLAN_SUB_INTERFACE: { "Ethernet16.7": { admin_status: "up" }, "Ethernet16.7|10.0.0.4/31": {} },
    STATIC_ROUTE: {
      "0.0.0.0/0": { nexthop: "10.0.0.1,10.0.0.3", ifname: "Ethernet8,PortChannel1" },
      "default|10.9.0.0/16": { nexthop: "10.0.0.1" },
      "::/0": { nexthop: "fc00::2" },
    },
  };

  it("make a router, of ports and of VLANs", () => {
    const { router, ports } = loaded(routed);
    expect(router?.mac).toBe(0x98_03_9b_f6_02_80);
    expect(router?.interfaces.map(({ name, addresses }) => [name, ...addresses.map(({ address }) => address)])).toEqual(
      [
        ["Ethernet8", "10.0.0.0", "fc00::1"],
        ["Ethernet12", "10.0.0.2"],
        ["vlan10", "192.168.0.1", "fc02:1000::1"],
        ["Ethernet16.7", "10.0.0.4"],
      ],
    );
    expect(router?.routes.map(({ to, ways }) => [to.address, ...ways.map(({ gateway }) => gateway)])).toEqual([
      ["0.0.0.0", "10.0.0.1", "10.0.0.3"],
      ["10.9.0.0", "10.0.0.1"],
      ["::", "fc00::2"],
    ]);
    expect(ports.map(({ vlans }) => vlans?.untagged)).toEqual([10, 0, undefined, undefined, undefined]);
    expect(told(convert(routed), "wrong", "differs")).toEqual([]);
  });

  it("are those of ports that are taken, and the others are told", () => {
    const converted = convert(routed, new Map([["Ethernet8", "veth0"]]));
    expect(converted.config.router).toMatchObject({
      interfaces: [{ port: "Ethernet8" }],
      routes: [{ to: "0.0.0.0/0", via: ["10.0.0.1"] }, {}, {}],
    });
    expect(told(converted, "differs")).toEqual([
      "STATIC_ROUTE|0.0.0.0/0|nexthop: only the gateways that are on the link of a port that is taken",
    ]);
    expect(told(converted, "ignored").filter((note) => note.includes("no port of it"))).toEqual([
      "PORTCHANNEL_INTERFACE|PortChannel1: no port of it is taken",
      "VLAN_INTERFACE|Vlan10: no port of it is taken",
      "VLAN_SUB_INTERFACE|Ethernet16.7: no port of it is taken",
    ]);
  });

  it.each([
    [
      "INTERFACE",
      { "Ethernet0|10.0.0.0": {} },
      "wrong",
      "INTERFACE|Ethernet0|10.0.0.0: 10.0.0.0 is not an address with a prefix length, such as 10.0.0.1/31",
    ],
    [
      "INTERFACE",
      { "Ethernet0|10.0.0.0/33": {} },
      "wrong",
      "INTERFACE|Ethernet0|10.0.0.0/33: 10.0.0.0/33 is not an address with a prefix length, such as 10.0.0.1/31",
    ],
    [
      "INTERFACE",
      { "Ethernet0|10.0.0.1/24": {}, "Ethernet4|10.0.0.9/31": {} },
      "wrong",
      "INTERFACE|Ethernet4|10.0.0.9/31: overlaps with 10.0.0.1/24 of Ethernet0",
    ],
    [
      "INTERFACE",
      { "Ethernet99|10.0.0.1/24": {} },
      "wrong",
      "INTERFACE|Ethernet99|10.0.0.1/24: there is no PORT|Ethernet99",
    ],
    [
      "VLAN_INTERFACE",
      { "Vlan9|10.0.0.1/24": {} },
      "wrong",
      "VLAN_INTERFACE|Vlan9|10.0.0.1/24: there is no VLAN|Vlan9",
    ],
    [
      "VLAN_SUB_INTERFACE",
      { "Ethernet0.5000|10.0.0.1/24": {} },
      "wrong",
      "VLAN_SUB_INTERFACE|Ethernet0.5000|10.0.0.1/24: 5000 is no VLAN: 1 to 4094",
    ],
    [
      "INTERFACE",
      { Ethernet0: { ipv6_use_link_local_only: "enable" } },
      "differs",
      "INTERFACE|Ethernet0: is not routed, because it has no address but of its link",
    ],
    [
      "INTERFACE",
      { Ethernet0: { vrf_name: "Vrf1" }, "Ethernet0|10.0.0.1/24": {} },
      "differs",
      "INTERFACE|Ethernet0|vrf_name: is not routed: there is one routing table, VRFs are not here",
    ],
    [
      "STATIC_ROUTE",
      { "10.0.0.0": { nexthop: "10.0.0.1" } },
      "wrong",
      "STATIC_ROUTE|10.0.0.0: 10.0.0.0 is not a prefix such as 10.0.0.0/8",
    ],
    [
      "STATIC_ROUTE",
      { "10.0.0.0/8": { nexthop: "there" } },
      "wrong",
      "STATIC_ROUTE|10.0.0.0/8|nexthop: there is not an address",
    ],
    [
      "STATIC_ROUTE",
      { "10.0.0.0/8": { blackhole: "true" } },
      "ignored",
      "STATIC_ROUTE|10.0.0.0/8: no gateway of it is on the link of a port that is taken",
    ],
    [
      "STATIC_ROUTE",
      { "Vrf1|10.0.0.0/8": { nexthop: "10.0.0.1" } },
      "ignored",
      "STATIC_ROUTE|Vrf1|10.0.0.0/8: there is one routing table, VRFs are not here",
    ],
  ])("%s %j is %s", (table, entries, kind, message) => {
    expect(told(convert({ [table]: entries }), kind)).toContain(message);
  });

  it("whatever stands there, a switch takes what comes of it, or it is refused with its place", () => {
    const word = fc.constantFrom(
      "Vlan10",
      "Vlan0",
      "Ethernet0",
      "Ethernet4",
      "Ethernet0.7",
      "PortChannel1",
      "10.0.0.1/24",
      "10.0.1.1/31",
      "::1/64",
      "fe80::1/64",
      "",
      "|",
      "__proto__",
    );
    const key = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join("|"));
    const value = fc.oneof(
      word,
      fc.integer(),
      fc.constant(null),
      fc.constant(true),
      fc.constant("tagged"),
      fc.constant("10"),
      fc.array(word),
    );
    const fields = fc.oneof(
      value,
      fc.dictionary(
        fc.constantFrom("vlanid", "tagging_mode", "vlan", "nexthop", "vrf_name", "admin_status", "NULL"),
        value,
      ),
    );
    const table = fc.oneof(fc.dictionary(key, fields), value);
    const tables = fc.dictionary(
      fc.constantFrom(
        "VLAN",
        "VLAN_MEMBER",
        "VLAN_INTERFACE",
        "INTERFACE",
        "PORTCHANNEL",
        "PORTCHANNEL_MEMBER",
        "PORTCHANNEL_INTERFACE",
        "VLAN_SUB_INTERFACE",
        "STATIC_ROUTE",
        "DEVICE_METADATA",
      ),
      table,
    );
    fc.assert(
      fc.property(tables, (some) => {
        const converted = convert(some);
        const refused = converted.notes.some(({ needed }) => needed);
        if (refused) expect(() => checkConverted(converted)).toThrow("config_db");
        else loadSwitchDaemon("made.yaml", { text: switchYaml(converted) });
      }),
      { numRuns: 300 },
    );
  });
});

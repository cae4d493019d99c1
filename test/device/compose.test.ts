/** Configurations of native workers, for the files of daemons. */
import { describe, expect, it } from "vitest";
import { composeNicWorker, composeSwitchWorker } from "../../src/device/compose.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../src/device/file/load.js";
import { refusalOf } from "../fixtures/refusal.js";

const inspect = () => ({ mtu: 1500, mac: 0x02_57_00_00_00_01 });

describe("a switch daemon", () => {
  const compose = (text: string) => composeSwitchWorker(loadSwitchDaemon("sw0.yaml", { inspect, text }).config);
  const worker = compose(`
ports: [{ interface: veth-a, name: a, rate: 1Gbps }, { interface: veth-b, name: b, namespace: /run/netns/b }]
static_fdb: [{ mac: "02:00:00:00:00:07", port: b }]
ecn: { kmin: 10KB, pmax: 2% }
`);
  const [native] = worker.switches;

  it("is one switch on all its ports, in wall units", () => {
    expect(worker.nics).toEqual([]);
    expect(native).toMatchObject({
      name: "sw0",
      learning: true,
      ageing: 300e9,
      red: { kmin: 10_000, kmax: 200_000, pmax: 0.02 },
      pfc_priorities: 1 << 3,
      scheduler: { strict: 1 << 6 },
      routes: [{ destination_mac: 0x02_00_00_00_00_07, ports: [1] }],
    });
    expect(native?.ports).toMatchObject([
      { name: "a", interface: "veth-a", namespace_fd: -1, rate: 1e9, delay: 0, mtu: 1500 },
      { name: "b", interface: "veth-b", namespace_path: "/run/netns/b", rate: 0, delay: 0, mtu: 1500 },
    ]);
  });

  it("takes no port for what JavaScript has by its name", () => {
    const [usual] = compose("ports: [{ interface: a, name: constructor }, { interface: b }]").switches;
    expect(usual?.ports[0]).toMatchObject({ name: "constructor", mtu: 1500 });
    expect(usual?.ports[0]).not.toHaveProperty("red");
  });

  it("bounds what its ports learn and flood", () => {
    const [bounded] = compose(
      "ports: [{ interface: a, max_learned_addresses: 9, storm_control: { broadcast: 1Mbps, unknown_unicast: 2Mbps, multicast: 3Mbps } }]",
    ).switches;
    expect(bounded?.ports).toMatchObject([{ max_learned_addresses: 9, storm_rates: [1e6, 2e6, 3e6] }]);
    expect(native?.ports).toMatchObject([{ max_learned_addresses: 8192, storm_rates: [0, 0, 0] }, {}]);
  });

  it("has rates that change as they are by then, and those of limits before", () => {
    const text = `ports: [{ interface: a, limits: { 3: { rate: 5Mbps }, 4: { rate: 9Mbps } } }, { interface: b }]
changes:
  - { at: 20ms, port: a, priority: 3, rate: unlimited }
  - { at: 10ms, port: a, rate: 2Mbps }
  - { at: 0ms, port: b, priority: 0, rate: 1Mbps }`;
    const { config } = loadSwitchDaemon("sw0.yaml", { text, inspect });
    const rates = (ms: number) =>
      composeSwitchWorker(config, [], undefined, ms * 1e6).switches[0]?.ports.map(({ priority_rates = [] }) => [
        priority_rates[0],
        priority_rates[3],
        priority_rates[4],
      ]);
    expect(rates(9.9)).toEqual([
      [0, 5e6, 9e6],
      [1e6, 0, 0],
    ]);
    expect(rates(10)?.[0]).toEqual([0, 2e6, 9e6]);
    expect(rates(20)?.[0]).toEqual([0, 0, 9e6]);
  });

  it("has a port's delay, and room for what is under way", () => {
    const [late, far] =
      compose("ports: [{ interface: a, rate: 1Gbps }, { interface: b, rate: 1Gbps, delay: 16ms }]").switches[0]
        ?.ports ?? [];
    expect([late?.delay, far?.delay]).toEqual([0, 16e6]);
    // 2 MB, in frames of 1,000 bytes.
    expect(far?.receive_slots).toBeGreaterThan(2000 + 512);
  });

  it("tells ports their VLANs", () => {
    const [vlans] = compose("ports: [{ interface: a, vlans: { untagged: 10, tagged: [20] } }]").switches;
    expect(vlans?.ports).toMatchObject([{ vlans: { untagged: 10, tagged: [20] } }]);
    expect(native?.ports[0]).not.toHaveProperty("vlans");
  });

  it("takes the kernel's super-frames", () => {
    expect(native?.ports).toMatchObject([{ offloads: true }, { offloads: true }]);
    expect(worker.super_frames).toBeGreaterThan(0);
  });

  it("says how each port reaches its interface, and where the worker runs", () => {
    const text = "workers: [{ cpu: 3, polling: busy }]\nports: [{ interface: a }, { interface: b }]";
    const { config } = loadSwitchDaemon("sw0.yaml", { inspect, text });
    const chosen = { receive: "af_packet", transmit: "af_xdp", xdp_mode: "generic", ring: 128 } as const;
    const given = composeSwitchWorker(config, [chosen]);
    expect(given).toMatchObject({ cpu: 3, polling: "busy" });
    expect(given.switches[0]?.ports[0]).toMatchObject(chosen);
    for (const name of Object.keys(chosen)) expect(given.switches[0]?.ports[1]).not.toHaveProperty(name);
  });

  it("keeps headroom for twenty milliseconds of its fastest port", () => {
    expect(native?.buffer.lateness_headroom).toBe(2_500_000);
    expect(compose("ports: [{ interface: a }]").switches[0]?.buffer.lateness_headroom).toBe(0);
  });

  it("maps PCP only when the file trusts it", () => {
    expect(compose("ports: [{ interface: a }]\ntrust: pcp").switches[0]?.priority_map.trust).toBe("pcp");
    expect(compose("ports: [{ interface: a }]\ntrust: port-default").switches[0]?.priority_map.trust).toBe("port");
  });
});

describe("a NIC daemon", () => {
  const text = `
interface: eth1
address: 10.0.0.1
rate: 1Gbps
burst: 10KB
peers: [{ name: b, address: 10.0.0.2, mac: "02:00:00:00:00:02" }]
queue_pairs:
  - { name: to-b, peer: b, qpn: 0x40, remote_qpn: 0x50, send: { rate: 100Mbps, bytes: 1MB, start: 2s } }
  - { name: from-b, peer: b }
`;
  const worker = composeNicWorker(loadNicDaemon("roce0.yaml", { inspect, text }).config);
  const [native] = worker.nics;

  it("is one NIC with its queue pairs", () => {
    expect(worker.switches).toEqual([]);
    expect(native).toMatchObject({
      name: "roce0",
      port: { interface: "eth1", namespace_fd: -1, rate: 1e9 },
      // 10 KB at 1 Gb/s.
      arrears: 80_000,
      mac: 0x02_57_00_00_00_01,
      first_qpn: 0x40,
      congestion_control: "dcqcn",
      cnp_interval: 50_000,
    });
    // It takes super-frames, and sends none: at this rate packets are spaced.
    expect(native?.port.offloads).toBe(true);
    expect(native?.port).not.toHaveProperty("join");
    const [sender, receiver] = native?.queue_pairs ?? [];
    expect(sender).toMatchObject({
      name: "to-b",
      remote_qpn: 0x50,
      path: {
        destination_mac: 0x02_00_00_00_00_02,
        source_mac: 0x02_57_00_00_00_01,
        source_ip: Buffer.from([10, 0, 0, 1]),
        destination_ip: Buffer.from([10, 0, 0, 2]),
        dscp: 26,
        ecn: 2,
      },
      start: 2e9,
      total_bytes: 1e6,
      rate_cap: 100e6,
    });
    expect(sender).not.toHaveProperty("stop");
    expect(receiver).not.toHaveProperty("start");
    expect(receiver?.remote_qpn).toBe(0x41);
  });

  it("has queue pairs that are reliable where the file says so", () => {
    expect(native?.queue_pairs).toMatchObject([{ reliable: false }, { reliable: false }]);
    const reliable = `${text}transport: { type: rc, retry_count: 3 }`;
    const [nic] = composeNicWorker(loadNicDaemon("roce0.yaml", { inspect, text: reliable }).config).nics;
    const transport = { retry_count: 3, timeout: 14 };
    expect(nic?.queue_pairs).toMatchObject([
      { reliable: true, outstanding: 2, transport },
      { reliable: true, transport },
    ]);
  });

  it("makes up for less where streams are to be even than where programs want their bytes across", () => {
    const arrears = (text: string) => {
      const { config } = loadNicDaemon("roce0.yaml", { inspect, text: `interface: eth1\naddress: 10.0.0.1\n${text}` });
      return composeNicWorker(config).nics[0]?.arrears;
    };
    expect(arrears("rate: 10Gbps")).toBe(25_600); // 32 KB
    expect(arrears("rate: 10Gbps\nprograms: true")).toBe(100_000);
    expect(arrears("rate: 1Gbps\nprograms: true")).toBe(256_000);
    expect(arrears("rate: 10Gbps\nprograms: true\nburst: 1KB")).toBe(800);
  });

  it("joins packets where they need not be spaced", () => {
    const fast = loadNicDaemon("roce0.yaml", { inspect, text: text.replace("rate: 1Gbps", "rate: 25Gbps") });
    expect(composeNicWorker(fast.config).nics[0]?.port.join).toBe(64);
  });

  it("says how it reaches its interface, and where it runs", () => {
    const { config } = loadNicDaemon("roce0.yaml", { inspect, text: `${text}worker: { cpu: 2, polling: adaptive }` });
    const chosen = { receive: "af_xdp", transmit: "af_xdp", xdp_mode: "native", ring: 512 } as const;
    const given = composeNicWorker(config, chosen);
    expect(given).toMatchObject({ cpu: 2, polling: "adaptive" });
    expect(given.nics[0]?.port).toMatchObject(chosen);
    expect(given.nics[0]?.port).not.toHaveProperty("arp_address");
    expect(composeNicWorker(config, chosen, ["10.0.0.1"]).nics[0]?.port.arp_address).toBe(0x0a_00_00_01);
  });

  it("has an address of each IP version, and a VLAN that all it sends is tagged with", () => {
    const { config } = loadNicDaemon("roce0.yaml", {
      inspect,
      text: `interface: eth1
address: [10.0.0.1, "fd00:0::1"]
vlan: 100
programs: true
peers: [{ name: b, address: "fd00::2", mac: "02:00:00:00:00:02" }]
queue_pairs: [{ name: to-b, peer: b, priority: 5 }]
`,
    });
    expect(config.addresses).toEqual(["10.0.0.1", "fd00::1"]);
    expect(config.port.backend.receive).toBe("af_packet");
    const [nic] = composeNicWorker(config, undefined, ["fd00::1"]).nics;
    expect(nic).toMatchObject({ vlan: 100, port: { echo_ipv6: true } });
    expect(nic?.port).not.toHaveProperty("arp_address");
    expect(nic?.addresses?.map(({ version }) => version)).toEqual([4, 6]);
    const v6 = (last: number) => Buffer.from([0xfd, ...Array(14).fill(0), last]);
    const ips = { ip_version: 6, source_ip: v6(1), destination_ip: v6(2) };
    expect(nic?.queue_pairs[0]?.path).toMatchObject({ ...ips, tagged: true, vlan_tci: (5 << 13) | 100 });
  });

  it("has room for a full frame", () => {
    expect(native?.port.slot_bytes).toBe(1518);
    expect(worker.packet_bytes).toBeGreaterThanOrEqual(1518);
  });

  it("has reaction points of QCN in its place where the file says so", () => {
    const qcn = "congestion: { algorithm: qcn, profile: netfpga }\nqcn: { priorities: [3, 5], cn_tag: false }";
    const { config } = loadNicDaemon("roce0.yaml", { inspect, text: `${text}${qcn}` });
    expect(composeNicWorker(config).nics[0]).toMatchObject({
      congestion_control: "qcn",
      qcn: { rpgTimeReset: 25e6, rpgAiRate: 500_000 },
      cn_priorities: 0b101000,
      cn_tag: false,
      token_bucket: { tick: 16_000 },
    });
    expect(composeNicWorker(config).nics[0]).not.toHaveProperty("rpgs");
    const groups =
      "qcn: { priorities: [3, 5], reaction_point_groups: { 5: { rpgAiRate: 1% } } }\ncongestion: { algorithm: qcn }";
    const own = loadNicDaemon("roce0.yaml", { inspect, text: `${text}${groups}` }).config;
    expect(composeNicWorker(own).nics[0]?.rpgs?.map((group) => group.rpgAiRate)).toEqual([
      5e6,
      5e6,
      5e6,
      5e6,
      5e6,
      own.port.rate / 100,
      5e6,
      5e6,
    ]);
    const outside = `${text}qcn: { reaction_point_groups: { 5: {} } }\ncongestion: { algorithm: qcn }`;
    expect(refusalOf(() => loadNicDaemon("roce0.yaml", { inspect, text: outside }))).toContain(
      "qcn.reaction_point_groups.5: 5 is no CNPV of roce0, which has 3\n  hint: name it in qcn.priorities, too",
    );
  });

  it("has no reaction point without DCQCN", () => {
    const { config } = loadNicDaemon("roce0.yaml", { inspect, text: `${text}congestion: { algorithm: none }` });
    expect(composeNicWorker(config).nics[0]).not.toHaveProperty("dcqcn");
  });
});

/** switch.yaml and nic.yaml: what is made of good ones, and what is said about bad ones. */
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../../src/device/file/load.js";
import type { InspectInterface } from "../../../src/host/interface.js";
import { refusalOf } from "../../fixtures/refusal.js";

const SWITCH = `
name: sw0
ports:
  - { interface: veth-a, name: a, rate: 10Gbps }
  - { interface: veth-b, namespace: /run/netns/b }
static_fdb: [{ mac: "02:00:00:00:00:01", port: a }]
`;
const NIC = `
name: roce0
interface: eth1
address: 10.0.0.1
peers: [{ name: b, address: 10.0.0.2, mac: "02:00:00:00:00:02" }]
queue_pairs:
  - { name: to-b, peer: b, send: { rate: 1Gbps } }
  - { name: from-b, peer: b, remote_qpn: 0x20 }
`;

const inspect: InspectInterface = (name) => {
  if (name === "gone")
    throw new WeirError("there is no interface gone", { hint: "ip link lists the interfaces there are" });
  return { mtu: name === "veth-b" ? 9000 : 1500, mac: 0x02_57_00_00_00_01 };
};
const switchOf = (text: string, ...set: string[]) => loadSwitchDaemon("sw0.yaml", { set, inspect, text });
const nicOf = (text: string, ...set: string[]) => loadNicDaemon("roce0.yaml", { set, inspect, text });

describe("switch.yaml", () => {
  it("writes telemetry at ports whose rate it knows", () => {
    const telemetry = (...more: string[]) =>
      switchOf(SWITCH, "telemetry=true", "ports.1.rate=1Gbps", "pfc.enabled=false", ...more);
    expect(switchOf(SWITCH).config.telemetry).toBe(false);
    expect(telemetry()).toMatchObject({ config: { telemetry: true }, warnings: [] });
    expect(telemetry("ports.0.limits={ 3: { rate: 1Gbps } }").warnings).toEqual([
      "switch sw0: queues of a are slower than the link, whose rate telemetry tells: a queue stands there under HPCC",
    ]);
    expect(refusalOf(() => switchOf(SWITCH, "telemetry=true"))).toContain(
      "ports.1.rate: veth-b has none, and telemetry tells it to senders\n  hint: give the rate of the link, or telemetry: false",
    );
  });

  it("is filled in with the defaults of a scenario's switch, and what the interfaces are like", () => {
    const { config, warnings } = switchOf(SWITCH);
    expect(warnings).toEqual([]);
    const mac = 0x02_57_00_00_00_01;
    expect(config).toMatchObject({
      kind: "switch",
      name: "sw0",
      ports: [
        { name: "a", interface: "veth-a", namespace: undefined, rate: 10e9, mtu: 1500, mac },
        { name: "veth-b", interface: "veth-b", namespace: "/run/netns/b", rate: 0, mtu: 9000, mac },
      ],
      static_fdb: [{ mac: 0x02_00_00_00_00_01, port: "a" }],
      metrics: { address: "127.0.0.1", port: 9464, per_qp: false, node_infiniband: false },
      control: undefined,
    });
    // Two MTU of the largest port.
    expect(config.switch).toMatchObject({
      name: "sw0",
      forwarding: "learning",
      ageing: 300e9,
      trust: "dscp",
      ecn: { enabled: true, kmin: 5000 },
      buffer: { total: 12e6, xon_offset: 18_000 },
    });
  });

  it("is named after its file, and can do without metrics", () => {
    const { config } = switchOf("ports: [{ interface: veth-a }]\nmetrics: false");
    expect(config).toMatchObject({ name: "sw0", metrics: undefined });
  });

  it("keeps a port's own MTU, and sections as written", () => {
    const { config } = switchOf(SWITCH, "ports.1.mtu=4000", "ecn.kmax=1MB", "forwarding=static", "trust=pcp");
    expect(config.ports[1]?.mtu).toBe(4000);
    expect(config.switch).toMatchObject({ ecn: { kmax: 1e6 }, forwarding: "static", trust: "pcp" });
  });

  it("warns of ECN and PFC on ports without a rate, where they were asked for", () => {
    expect(switchOf("ports: [{ interface: veth-a }]").warnings).toEqual([]);
    expect(switchOf("ports: [{ interface: veth-a }]\necn: { kmin: 9KB }\npfc: {}").warnings).toEqual([
      "switch sw0: the port to veth-a has no rate, so hardly a queue forms there: ECN and PFC will not act",
    ]);
  });

  it("bounds what each port may learn and flood", () => {
    const { config, warnings } = switchOf(`
ports:
  - { interface: a, max_learned_addresses: 100, storm_control: { broadcast: 10Mbps, multicast: unlimited } }
  - { interface: b }`);
    expect(
      config.ports.map(({ max_learned_addresses, storm_control }) => [max_learned_addresses, storm_control]),
    ).toEqual([
      [100, { broadcast: 10e6, unknown_unicast: 0, multicast: 0 }],
      [8192, { broadcast: 0, unknown_unicast: 0, multicast: 0 }],
    ]);
    expect(warnings).toEqual([]);
    expect(
      switchOf("ports: [{ interface: a, storm_control: { broadcast: 1Mbps } }]\nforwarding: static").warnings,
    ).toEqual(["switch sw0: storm_control of a has nothing to do: with forwarding static nothing is flooded"]);
    const wrong = "ports: [{ interface: a, max_learned_addresses: 0, storm_control: { unicast: 1Mbps } }]";
    expect(refusalOf(() => switchOf(wrong))).toContain("ports.0.max_learned_addresses: 0 is too small");
    expect(refusalOf(() => switchOf(wrong))).toContain("ports.0.storm_control.unicast: unknown field");
  });

  it("refuses thresholds and headroom under which no frame of a lossless priority could ever come in", () => {
    const text = (buffer: string, mtu = 1500) =>
      `ports: [{ interface: a, rate: 1Gbps, mtu: ${mtu} }, { interface: b, rate: 1Gbps, mtu: ${mtu} }]\nbuffer: ${buffer}`;
    const small = "{ mode: static, threshold: 1KB, headroom: 1KB, xon_offset: 100B }";
    expect(refusalOf(() => switchOf(text(small)))).toBe(
      "switch sw0.yaml:2:41: buffer.headroom: 1 KB, and a threshold of 1 KB: a lossless frame of 1518 bytes, which the ports' MTU allows, " +
        "would never come in\n  hint: must be at least 1518 bytes, or the threshold that large",
    );
    expect(refusalOf(() => switchOf(text("{ total: 17KB, headroom: 1KB, beta: 1 }")))).toContain(
      "a threshold of 125 B",
    );
    const accepted = [
      text(small, 900),
      text("{ mode: static, threshold: 1KB, headroom: 1518B, xon_offset: 100B }"),
      text("{ mode: static, threshold: 1518B, headroom: 1KB, xon_offset: 100B }"),
      `${text(small)}\npfc: { enabled: false }`,
    ];
    for (const file of accepted)
      expect(
        refusalOf(() => switchOf(file)),
        file,
      ).toBe("accepted");
  });

  it("says by which backends and on which workers its ports run", () => {
    const { config } = switchOf(`
workers: [{ cpu: 1, polling: adaptive }, {}]
ports:
  - { interface: a, backend: af_xdp, receive: af_packet, xdp_mode: generic, ring: 256, worker: 1 }
  - { interface: b }
  - { interface: c, backend: live }
  - { interface: d, receive: af_packet, transmit: live }`);
    expect(config.workers).toEqual([
      { cpu: 1, polling: "adaptive" },
      { cpu: -1, polling: "interrupt" },
    ]);
    expect(config.ports.map(({ backend, worker }) => ({ ...backend, worker }))).toEqual([
      { receive: "af_packet", transmit: "af_xdp", xdp_mode: "generic", ring: 256, worker: 1 },
      { receive: "auto", transmit: "auto", xdp_mode: "auto", ring: 512, worker: 0 },
      { receive: "af_xdp", transmit: "live", xdp_mode: "auto", ring: 512, worker: 0 },
      { receive: "af_packet", transmit: "live", xdp_mode: "auto", ring: 512, worker: 0 },
    ]);
    expect(switchOf("ports: [{ interface: a }]").config.workers).toEqual([{ cpu: -1, polling: "interrupt" }]);
  });

  it("warns of workers that have nothing to do, or take each other's CPU", () => {
    const workers = "workers: [{ cpu: 2, polling: busy }, { cpu: 2 }, { cpu: 3 }]";
    const { warnings } = switchOf(`${workers}\nports: [{ interface: a }, { interface: b, worker: 1 }]`);
    expect(warnings).toEqual([
      "workers.0 and workers.1 share CPU 2, and a busy one never gives it up",
      "workers.2 has no port",
    ]);
  });

  it("refuses a CPU that the host does not have, where it is known", () => {
    const text = "workers: [{ cpu: 7 }, { cpu: 8 }, {}]\nports: [{ interface: a }]";
    expect(refusalOf(() => loadSwitchDaemon("sw0.yaml", { inspect, cpus: 8, text }))).toBe(
      "switch sw0.yaml:1:25: workers.1.cpu: 8: this host has no such CPU\n  hint: must be between 0 and 7",
    );
    expect(refusalOf(() => loadSwitchDaemon("sw0.yaml", { inspect, cpus: 9, text }))).toBe("accepted");
    expect(refusalOf(() => switchOf(text))).toBe("accepted");
  });

  it.each([
    ["name: x", "switch sw0.yaml:1:1: ports: is missing"],
    [
      "ports: [{ interface: a, worker: 1 }]",
      "switch sw0.yaml:1:25: ports.0.worker: 1: there is no such one, but one worker\n  hint: must be 0",
    ],
    [
      "workers: [{}, {}]\nports: [{ interface: a, worker: 2 }]",
      "switch sw0.yaml:2:25: ports.0.worker: 2: there is no such one, but 2 workers\n  hint: must be between 0 and 1",
    ],
    [
      "ports: [{ interface: a, backend: xdp }]",
      "switch sw0.yaml:1:25: ports.0.backend: xdp is not one of auto, af_packet, af_xdp",
    ],
    [
      "ports: [{ interface: a, receive: live }]",
      "switch sw0.yaml:1:25: ports.0.receive: live is not one of auto, af_packet, af_xdp",
    ],
    [
      "ports: [{ interface: a, ring: 500 }]",
      "switch sw0.yaml:1:25: ports.0.ring: 500 is not one of 64, 128, 256, 512, 1024, 2048, 4096",
    ],
    [
      "workers: [{ polling: spin }]\nports: [{ interface: a }]",
      "switch sw0.yaml:1:13: workers.0.polling: spin is not one of busy, adaptive, interrupt",
    ],
    [
      "workers: [{ cpu: -1 }]\nports: [{ interface: a }]",
      "switch sw0.yaml:1:13: workers.0.cpu: -1 is too small\n  hint: must be at least 0",
    ],
    ["ports: []", "switch sw0.yaml:1:1: ports: a list is too short\n  hint: must be at least 1"],
    ["ports: [{}]", "switch sw0.yaml:1:9: ports.0.interface: is missing"],
    [
      "ports: [{ interface: gone }]",
      "switch sw0.yaml:1:11: ports.0.interface: there is no interface gone\n  hint: ip link lists the interfaces there are",
    ],
    [
      "ports: [{ interface: a-name-that-is-too-long }]",
      "switch sw0.yaml:1:11: ports.0.interface: a-name-that-is-too-long is not the name of an interface: up to 15 characters without blanks or /",
    ],
    [
      "ports: [{ interface: a, rate: 10gbps }]",
      "switch sw0.yaml:1:25: ports.0.rate: 10gbps: unknown rate unit; did you mean 10Gbps?",
    ],
    [
      "ports: [{ interface: a, name: x }, { interface: b, name: x }]",
      "switch sw0.yaml:1:52: ports.1.name: x is there twice\n  hint: every port needs a name of its own",
    ],
    [
      "ports: [{ interface: a, name: x }, { interface: a, name: y }]",
      "switch sw0.yaml:1:38: ports.1.interface: a is there twice\n  hint: an interface makes one port",
    ],
    [
      "ports: [{ interface: port1 }]\nstatic_fdb: [{ mac: 02:00:00:00:00:01, port: port2 }]",
      "switch sw0.yaml:2:40: static_fdb.0.port: unknown port port2\n  hint: did you mean port1?",
    ],
    [
      "ports: [{ interface: a }, { interface: b }]\nstatic_fdb: [{ mac: 02:00:00:00:00:01, port: a }, { mac: 02:00:00:00:00:01, port: b }]",
      "switch sw0.yaml:2:53: static_fdb.1.mac: 02:00:00:00:00:01 is there twice\n  hint: an address is at one port",
    ],
    [
      "ports: [{ interface: a }]\nstatic_fdb: [{ mac: 02-00, port: a }]",
      "switch sw0.yaml:2:16: static_fdb.0.mac: 02-00 is not a MAC address such as 02:00:00:00:00:01",
    ],
    [
      "ports: [{ interface: a }]\necn: { kmin: 300KB }",
      "switch sw0.yaml:2:8: ecn.kmin: 300 KB is greater than kmax 200 KB\n  hint: kmin must be between 0 and kmax",
    ],
    [
      "ports: [{ interface: a }]\nbuffer: { total: 100KB }",
      "switch sw0.yaml:2:11: buffer.total: 100 KB is too small for the headroom of switch sw0: 8 priorities x 1 ports x 22.4 KB = 179.2 KB\n  hint: must be greater than 179.2 KB, or reserve for fewer priorities",
    ],
    [
      "ports: [{ interface: a }]\nlldp: false\ndcbx: true",
      "switch sw0.yaml:3:1: dcbx: it is told by LLDP, which is off\n  hint: leave out `lldp: false`, or `dcbx`",
    ],
    [
      "ports: [{ interface: port1 }]\ndcbx: { ports: { port2: { willing: true } } }",
      "switch sw0.yaml:2:18: dcbx.ports.port2: unknown port port2\n  hint: did you mean port1?",
    ],
    [
      "ports: [{ interface: a }]\nlldp: { tx_interval: 0s }",
      "switch sw0.yaml:2:9: lldp.tx_interval: 0s is out of range\n  hint: must be 1 s to 3600 s",
    ],
    [
      "ports: [{ interface: a }]\nforwarding: hub",
      "switch sw0.yaml:2:1: forwarding: hub is not one of learning, static",
    ],
    [
      "ports: [{ interface: a }]\nmetrics: { port: 0 }",
      "switch sw0.yaml:2:12: metrics.port: 0 is too small\n  hint: must be at least 1",
    ],
    [
      "ports: [{ interface: a }]\nmetrics: { address: '' }",
      "switch sw0.yaml:2:12: metrics.address:  is too short\n  hint: must be at least 1",
    ],
    ["ports: [{ interface: a }]\ncontrol: sw0.sock", "switch sw0.yaml:2:1: control: give an absolute path"],
    ["ports: [{ interface: a }]\npcf: {}", "switch sw0.yaml:2:1: pcf: unknown field\n  hint: did you mean pfc?"],
    ["ports: [", "switch sw0.yaml:1:9: what [ begins has no ]"],
  ])("%j is refused with a reason", (text, expected) => {
    expect(refusalOf(() => switchOf(text))).toContain(expected);
  });
});

describe("nic.yaml", () => {
  it("is filled in with the defaults of a scenario's host and switch", () => {
    const { config, warnings } = nicOf(NIC);
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      kind: "nic",
      name: "roce0",
      port: { name: "eth1", interface: "eth1", rate: 10e9, mtu: 1500, mac: 0x02_57_00_00_00_01 },
      address: "10.0.0.1",
      host: { path_mtu: 1024, initial_rate: 10e9, cnp: { dscp: 48, priority: 6 }, receive_buffer: { xoff: 5e5 } },
      classes: { pfc: { enabled: true, priorities: [3] }, trust: "dscp" },
      congestion: { algorithm: "dcqcn", profile: "paper-sigcomm15" },
      metrics: { address: "127.0.0.1", port: 9465 },
    });
    const peer = { name: "b", address: "10.0.0.2", mac: 0x02_00_00_00_00_02 };
    const send = { operation: "write", message: 4e6, rate: 1e9, bytes: undefined, start: 0, outstanding: 2 };
    expect(config.queue_pairs).toEqual([
      { name: "to-b", peer, qpn: 0x11, remote_qpn: 0x11, priority: 3, dscp: 26, send },
      { name: "from-b", peer, qpn: 0x12, remote_qpn: 0x20, priority: 3, dscp: 26, send: undefined },
    ]);
  });

  it("carries messages as they come, or by acknowledged connections", () => {
    expect(nicOf(NIC).config.transport).toMatchObject({ type: "stream" });
    const reliable = nicOf(NIC, "transport=rc", "queue_pairs.0.send.outstanding=16").config;
    expect(reliable.transport).toMatchObject({ type: "rc", timeout: 14, retry_count: 7 });
    expect(reliable.queue_pairs[0]?.send).toMatchObject({ outstanding: 16 });
    const impatient = nicOf(NIC, "transport={ type: rc, timeout: 8 }").config;
    expect(impatient.transport).toEqual({ ...reliable.transport, timeout: 8 });
  });

  it("takes a peer by its address alone, and its MAC address from `peers` where it is there", () => {
    const peerOf = (...set: string[]) => nicOf(NIC, ...set).config.queue_pairs[0]?.peer;
    expect(peerOf("queue_pairs.0.peer=10.0.0.9")).toEqual({ name: "10.0.0.9", address: "10.0.0.9", mac: undefined });
    expect(peerOf("queue_pairs.0.peer=10.0.0.2")).toMatchObject({ name: "b", mac: 0x02_00_00_00_00_02 });
    const both = "address=[10.0.0.1, fd00::1]";
    expect(peerOf(both, "queue_pairs.0.peer=FD00:0::2")).toMatchObject({ name: "fd00::2", address: "fd00::2" });
  });

  it("takes percentages of a rate from its own line rate, and DSCPs from its own map", () => {
    const { config } = nicOf(NIC, "rate=1Gbps", "congestion.parameters.rpg_ai_rate=1%", "dscp_map=sonic-azure");
    expect(config.congestion.parameters).toMatchObject({ rpg_ai_rate: 10e6 });
    expect(config.queue_pairs[0]?.dscp).toBe(3);
  });

  it("is under congestion control by round-trip times where it has acknowledgements", () => {
    const swift = set("congestion={ algorithm: swift, parameters: { swift_hops: 3 } }", "transport=rc");
    expect(nicOf(NIC, ...swift).config.congestion.parameters).toMatchObject({ swift_hops: 3, swift_base_target: 20e3 });
    const timely = set("congestion={ algorithm: timely, variant: timely-patched }", "queue_pairs=[]");
    expect(nicOf(NIC, ...timely).config.congestion.parameters).toMatchObject({ patched: true, timely_delta: 10e6 });
  });

  it("is under HPCC where it has acknowledgements, and says what else that takes", () => {
    const { config, warnings } = nicOf(NIC, ...set("congestion={ algorithm: hpcc }", "transport=rc", "mtu=1152"));
    expect(config.congestion.parameters).toMatchObject({ hpcc_base_rtt: 13e3 });
    expect(warnings).toEqual([
      "congestion: hpcc slows by what switches write into its packets (telemetry: true of weir switch), and peers need the same algorithm: others drop its packets as unknown",
    ]);
  });

  it.each(["timely", "swift", "dctcp", "nscc", "hpcc"])(
    "runs %s with each option of the transport that does not contradict another, and for programs",
    (algorithm) => {
      const transport =
        "transport={ type: rc, recovery: selective-repeat, spraying: reps, reordering: 250, trim_naks: true }";
      const chosen = set(`congestion.algorithm=${algorithm}`, transport, "trimmed_dscp=40");
      const { config, warnings } = nicOf(NIC, ...chosen);
      expect(config.transport).toMatchObject({ spraying: "reps", trim_naks: true });
      expect(nicOf(NIC, ...chosen, "programs=true").warnings).toEqual(warnings);
    },
  );

  it("has metrics of all queue pairs, of some, or of none", () => {
    for (const per_qp of [true, false, 20]) {
      expect(nicOf(NIC, `metrics.per_qp=${per_qp}`).config.metrics).toMatchObject({ per_qp, port: 9465 });
    }
  });

  it("warns when CNPs share the data's priority", () => {
    expect(nicOf(NIC, "cnp.priority=3").warnings).toEqual([
      "CNPs have the priority 3 of the data, so congestion and pauses delay them too",
    ]);
  });

  const set = (...assignments: string[]) => assignments;
  it.each([
    [set("address=10.0.0"), "nic roce0.yaml (--set): address: 10.0.0 is not an IP address such as 10.0.0.1 or fd00::1"],
    [
      set("address=[10.0.0.1, 10.0.0.3, 10.0.0.1]"),
      "nic roce0.yaml (--set): address: 10.0.0.1 is there twice\n  hint: addresses must differ",
    ],
    [set("address=fd00::1"), "cannot be reached from fd00::1"],
    [set("address=[10.0.0.1, fd00::1]", "receive=af_xdp"), "af_xdp does not receive IPv6 neighbour solicitations"],
    [set("vlan=4095"), "vlan: 4095 is too large"],
    [
      set("interface=gone"),
      "nic roce0.yaml (--set): interface: there is no interface gone\n  hint: ip link lists the interfaces there are",
    ],
    [
      set("path_mtu=4096"),
      "nic roce0.yaml (--set): path_mtu: 4096 needs an MTU of 4160, but eth1 has 1500\n  hint: use path_mtu: 1024, or an MTU of 4160",
    ],
    [
      set("initial_rate=20Gbps"),
      "nic roce0.yaml (--set): initial_rate: 20 Gb/s is more than the line rate 10 Gb/s\n  hint: must be at most `rate`",
    ],
    [set("queue_pairs.0.peer=c"), "nic roce0.yaml (--set): queue_pairs.0.peer: unknown peer c\n  hint: known: b"],
    [
      set("queue_pairs.0.peer=fd00::2"),
      "nic roce0.yaml (--set): queue_pairs.0.peer: fd00::2 cannot be reached from 10.0.0.1\n  hint: give the NIC an address of the same IP version too",
    ],
    [set("transport=tcp"), "transport: tcp is not one of stream, rc"],
    [
      set("transport={ type: rc, timeout: 0 }"),
      "transport.timeout: 0 waits for a peer that is gone without end\n  hint: 1 to 31; 14 is 67 ms",
    ],
    [
      set("transport=rc", "queue_pairs.0.send.message=2GB"),
      "queue_pairs.0.send.message: 2000000000 bytes are more than a reliable connection's message has\n  hint: at most 1 GiB, or transport: stream",
    ],
    [
      set("queue_pairs.0.qpn=0x30", "queue_pairs.1.qpn=0x30"),
      "nic roce0.yaml (--set): queue_pairs.1.qpn: 0x30 does not follow the one before\n  hint: queue pairs are numbered in order: 0x31",
    ],
    [
      set("queue_pairs.1.name=to-b"),
      "nic roce0.yaml (--set): queue_pairs.1.name: to-b is there twice\n  hint: names must differ",
    ],
    [
      set("receive_buffer.xon=900KB"),
      "nic roce0.yaml (--set): receive_buffer.xon: 900 KB is more than xoff 500 KB\n  hint: xon must be between 0 and xoff",
    ],
    [
      set("congestion.profile=mlx4"),
      "nic roce0.yaml (--set): congestion.profile: mlx4 is not one of paper-sigcomm15, mlx5, mellanox-overview, ns3-rdma, hpcc-ns3, otg, 802.1qau, netfpga, shu, timely-sigcomm15, timely-snippet\n  hint: did you mean mlx5?",
    ],
    [
      set("congestion={ algorithm: timely }"),
      "congestion.algorithm: timely needs acknowledgements, which transport.type stream does not have\n  hint: use transport: { type: rc }, or algorithm: dcqcn",
    ],
    [
      set("congestion={ algorithm: dctcp }"),
      "congestion.algorithm: dctcp needs acknowledgements, which transport.type stream does not have\n  hint: use transport: { type: rc }, or algorithm: dcqcn",
    ],
    [
      set("congestion={ algorithm: hpcc }"),
      "congestion.algorithm: hpcc needs acknowledgements, which transport.type stream does not have\n  hint: use transport: { type: rc }, or algorithm: dcqcn",
    ],
    [
      set("congestion={ algorithm: hpcc }", "transport=rc", "mtu=1151"),
      "path_mtu: 1024 with hpcc's telemetry needs an MTU of 1152, but eth1 has 1151\n  hint: use path_mtu: 512, or an MTU of 1152",
    ],
    [
      set("address=[10.0.0.1, fd00::1]", "queue_pairs.0.peer=fd00::2", "path_mtu=1024", "mtu=1107"),
      "path_mtu: 1024 with IPv6 needs an MTU of 1108, but eth1 has 1107\n  hint: use path_mtu: 512, or an MTU of 1108",
    ],
    [
      set(
        "address=[10.0.0.1, fd00::1]",
        "queue_pairs.0.peer=fd00::2",
        "congestion={ algorithm: hpcc }",
        "transport=rc",
        "mtu=1171",
      ),
      "path_mtu: 1024 with IPv6 and hpcc's telemetry needs an MTU of 1172, but eth1 has 1171\n  hint: use path_mtu: 512, or an MTU of 1172",
    ],
    [set("metrics.per_qp=0"), "nic roce0.yaml (--set): metrics.per_qp: 0 is too small\n  hint: must be at least 1"],
    [
      set("metrics.per_qp=many"),
      "nic roce0.yaml (--set): metrics.per_qp: give true, false, or a number from 1 to 4096",
    ],
    [set("ecn={kmin: 5KB}"), "nic roce0.yaml (--set): ecn: unknown field"],
  ])("%j is refused with a reason", (assignments, expected) => {
    expect(refusalOf(() => nicOf(NIC, ...assignments))).toContain(expected);
  });

  it("tells of several problems at once", () => {
    const text = refusalOf(() => nicOf(NIC, "interface=gone", "queue_pairs.0.peer=c", "queue_pairs.1.peer=d"));
    expect(text).toMatch(/^nic roce0\.yaml: 3 problems\n {2}--set interface: there is no interface gone\n/);
  });
});

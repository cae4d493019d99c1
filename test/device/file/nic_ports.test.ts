/** nic.yaml with several ports: what each has, and what of it is refused, where. */
import { describe, expect, it } from "vitest";
import { loadNicDaemon } from "../../../src/device/file/load.js";
import { fileKind } from "../../../src/scenario/file_kind.js";
import { refusalOf } from "../../fixtures/refusal.js";

const inspect = (name: string) => ({ mtu: name === "eth1" ? 9000 : 1500, mac: name === "eth1" ? 2 : 1 });
const load = (text: string) => loadNicDaemon("roce.yaml", { inspect, text, cpus: 2 });
const all = (text: string) => {
  const { config, others } = load(text);
  return [config, ...others];
};

const kTwo = `
rate: 25Gbps
pfc: { priorities: [3] }
congestion: { algorithm: qcn, parameters: { rpgGd: 7 } }
peers: [{ name: far, address: 10.0.9.9 }]
ports:
  - { interface: eth0, address: 10.0.0.1 }
  - interface: eth1
    address: [10.0.1.1, "fd00::1"]
    rate: 1Gbps
    congestion: { parameters: { rpgAiRate: 1% } }
    queue_pairs: [{ name: out, peer: far }]
`;

describe("ports of a NIC", () => {
  it("are NICs of their own, with what the file says of all and what each says itself", () => {
    const { name, config, others, warnings } = load(kTwo);
    expect([name, warnings]).toEqual(["roce", []]);
    const [first, second] = [config, others[0]];
    expect(others).toHaveLength(1);
    expect([first.name, second?.name]).toEqual(["roce_0", "roce_1"]);
    expect(first).toMatchObject({ address: "10.0.0.1", port: { interface: "eth0", rate: 25e9, mtu: 1500, mac: 1 } });
    expect(second).toMatchObject({
      addresses: ["10.0.1.1", "fd00::1"],
      port: { interface: "eth1", rate: 1e9, mtu: 9000, mac: 2 },
      congestion: { algorithm: "qcn", parameters: { rpgAiRate: 10e6, gd: 1 / 128 } },
      queue_pairs: [{ name: "out", peer: { address: "10.0.9.9" } }],
    });
    expect(first.congestion).toMatchObject({ parameters: { rpgAiRate: 5e6 } });
    expect(first.queue_pairs).toEqual([]);
  });

  it("go by their names, and one by its own where it is alone", () => {
    const named = all(
      "name: card\nports: [{ name: mlx5_0, interface: a, address: 10.0.0.1 }, { interface: b, address: 10.0.0.2 }]",
    );
    expect(named.map(({ name }) => name)).toEqual(["mlx5_0", "card_1"]);
    const alone = load("interface: a\naddress: 10.0.0.1");
    expect([alone.name, alone.config.name, alone.others]).toEqual(["roce", "roce", []]);
  });

  it("may have metrics in common, and DCBX each its own", () => {
    const [one, two] = all(
      "dcbx: true\nmetrics: { port: 1 }\nports: [{ interface: a, address: 10.0.0.1 }, { interface: b, address: 10.0.0.2, dcbx: { willing: false } }]",
    );
    expect([one?.dcbx?.willing, two?.dcbx?.willing]).toEqual([true, false]);
    expect([one?.metrics?.port, two?.metrics?.port]).toEqual([1, 1]);
  });

  it.each([
    ["ports: [{ interface: a }]", "nic roce.yaml:1:9: ports.0.address: is missing"],
    ["address: 10.0.0.1", "nic roce.yaml:1:1: interface: is missing"],
    ["ports: [{ address: 10.0.0.1, metrics: false }]", "ports.0.metrics: unknown field"],
    [
      "ports: [{ interface: a, address: 10.0.0.1 }, { interface: b, address: 10.0.0.1 }]",
      "ports.1.address: 10.0.0.1 is another port's, too\n  hint: each port has addresses of its own",
    ],
    [
      "ports: [{ interface: a, address: 10.0.0.1 }, { interface: a, address: 10.0.0.2 }]",
      "ports.1.interface: a is another port's, too\n  hint: an interface serves one port",
    ],
    [
      "ports: [{ name: x, interface: a, address: 10.0.0.1 }, { name: x, interface: b, address: 10.0.0.2 }]",
      "ports.1.name: x is another port's, too",
    ],
    [
      "dashboard: true\nports: [{ interface: a, address: 10.0.0.1 }, { interface: b, address: 10.0.0.2 }]",
      "nic roce.yaml:1:1: dashboard: a dashboard shows one NIC, and there are several ports",
    ],
    [
      "rate: 1Gbps\nports: [{ interface: a, address: 10.0.0.1 }, { interface: b, address: 10.0.0.2, initial_rate: 2Gbps }]",
      "ports.1.initial_rate: 2 Gb/s is more than the line rate 1 Gb/s",
    ],
    [
      "initial_rate: 2Gbps\nports: [{ interface: a, address: 10.0.0.1, rate: 1Gbps }]",
      "nic roce.yaml:1:1: initial_rate: 2 Gb/s is more than the line rate 1 Gb/s",
    ],
    [
      "ports: [{ interface: a, address: 10.0.0.1, worker: { cpu: 5 } }]",
      "ports.0.worker.cpu: 5: this host has no such CPU",
    ],
  ])("%s is refused, where it is written", (text, message) => {
    expect(refusalOf(() => load(text))).toContain(message);
  });

  it("have warnings that say whose they are", () => {
    const { warnings } = load(
      "ports: [{ interface: a, address: 10.0.0.1, cnp: { priority: 3 }, peers: [{ name: x, address: 10.0.0.9 }], queue_pairs: [{ name: q, peer: x }] }]",
    );
    expect(warnings).toEqual([expect.stringMatching(/^ports\.0: CNPs have the priority 3 of the data/)]);
  });

  it("tell a nic.yaml from a switch.yaml, whose ports have no addresses", () => {
    expect(fileKind({ ports: [{ interface: "a", address: "10.0.0.1" }], pfc: {} })).toBe("nic");
    expect(fileKind({ ports: [{ interface: "a" }] })).toBe("switch");
    expect(fileKind({ ports: [null, 1] })).toBe("switch");
  });
});

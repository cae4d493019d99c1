/** Topologies and flows in the columns of HPCC's simulator, of our own. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { readHpccFlows } from "../../../src/scenario/convert/hpcc_flows.js";
import { readHpccTopology } from "../../../src/scenario/convert/hpcc_topology.js";
import { betweenNics } from "../../../src/scenario/convert/nics.js";
import { scenarioFile } from "../../../src/scenario/convert/scenario.js";
import { parseScenarioText } from "../../../src/scenario/scenario.js";

/** Four hosts under two switches, whose link is faster, longer and loses. */
const kTopology = `6 2 5
4 5
0 4 25Gbps 1000ns 0
1 4 25Gbps 0.001ms 0.000000
2 5 25Gbps 1us 0
3 5 25Gbps 1us 0
4 5 100Gbps 5us 0.001

src0 dst0 rate delay error_rate
`;

/** Hosts 0 and 2 have two links, and 0 is nearer to 2 by its second: switch 4 is that of both. */
const kTwoLinks = `7 4 8
3 4 5 6
0 3 25Gbps 1us 0
0 4 50Gbps 1us 0
1 5 25Gbps 1us 0
2 4 25Gbps 1us 0
2 5 25Gbps 1us 0
3 6 100Gbps 1us 0
4 6 100Gbps 1us 0
5 6 100Gbps 1us 0`;

const topology = (text: string) => readHpccTopology("net.txt", text);
const flows = (text: string) => readHpccFlows("flow.txt", { hosts: [0, 1, 2, 3], machines: new Map() }, text);
/** The topology with another line in place of one of it. */
const edited = (line: number, text: string) => {
  const lines = kTopology.split("\n");
  lines.splice(line - 1, 1, text);
  return lines.join("\n");
};

describe("a topology", () => {
  it("is hosts, switches and links by their numbers", () => {
    const { hosts, switches, links, notes } = topology(kTopology);
    expect({ hosts, switches }).toEqual({ hosts: [0, 1, 2, 3], switches: [4, 5] });
    expect(links[0]).toEqual({ from: 0, to: 4, rate: 25e9, delay: 1000, loss: 0 });
    expect(links[4]).toEqual({ from: 4, to: 5, rate: 100e9, delay: 5000, loss: 0.001 });
    expect(notes).toEqual([
      "the error rate of 1 link is impairment.loss: of all frames, both ways, those of PFC among them",
    ]);
  });

  it("may have ids of switches on several lines, Windows' line ends, and units that ns-3 leaves out", () => {
    const text = "3 1 2\r\n0\r\n0 1 10000000000 0.000001 0\r\n0 2 10Gbps 1us 0\r\n";
    expect(topology(text).links[0]).toMatchObject({ rate: 10e9, delay: 1000 });
    expect(topology("4 2 3\n2\n3\n0 2 1Gbps 0ns 0\n1 3 1Gbps 0ns 0\n2 3 1Gbps 0ns 0").switches).toEqual([2, 3]);
  });

  it("of SimAI is without its NVSwitches", () => {
    const text = `5 2 1 2 4 H100
2 3 4
0 2 2880Gbps 0.000025ms 0
0 3 400Gbps 0.0005ms 0
1 3 400Gbps 0.0005ms 0
3 4 400Gbps 0.0005ms 0`;
    const { hosts, switches, links, notes } = topology(text);
    expect({ hosts, switches, links: links.length }).toEqual({ hosts: [0, 1], switches: [3, 4], links: 3 });
    expect(notes.join()).toContain("1 NVSwitch and 1 link to them are left out");
  });

  it("says which of its lines nobody reads", () => {
    const text = kTopology.replace("6 2 5", "6 2 5").replace("src0 dst0", "3 4 25Gbps 1us 0\nsrc0 dst0");
    expect(topology(text).notes.at(-1)).toBe(
      "line 9 and what follows is not read: 5 links are counted in the first line",
    );
  });

  it.each([
    ["", "net.txt: is empty"],
    [edited(1, "6 2"), "net.txt:1: 2 columns in the first line"],
    [edited(1, "-6 2 5"), "net.txt:1: nodes: -6 is no whole number"],
    [edited(1, "NaN 2 5"), "net.txt:1: nodes: NaN is no whole number"],
    [edited(1, "4294967296 2 5"), "net.txt:1: nodes: 4294967296 is out of range"],
    [edited(1, "75000 2 5"), "net.txt:1: 74998 hosts are too many"],
    [edited(1, "6 6 5"), "net.txt:1: switches: 6 is out of range"],
    [edited(1, "6 2 99999999999"), "net.txt:1: links: 99999999999 is out of range"],
    [edited(1, "6 2 6"), "net.txt:9: link 6 of the 6 that the first line counts"],
    [edited(1, "6 2 0"), "net.txt:1: links: 0 is out of range"],
    [edited(2, "4 4"), "net.txt:2: id of a switch: 4 is there twice"],
    [edited(2, "4 6"), "net.txt:2: id of a switch: 6 is out of range"],
    [edited(2, "3 4 5"), "net.txt:2: 3 ids of switches, of which the first line counts 2"],
    ["6 2 5\n4", "net.txt: ends after the ids of 1 of the 2 switches"],
    [edited(3, "0 4 25Gbps 1us"), "net.txt:3: link 1 of the 5 that the first line counts: 4 columns, not 5"],
    [edited(3, "0 0 25Gbps 1us 0"), "net.txt:3: h0 is linked to itself"],
    [edited(4, "4 0 25Gbps 1us 0"), "net.txt:4: s4 -- h0 is there twice (line 3)"],
    [edited(3, "0 9 25Gbps 1us 0"), "net.txt:3: dst: 9 is out of range"],
    [edited(3, "0 4 25Gbs 1us 0"), "net.txt:3: rate: 25Gbs: unknown rate unit"],
    [edited(3, "0 4 0Gbps 1us 0"), "net.txt:3: rate: 0Gbps is out of range"],
    [edited(3, "0 4 -1Gbps 1us 0"), "net.txt:3: rate: -1Gbps: out of range"],
    [edited(3, "0 4 25Gbps 11s 0"), "net.txt:3: delay: 11s is out of range"],
    [edited(3, "0 4 25Gbps 0.5ns 0"), "net.txt:3: delay: 0.5ns: not a whole number of ns"],
    [edited(3, "0 4 25Gbps 1us 1.5"), "net.txt:3: error_rate: 1.5 is out of range"],
    [edited(3, "0 4 25Gbps 1us nan"), "net.txt:3: error_rate: nan is no number"],
    [edited(4, "0 1 25Gbps 1us 0"), "net.txt:4: host h0 has 2 links, of which one is to host h1"],
    [edited(4, "0 5 25Gbps 1us 0"), "net.txt: h1 has no link"],
    [
      "4 2 4\n2 3\n0 2 25Gbps 1us 0\n0 3 25Gbps 1us 0\n1 2 25Gbps 1us 0\n1 3 25Gbps 1us 0",
      "net.txt: h0-2, and 2 more, cannot be reached from h0-1",
    ],
    [
      "7 3 5\n4 5 6\n0 4 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 5 1Gbps 1us 0\n5 6 1Gbps 1us 0",
      "net.txt: h2, and 3 more, cannot be reached from h0",
    ],
    ["3 1 1\n2\n0 2 1Gbps 1us 0", "net.txt: h1 has no link"],
    ["3 2 1 0 2 H100\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0", "net.txt: h0 has no link but to NVSwitches"],
  ])("is refused where it is none: %j", (text, message) => {
    expect(() => topology(text)).toThrow(message);
    expect(() => topology(text)).toThrow(WeirError);
  });

  it("has machines for hosts of several links, with a NIC for each", () => {
    const { hosts, machines, links, notes } = topology(kTwoLinks);
    expect(hosts).toEqual([7, 8, 1, 9, 10]);
    expect([...machines]).toEqual([
      [0, [7, 8]],
      [2, [9, 10]],
    ]);
    expect(links.slice(0, 3)).toMatchObject([
      { from: 7, to: 3, rate: 25e9 },
      { from: 8, to: 4, rate: 50e9 },
      { from: 1, to: 5 },
    ]);
    expect(notes).toEqual([
      "2 hosts with several links: each is a machine with a NIC for each of them, such as h0 with h0-1 and h0-2",
    ]);
  });
});

describe("flows of hosts with several links", () => {
  const network = topology(kTwoLinks);
  const between = (text: string) => betweenNics(network, readHpccFlows("flow.txt", network, text));

  it("go by the NICs that are nearest, and one host's to another by all of these", () => {
    const many = Array.from({ length: 400 }, () => "1 0 3 100 5000 0").join("\n");
    const { flows: found, notes } = between(`402\n0 2 3 100 5000 0\n1 2 3 100 1 0\n${many}\n`);
    expect(found[0]).toMatchObject({ from: 8, to: 9 });
    // Both are at switch 5.
    expect(found[1]).toMatchObject({ from: 1, to: 10 });
    const first = found.filter(({ from, to }) => from === 1 && to === 7).length;
    expect(found.filter(({ from, to }) => from === 1 && to === 8).length).toBe(400 - first);
    expect(first).toBeGreaterThan(150);
    expect(first).toBeLessThan(250);
    expect(notes.at(-1)).toContain("among the nearest");
    expect(between(`402\n0 2 3 100 5000 0\n1 2 3 100 1 0\n${many}\n`).flows).toEqual(found);
  });

  it("are in a scenario from NIC to NIC, whose machines are known", () => {
    const converted = { network, flows: between("1\n0 2 3 100 5000 0\n") };
    const { text } = scenarioFile(converted, "Made.", undefined);
    const { scenario } = parseScenarioText(text);
    expect(scenario.hosts.map(({ name, machine }) => [name, machine])).toEqual([
      ["h0-1", "h0"],
      ["h0-2", "h0"],
      ["h1", undefined],
      ["h2-1", "h2"],
      ["h2-2", "h2"],
    ]);
    expect(scenario.links[1]).toMatchObject({ from: "h0-2", to: "s4", rate: 50e9 });
    expect(scenario.flows).toMatchObject([{ from: "h0-2", to: "h2-1", bytes: 5000 }]);
  });

  it("are those of the file where hosts have one link each", () => {
    const single = topology(kTopology);
    const read = readHpccFlows("flow.txt", single, "1\n0 1 3 100 5000 0\n");
    expect(betweenNics(single, read)).toEqual(read);
  });
});

describe("flows", () => {
  it("count from the first, whatever their order", () => {
    const { flows: found, notes } = flows("2\n0 1 3 100 5000 2.5\n2 3 4 100 1 2\n\nsrc0 dst0 ...\n");
    expect(found).toEqual([
      { from: 0, to: 1, priority: 3, bytes: 5000, start: 0.5e9 },
      { from: 2, to: 3, priority: 4, bytes: 1, start: 0 },
    ]);
    expect(notes).toEqual([
      "columns of flow.txt are src dst priority dst_port size start; dst_port says nothing here",
      "times count from the first flow, which starts at 2 s in flow.txt",
    ]);
  });

  it("may be without a port, as conweave has them", () => {
    const { flows: found, notes } = flows("1\n0 1 3 5000 0.000000001\n0 1 3 5000 1\n");
    expect(found).toEqual([{ from: 0, to: 1, priority: 3, bytes: 5000, start: 0 }]);
    expect(notes[0]).toBe("columns of flow.txt are src dst priority size start");
    expect(notes.at(-1)).toBe("line 3 of flow.txt and what follows is not read: 1 flows are counted in the first line");
  });

  it.each([
    ["", "flow.txt: is empty"],
    ["0 1 3 100 5000 2", "flow.txt:1: 6 columns in the first line"],
    ["-1", "flow.txt:1: number of flows: -1 is no whole number"],
    ["0", "flow.txt:1: number of flows: 0 is out of range"],
    ["99999999999999999999", "flow.txt:1: number of flows: 99999999999999999999 is no whole number"],
    ["3\n0 1 3 100 5000 2", "flow.txt:1: counts 3 flows, and has 1"],
    ["1\n0 1 3 100 5000 2 9", "flow.txt:2: 7 columns"],
    ["2\n0 1 3 100 5000 2\n0 1 3 5000 2", "flow.txt:3: 5 columns, not 6"],
    ["1\n0 4 3 100 5000 2", "flow.txt:2: dst: node 4 is no host of the topology"],
    ["1\n0 0 3 100 5000 2", "flow.txt:2: dst: h0 sends to itself"],
    ["1\n0 1 8 100 5000 2", "flow.txt:2: priority: 8 is out of range"],
    ["1\n0 1 3 65536 5000 2", "flow.txt:2: dst_port: 65536 is out of range"],
    ["1\n0 1 3 100 0 2", "flow.txt:2: size: 0 is out of range"],
    ["1\n0 1 3 100 1e3 2", "flow.txt:2: size: 1e3 is no whole number"],
    ["1\n0 1 3 100 9999999999999999 2", "flow.txt:2: size: 9999999999999999 is out of range"],
    ["1\n0 1 3 100 5000 -2", "flow.txt:2: start: -2 is out of range"],
    ["1\n0 1 3 100 5000 inf", "flow.txt:2: start: inf is no number"],
    ["1\n0 1 3 100 5000 1e9", "flow.txt:2: start: 1e9 is out of range"],
    // A line for DCQCN's older simulator: packets, start and stop.
    ["1\n0 1 3 100 2.0 3.0", "flow.txt:2: size: 2.0 is no whole number"],
  ])("are refused where they are none: %j", (text, message) => expect(() => flows(text)).toThrow(message));
});

describe("whatever a file is", () => {
  const word = fc.oneof(
    fc.integer({ min: -2, max: 7 }).map(String),
    fc.constantFrom("25Gbps", "1us", "0", "1e400", "NaN", "0x7", "99999999999999999999", "\u0000", "ü", "-"),
  );
  const file = fc
    .array(fc.array(word, { maxLength: 7 }), { maxLength: 9 })
    .map((rows) => rows.map((words) => words.join(" ")).join("\n"));

  it("it is read, or refused with its name", () => {
    fc.assert(
      fc.property(file, fc.boolean(), (text, headed) => {
        for (const [name, read] of [
          ["net.txt", () => topology(headed ? `6 2 5\n4 5\n${text}` : text)],
          ["flow.txt", () => flows(headed ? `2\n${text}` : text)],
        ] as const) {
          try {
            read();
          } catch (error) {
            expect(error).toBeInstanceOf(WeirError);
            expect((error as Error).message).toMatch(new RegExp(`^${name.replace(".", "\\.")}[: ]`));
          }
        }
      }),
      { seed: 3, numRuns: 2000 },
    );
  });
});

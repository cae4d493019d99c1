import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { planCaptures } from "../../../src/clocks/lab/capture.js";
import { checkForLab } from "../../../src/clocks/lab/check.js";
import { runLab } from "../../../src/clocks/lab/run.js";
import { smallScenario } from "./evidence.js";

const plan = (...requests: [target: string, file: string][]) =>
  planCaptures(
    smallScenario(),
    requests.map(([target, file]) => ({ target, file })),
    "/out",
  );
const files = (...requests: [target: string, file: string][]) =>
  Object.fromEntries(
    plan(...requests).map(({ file, format, ends: [end] }) => [
      format === "pcap" ? `${end?.link} ${end?.node}` : "",
      file,
    ]),
  );

describe("checkForLab", () => {
  it.each([
    {},
    { transport: { type: "rc" }, congestion: { algorithm: "dctcp" } },
    { transport: { type: "rc" }, traffic: [{ pattern: "pairs", count: 3, sizes: "web-search" }] },
  ])("lets a small scenario through: %j", (overrides) => {
    expect(() => checkForLab(smallScenario(overrides))).not.toThrow();
  });

  it.each([
    [
      { topology: { kind: "leaf-spine", leaves: 4, spines: 2, hosts: 64 }, traffic: [] },
      "256 hosts are too many for a lab",
    ],
    [{ traffic: [{ pattern: "poisson", load: 0.5, sizes: 500, stop: "20ms" }] }, "75371 flows are too many for a lab"],
  ])("%j", (overrides, message) => {
    const scenario = smallScenario(overrides);
    expect(() => checkForLab(scenario)).toThrow(
      expect.objectContaining({ message, hint: expect.stringContaining("weir sim run") }),
    );
  });
});

describe("planCaptures", () => {
  it("captures a link at its first end, whichever way round it is written", () => {
    expect(files(["a--sw", "a.pcap"])).toEqual({ "0 a": "/out/a.pcap" });
    expect(files(["sw--a", "a.pcap"])).toEqual({ "0 sw": "/out/a.pcap" });
    expect(files(["a--sw", "x.pcap"], ["sw--a", "y.pcap"])).toEqual({ "0 a": "/out/x.pcap", "0 sw": "/out/y.pcap" });
  });

  it("captures a host at its one port", () => {
    expect(files(["c", "/tmp/c.pcap"])).toEqual({ "2 c": "/tmp/c.pcap" });
  });

  it.each([
    ["sw.pcap", "/out/sw-a.pcap", "/out/sw-b.pcap", "/out/sw-c.pcap"],
    ["/tmp/v1.0/sw", "/tmp/v1.0/sw-a", "/tmp/v1.0/sw-b", "/tmp/v1.0/sw-c"],
  ])("captures a switch at every port, each in a file of its own: %s", (file, a, b, c) => {
    expect(files(["sw", file])).toEqual({ "0 sw": a, "1 sw": b, "2 sw": c });
  });

  it.each(["nobody", "a--b", "a--", "A"])("does not know %s", (target) => {
    expect(() => files([target, "x.pcap"])).toThrow(`--capture ${target}: no such link or device`);
  });

  it("captures all ports of a switch into one file of pcapng", () => {
    expect(plan(["sw", "sw.pcapng"], ["a", "/tmp/a.pcapng"])).toEqual([
      {
        file: "/out/sw.pcapng",
        format: "pcapng",
        ends: ["a", "b", "c"].map((peer, link) => ({ link, node: "sw", peer })),
      },
      { file: "/tmp/a.pcapng", format: "pcapng", ends: [{ link: 0, node: "a", peer: "sw" }] },
    ]);
  });

  it("does not write one file twice, nor one place into two files", () => {
    expect(() => files(["a", "x.pcapng"], ["b", "/out/x.pcapng"])).toThrow("/out/x.pcapng is written to already");
    expect(() => files(["sw", "x.pcapng"], ["sw--b", "y.pcap"])).toThrow("sw--b is captured already");
    expect(() => files(["a", "x.pcap"], ["b", "/out/x.pcap"])).toThrow("/out/x.pcap is written to already");
    expect(() => files(["sw", "x.pcap"], ["sw--b", "y.pcap"])).toThrow("sw--b is captured already");
  });
});

describe("runLab", () => {
  it("refuses an unknown place to capture before it touches anything", async () => {
    const options = {
      signal: new AbortController().signal,
      capture: [{ target: "h9", file: "x.pcap" }],
      folder: "/out",
    };
    await expect(runLab(smallScenario(), options)).rejects.toThrow(WeirError);
  });

  it("refuses what only the simulator does", async () => {
    const options = { signal: new AbortController().signal, capture: [], folder: "/out" };
    const scenario = smallScenario({ topology: { kind: "leaf-spine", leaves: 4, spines: 2, hosts: 64 }, traffic: [] });
    await expect(runLab(scenario, options)).rejects.toThrow("256 hosts are too many for a lab");
  });
});

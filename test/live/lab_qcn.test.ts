/** QCN on real frames: CNMs go from the switch to the senders, tags and all, and rates change while traffic runs. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { starText } from "../fixtures/networks.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, labRun, sum, validLabRun } from "./weir.js";

const kExample = "examples/qcn-incast.yaml";
const kShort = ["--scale", "200", "--duration", "20ms", "--set", "warmup=4ms"];
const kChanges = [
  "{ at: 8ms, switch: sw, port: r, rate: 4Gbps }",
  "{ at: 14ms, switch: sw, port: r, rate: unlimited }",
].join(", ");
const handled = ({ nics }: LabResult) => sum(Object.values(nics).map((nic) => nic.rp_cnm_handled ?? 0));

describeLive("weir lab run with QCN", () => {
  it("tells senders by CNMs, all of which they take, and accounts for every frame", async (context) => {
    const { result, stderr } = await validLabRun(context, {
      file: kExample,
      args: [...kShort, "--set", `changes=[${kChanges}]`],
    });
    expect(stderr).toBe("");
    expect(result).toMatchObject({ clock: "wire", profile: "802.1qau", congestion_control: "qcn" });
    const { sw } = result.switches;
    expect(sw?.cnm_sent).toBeGreaterThan(0);
    expect(handled(result)).toBe(sw?.cnm_sent);
    expect(sum(result.flows.map((flow) => flow.cnm_handled ?? 0))).toBe(sw?.cnm_sent);
    for (const nic of Object.values(result.nics)) expect(nic.rp_cnm_refused).toEqual({});
    expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
    expect(result.nics.r?.np_cnp_sent).toBe(0);
    expect(result.fidelity.changes?.map(({ at_s }) => at_s)).toEqual([0.008, 0.014]);
    expect(result.fidelity.changes?.every(({ late_us }) => late_us >= 0)).toBe(true);
  });

  it("needs no CN-TAGs where CNMs return the headers, and knows addresses of flows", async (context) => {
    const set = ["changes=[]", "host.qcn.cn_tag=false", "switch.qcn.cpMinHeaderOctets=64", "traffic.0.source_mac=own"];
    const { result } = await validLabRun(context, {
      file: kExample,
      args: [...kShort, ...set.flatMap((one) => ["--set", one])],
    });
    expect(result.switches.sw?.cnm_sent).toBeGreaterThan(0);
    expect(handled(result)).toBe(result.switches.sw?.cnm_sent);
    expect(result.frames).toMatchObject({ missing: 0 });
    expect(result.flows.map((flow) => flow.lost)).toEqual([0, 0, 0, 0]);
  });

  it("holds all that is under way on a link of 64 ms", async (context) => {
    const file = join(folder(), "long.yaml");
    writeFileSync(
      file,
      `
scale: 2
duration: 500ms
warmup: 200ms
topology: ${starText(["a", "c"], { rate: "500Mbps", delay: "1us" }, { a: { delay: "64ms" } })}
switch: { ecn: { enabled: false }, qcn: { enabled: true }, pfc: { enabled: false } }
congestion: { algorithm: qcn, profile: netfpga }
traffic: [{ from: a, to: c }]
`,
    );
    const { result } = await validLabRun(context, { file });
    expect(result.fidelity.host_drops).toBe(0);
    expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
    expect(result.flows[0]?.packets).toBeGreaterThan(5000);
  });

  it("slows TCP of the kernel by five-tuple: connections between the same hosts have reaction points of their own", async (context) => {
    const traffic = "traffic=[{ id: tcp, pattern: tcp, from: [t1, t2], to: r, streams: 8, priority: 3 }]";
    const run = (...set: string[]) => ({
      file: "papers/qcn/tcp-by-five-tuple.yaml",
      args: ["duration=300ms", "warmup=100ms", traffic, ...set].flatMap((one) => ["--set", one]),
    });
    const ofHosts = ({ nics }: LabResult, name: "rp_created" | "rp_limited_s") =>
      ["t1", "t2"].map((host) => nics[host]?.[name]?.["3"] ?? 0);
    // Nobody tells a kernel where there is no congestion point.
    const without = await labRun(folder(), run("congestion.algorithm=none", "switch.qcn.enabled=false"));
    expect(without.result.flows.map(({ tcp }) => tcp?.control)).toEqual(Array(16).fill("cubic"));
    expect(ofHosts(without.result, "rp_created")).toEqual([0, 0]);
    const { result } = await validLabRun(context, run(), (any) => {
      expect(any.switches.sw?.congestion_points?.r?.["3"]?.cnms).toBeGreaterThan(0);
      expect(handled(any)).toBeGreaterThan(0);
      // The MAC addresses of both ends are those of all eight.
      for (const count of ofHosts(any, "rp_created")) expect(count).toBeGreaterThan(1);
      for (const seconds of ofHosts(any, "rp_limited_s")) expect(seconds).toBeGreaterThan(0);
      // All CNMs that NICs hear are about flows that they have sent.
      for (const nic of Object.values(any.nics)) expect(nic.rp_cnm_refused).toEqual({});
    });
    // TCP may fill the buffer at first, for which the switch drops what comes then, CNMs too.
    const said = result.switches.sw?.cnm_sent ?? 0;
    expect(handled(result)).toBeLessThanOrEqual(said);
    expect(handled(result)).toBeGreaterThanOrEqual(said - result.frames.dropped);
    expect(result.frames.missing).toBe(0);
  });
});

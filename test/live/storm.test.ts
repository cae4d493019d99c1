/** `weir storm` on a real interface, against a switch's PFC watchdog. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { network, ping, startSwitch, weir } from "./daemons.js";

const kPriorities = [0, 1, 2, 3, 4, 5, 6, 7];

describeLive("weir storm", () => {
  it("stops what is for its host until it ends; the watchdog finds it, drops both ways, and hears when it is over", async () => {
    const net = await network();
    // One pause lasts 33 ms at 1 Gb/s, so that a single frame is a storm.
    const { socket } = await startSwitch(net, {
      more: `pfc: { priorities: [0] }
buffer: { total: 2MB }
pfc_watchdog: { enabled: true, detection_time: 10ms, restoration_time: 100ms, action: drop }
`,
    });
    await eventually(async () => expect(await ping(net, 5)).toEqual({ sent: 5, received: 5 }));
    const ofPort = (name: string) => count({ socket }, name, { port: "b" });
    const ofPriority = (name: string) => count({ socket }, name, { port: "b", priority: "0" });
    const { path } = net.namespace("b");
    const storm = weir("storm", "weir0", "--namespace", path, "--priorities", "0", "--rate", "1Gbps", "--json");
    await eventually(async () => {
      void ping(net, 1).catch(() => undefined);
      expect(await ofPriority("pfc_wd_storm_detected")).toBeGreaterThan(0);
      expect(await ofPriority("pfc_wd_tx_drop")).toBeGreaterThan(0);
    });
    await eventually(async () => {
      await net.namespace("b").run("sh", ["-c", "ping -q -c 1 -W 1 10.66.0.1 || true"]);
      expect(await ofPriority("pfc_wd_rx_drop")).toBeGreaterThan(0);
    });
    storm.child.kill("SIGINT");
    const { status, stdout } = await storm.finished;
    expect(status).toBe(130);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ by: "pfc", priorities: [0], quanta: 65_535, discarded: 0 });
    expect(report.frames).toBeGreaterThan(1);
    expect(await ofPort("rx_pfc_frames")).toBe(report.frames);
    await eventually(async () => {
      expect(await ofPriority("pfc_wd_storm_restored")).toBe(await ofPriority("pfc_wd_storm_detected"));
    });
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
  });

  it("ends by itself, by an XON; PAUSE frames stop a link without PFC as well", async () => {
    const net = await network();
    const { socket } = await startSwitch(net, { more: "pfc: { enabled: false }\n" });
    const { path } = net.namespace("b");
    const way = ["--namespace", path, "--rate", "1Gbps"];
    const { finished } = weir("storm", "weir0", ...way, "--pause", "--for", "300ms", "--json");
    const { status, stdout } = await finished;
    expect([0, 3]).toContain(status);
    const { frames, without_gaps, priorities } = JSON.parse(stdout);
    expect(priorities).toEqual(kPriorities);
    expect(without_gaps).toBe(status === 0);
    const { counters } = await ask(socket, "counters");
    const of = (name: string, priority?: string) =>
      counters.find((c) => c.name === name && c.labels.port === "b" && c.labels.priority === priority)?.value;
    expect(of("rx_pause_frames")).toBe(frames);
    // A pause that an XON ends has not run out.
    expect(of("pfc_rx_pause_duration", "3")).toBeLessThan(frames * 33.6e6);
    expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 });
  });

  it("says so where the interface is not there, and where it is another Weir's", async () => {
    const net = await network();
    const { path } = net.namespace("sw");
    const none = weir("storm", "nope", "--namespace", path, "--pause", "--for", "1s");
    expect(await none.finished).toMatchObject({ status: 2, stdout: "" });
    await startSwitch(net, {});
    const taken = await weir("storm", "b", "--namespace", path, "--pause", "--for", "1s").finished;
    expect(taken.status).toBe(1);
    expect(taken.stderr).toMatch(/b: in use by sw0/);
  });
});

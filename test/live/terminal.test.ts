/** `weir show`, `weir top` and `weir clear` on a lab that runs, and on daemons; nothing of its socket is left afterwards. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ControlRequests } from "../../src/device/protocol.js";
import { kViews } from "../../src/watch/show/views.js";
import type { Sample } from "../../src/watch/top/sample.js";
import { weir as inside } from "../cli/harness.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser } from "./capability.js";
import { network, startNic, startSwitch } from "./daemons.js";
import { folder, kIncast, start } from "./weir.js";

/** The small incast under a name that no other run has, for as long as the test looks at it. */
async function startLab(as: readonly string[] = []) {
  const path = folder();
  const name = `t${process.pid}-${Math.floor(Math.random() * 1e6)}`;
  const file = join(path, `${name}.yaml`);
  writeFileSync(file, readFileSync(kIncast, "utf8").replace(/^name:.*$/m, `name: ${name}`));
  const running = await start(
    ["lab", "run", file, "--quiet", "--scale", "4000", "--duration", "10s", "--out", join(path, "out")],
    [...as, "env", `XDG_RUNTIME_DIR=${path}`],
  );
  onTestFinished(() => rmSync(`/run/weir/${name}.lab.sock`, { force: true }));
  await running.untilTraffic();
  return { ...running, name, path };
}

async function said(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await inside(args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

/** Waits until the lab answers; after that its devices have counted something. */
const untilAnswering = (name: string, ...more: string[]) =>
  eventually(() => said("show", "rdma", "link", name, ...more));

describeLive("a lab that runs", () => {
  it("shows everything that daemons show, in meant units; top sees rates move; clear starts afresh; nothing is left", async () => {
    const { name, child, finished, nothingLeft } = await startLab();
    const socket = `/run/weir/${name}.lab.sock`;
    await untilAnswering(name);
    for (const [words, view] of Object.entries(kViews)) {
      const device = view.of === "nic" ? `${name}.h1` : `${name}.sw`;
      expect((await said("show", ...words.split(" "), device)).length, words).toBeGreaterThan(0);
      JSON.parse(await said("show", ...words.split(" "), device, "--json"));
    }
    const link = await said("show", "rdma", "link", name);
    expect(link.split("\n").slice(0, -1)).toEqual(
      ["h1", "h2", "h3", "h4", "r"].map((host) => `link ${host}/1 state ACTIVE physical_state LINK_UP netdev weir0 `),
    );
    const { ports } = JSON.parse(await said("show", "ports", `${name}.sw`, "--json")) as Pick<ControlRequests, "ports">;
    expect(ports.map((port) => [port.name, port.rate, port.up])).toEqual(
      ["h1", "h2", "h3", "h4", "r"].map((host) => [host, 40e9, true]),
    );

    const samples = (await said("top", name, "--json", "--count", "3", "--interval", "0.3"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Sample);
    expect(samples).toHaveLength(3);
    for (const sample of samples) {
      expect(sample.queue_pairs).toHaveLength(8);
      expect(sample.ports).toHaveLength(10);
      const sent = sample.queue_pairs.reduce((sum, pair) => sum + (pair.tx_bps ?? 0), 0);
      // Four send what one link of 40 Gb/s takes, in meant units; a busy machine makes it less.
      expect(sent).toBeGreaterThan(0);
      expect(sent).toBeLessThan(4 * 40e9);
      const toReceiver = sample.ports.find(({ device, port }) => device === `${name}.sw` && port === "r");
      expect(toReceiver?.tx_bps).toBeGreaterThan(0);
      expect(toReceiver?.tx_bps).toBeLessThanOrEqual(40e9 * 1.01);
    }
    const bytes = samples.map(({ queue_pairs }) => queue_pairs[0]?.bytes ?? 0);
    expect(bytes[2]).toBeGreaterThan(bytes[0] as number);
    expect(new Set(samples.map(({ queue_pairs }) => queue_pairs[0]?.tx_bps)).size).toBeGreaterThan(1);

    const packets = async () =>
      (JSON.parse(await said("show", "rdma", "statistic", `${name}.h1`, "--json")) as [{ tx_packets: number }])[0];
    const before = await packets();
    expect(await said("clear", "counters", name)).toMatch(/^counters cleared at \d{4}-/);
    expect((await packets()).tx_packets).toBeLessThan(before.tx_packets);

    expect(existsSync(socket)).toBe(true);
    child.kill("SIGTERM");
    expect(await finished).toMatchObject({ status: 143, stderr: "" });
    await nothingLeft();
    expect(existsSync(socket)).toBe(false);
  });

  it("leaves a socket behind when it is killed, which is known for what it is", async () => {
    const { name, child, finished, nothingLeft } = await startLab();
    await untilAnswering(name);
    child.kill("SIGKILL");
    await finished;
    await nothingLeft();
    expect(existsSync(`/run/weir/${name}.lab.sock`)).toBe(true);
    const { status, stderr } = await inside(["show", "pfc", name]);
    expect(status).toBe(1);
    expect(stderr).toContain(`no daemon or lab called ${name} is running`);
  });
});

describeOrdinaryUser("a lab of an ordinary user", () => {
  it("has its socket in the user's own folder", async () => {
    const { name, path, child, finished, nothingLeft } = await startLab(kOrdinaryUser);
    const socket = join(path, "weir", `${name}.lab.sock`);
    await untilAnswering("h1", "--socket", socket);
    expect(await said("show", "dcb", "pfc", "sw", "--socket", socket)).toContain("prio-pfc 0:off 1:off 2:off 3:on ");
    child.kill("SIGTERM");
    expect((await finished).status).toBe(143);
    await nothingLeft();
    expect(existsSync(socket)).toBe(false);
  });
});

describeLive("daemons", () => {
  it("show everything, in wall units; top sees rates move", async () => {
    const net = await network();
    const [sw, receiver, sender] = await Promise.all([
      startSwitch(net),
      startNic(net, "b", { pairs: ["send: { rate: 0.1Gbps }"] }),
      startNic(net, "a", { pairs: ["send: { rate: 0.2Gbps }"] }),
    ]);
    for (const [words, view] of Object.entries(kViews)) {
      const { socket } = view.of === "nic" ? sender : sw;
      expect((await said("show", ...words.split(" "), "--socket", socket)).length, words).toBeGreaterThan(0);
      JSON.parse(await said("show", ...words.split(" "), "--socket", socket, "--json"));
    }
    const top = async (socket: string) =>
      JSON.parse(await said("top", "--socket", socket, "--json", "--count", "1", "--interval", "0.5")) as Sample;
    const { devices, queue_pairs } = await top(sender.socket);
    expect(devices).toMatchObject([{ kind: "nic", scale: 1 }]);
    expect(queue_pairs[0]?.tx_bps).toBeGreaterThan(0);
    expect((await top(receiver.socket)).queue_pairs[0]?.rx_bps).toBeGreaterThan(0);
    const { ports } = await top(sw.socket);
    expect(ports.find(({ port }) => port === "a")?.rx_bps).toBeGreaterThan(0);
  });
});

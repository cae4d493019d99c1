/** weir capture of daemons under marked and paused traffic, read by Wireshark's tshark. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, network, portOf, startNic, startSwitch, weir } from "./daemons.js";
import { folder } from "./weir.js";

interface Frame {
  port: string;
  direction: string;
  comment: string;
  ecn: string;
  malformed: string;
}

/** All frames; fails if tshark finds fault with the file. */
function dissect(file: string): Frame[] {
  const fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.comment", "ip.dsfield.ecn"];
  const select = [...fields, "_ws.malformed"].flatMap((field) => ["-e", field]);
  const { status, stdout, stderr } = spawnSync("tshark", ["-r", file, "-T", "fields", ...select], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  expect(status, stderr).toBe(0);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [port = "", flags, comment = "", ecn = "", malformed = ""] = line.split("\t");
      return { port, direction: Number(flags) === 1 ? "in" : "out", comment, ecn, malformed };
    });
}

const began = (at: Daemon) => at.log().filter(({ msg }) => msg === "capture began").length;
const ended = (at: Daemon) => at.log().filter(({ msg }) => msg === "capture ended");

describeUnless(liveObstacle() ?? lacking("tshark"), "weir capture", () => {
  it("has every frame of a switch, says which are marked, CNPs and PFC, and agrees with the counters", async () => {
    const net = await network();
    const bridge = await startSwitch(net, {
      more: "buffer: { total: 1MB }\necn: { kmin: 5KB, kmax: 200KB }\n",
      ports: [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", "rate: 50Mbps")],
    });
    const file = join(folder(), "sw0.pcapng");
    const receiver = await startNic(net, "b", { pairs: ["remote_qpn: 0x11"] });
    const client = weir("capture", "--socket", bridge.socket, "--write", file);
    await eventually(() => expect(began(bridge)).toBe(1));
    // Less than the ring holds, twice over with CNPs: nothing is dropped, however late the reader.
    const sender = await startNic(net, "a", { pairs: ["send: { message: 100KB, bytes: 2MB }"] });
    await eventually(async () => expect((await ask(sender.socket, "queue_pairs"))[0]?.state).toBe("finished"));
    const packets = 20 * Math.ceil(100_000 / 1024);
    await eventually(async () => expect(await count(receiver, "rx_packets", { flow: "qp0" })).toBe(packets));
    // CNPs are on their way for a moment.
    const cnps = () => count(sender, "rp_cnp_handled", { device: "roce-a" });
    await eventually(async () => expect(await cnps()).toBe(await count(receiver, "np_cnp_sent", { device: "roce-b" })));
    client.child.kill("SIGINT");
    const { status, stderr } = await client.finished;
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(/sw0\.pcapng: \d+ frames of sw0, .*\n {2}a: \d+ written\n {2}b: \d+ written\n$/);

    const all = dissect(file);
    const counted = (port: string, direction: string, text: string) =>
      all.filter((f) => f.port === `sw0:${port}` && f.direction === direction && f.comment.includes(text)).length;
    expect(counted("a", "in", "ECT(0)")).toBe(packets);
    const marked = counted("b", "out", "CE: congestion experienced");
    expect(marked).toBe(await count(bridge, "wred_ecn_marked_packets", { port: "b", priority: "3" }));
    expect(marked).toBeGreaterThan(0);
    for (const { comment, ecn, malformed } of all) {
      expect(comment.startsWith("CE:")).toBe(ecn === "3");
      expect(malformed).toBe("");
    }
    const answered = counted("b", "in", "CNP for QP 0x11 (reaction point cuts)");
    expect(answered).toBe(await cnps());
    expect(answered).toBeGreaterThan(0);
    const paused = counted("a", "out", "PFC: priority 3 paused for 65535 quanta = 33.55 ms at 1 Gb/s");
    const released = counted("a", "out", "PFC: priority 3 may send");
    expect(paused).toBeGreaterThan(0);
    expect(paused + released).toBe(await count(bridge, "pfc_tx_packets", { port: "a", priority: "3" }));
    expect(ended(bridge)).toEqual([expect.objectContaining({ ports: ["a", "b"], dropped: 0 })]);
  });

  it("ends in the daemon when its client is killed", async () => {
    const net = await network();
    const bridge = await startSwitch(net);
    const client = weir("capture", "--socket", bridge.socket, "--write", join(folder(), "x.pcapng"));
    await eventually(() => expect(began(bridge)).toBe(1));
    client.child.kill("SIGKILL");
    await eventually(() => expect(ended(bridge)).toHaveLength(1));
    bridge.child.kill("SIGTERM");
    expect((await bridge.finished).status).toBe(0);
  });
});

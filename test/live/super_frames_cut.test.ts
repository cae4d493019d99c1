/** Super-frames that the kernel cuts: the packets that come of them, as tcpdump has them, and scapy and zlib judge them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { Fabric } from "../../bench/dataplane/fabric.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { icrcCheck } from "./icrc_check.js";
import { connected, counted, transfer } from "./verbs_pair.js";
import { folder } from "./weir.js";

const kBytes = 2 << 20;
const kMessage = 64 << 10;
const kPathMtu = 4096;
/** Bytes of a packet besides its message, in a file: the record's, Ethernet, IP, UDP, BTH, ICRC. */
const kHeaders = { 4: 16 + 14 + 20 + 8 + 12 + 4, 6: 16 + 14 + 40 + 8 + 12 + 4 };

/** Captures all that comes in at an interface, until its file has `bytes`. */
async function capture(network: LabNetwork, node: string, name: string) {
  const file = join(folder(), `${name}.pcap`);
  const options = [
    "-Z",
    "root",
    "-U",
    "--immediate-mode",
    "-B",
    "65536",
    "-Q",
    "in",
    "-i",
    name,
    "-w",
    file,
    "udp port 4791",
  ];
  const command = ["--pdeathsig", "KILL", "nsenter", `--net=${network.namespace(node).path}`, "tcpdump", ...options];
  const child: ChildProcess = spawn("setpriv", command, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(child, "exit");
  await eventually(() => expect(said).toContain("listening on"));
  return {
    file,
    async has(bytes: number) {
      await eventually(() => expect(statSync(file).size).toBeGreaterThanOrEqual(bytes));
      child.kill("SIGINT");
      await ended;
      expect(said).toContain("\n0 packets dropped by kernel");
    },
  };
}

describeUnless(liveObstacle() ?? lacking("python3-scapy", "tcpdump"), "super-frames that the kernel cuts", () => {
  let fabric: Fabric | undefined;
  afterEach(() => fabric?.close());

  it.each([
    ["IPv4", "10.0.0.2", "4"],
    ["IPv6", "fd00::2", "6"],
  ] as const)("have the right ICRC, PSN and identification in every packet, over %s", async (_, address, version) => {
    let captured: Awaited<ReturnType<typeof capture>> | undefined;
    fabric = await Fabric.create({
      prepare: async (network) => {
        await network.namespace("a").run("ethtool", ["-K", "weir0", "tx", "off"]);
        captured = await capture(network, "sw", "a");
      },
    });
    const { a, b } = await connected(fabric, { address, memory: kBytes });
    await transfer(a, "rdma_write", b, kMessage);
    await counted(fabric.a, "tx_super_frames");
    // Messages that connect the two, and headers of messages, are less than a packet.
    await captured?.has(kBytes + (kBytes / kPathMtu) * kHeaders[version]);
    const { packets, wrong, longest, streams } = icrcCheck([captured?.file ?? ""]);
    expect(wrong).toEqual({ own: 0, scapy: 0 });
    // There are as many packets as if each had left alone, besides the messages that connect the two.
    const sent = kBytes / kPathMtu + (fabric.a.counters().get("retransmitted") ?? 0);
    expect(streams).toEqual([{ packets: sent, gaps: { psn: expect.any(Number), id: 0 } }]);
    if (sent === kBytes / kPathMtu) expect(streams[0]?.gaps.psn).toBe(0);
    expect(packets[version]).toBeGreaterThan(sent);
    expect(longest).toBeLessThanOrEqual(4176);
  });
});

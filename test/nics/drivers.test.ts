/**
 * `weir nic` in a guest, on each NIC that QEMU has, against a `weir nic` at the other end of its cable: the tap on this host. Data is
 * verified, and frames are counted at both ends.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { total } from "../fixtures/counts.js";
import { describeGuests } from "../guests/capability.js";
import { InteropNetwork, ipv4 } from "../interop/network.js";
import { eventually } from "../patience.js";
import { kDrivers, type NicDriver } from "./drivers.js";
import { kNic, kNicImage, NicGuest, type NicSettings } from "./nic_guest.js";
import { copyBothWays, kGuest, kPeer, onPeer, pingBothWays } from "./traffic.js";

/** Slow enough that each packet is a frame of its own, so that counts of frames can be compared. */
const kRate = { rate: "5Gbps" };
const kLossless = { pfc: { priorities: [3] } };
const kBackends: readonly NicSettings[] = [
  { backend: "auto" },
  { backend: "af_packet" },
  { backend: "af_xdp", xdp_mode: "native" },
  { backend: "af_xdp", xdp_mode: "generic" },
];
const kPauses = 10;
/** Sizes of pings that make frames of many lengths, the shortest and the longest among them. */
const kSizes = [64, 1025, 9001];

describeGuests([kNicImage], "weir nic in a guest", () => {
  describe.each(kDrivers)("$name", (driver) => {
    let network: InteropNetwork;
    let guest: NicGuest;
    let socket: string;
    const peer = (command: string) => onPeer(network, socket, command);
    const peerCount = async (name: string) => total((await ask(socket, "counters")).counters, name);

    beforeAll(async () => {
      network = await InteropNetwork.create();
      await makeTap(network, driver, "tap1");
      guest = await NicGuest.start(network.namespace, driver, "tap1");
      await guest.does(`ip link set ${kNic} up`);
      socket = await network.nicDaemon("tap1", kPeer, { ...kRate, ...kLossless });
    });
    afterAll(async () => {
      await guest?.guest.stop();
      await network?.close();
    });

    it("is known to weir doctor", async () => {
      const { status, stdout } = await guest.weir("doctor", "--json");
      expect(status, stdout).toBe(0);
      expect(stdout).toMatch(new RegExp(`hardware \\(${driver.name}, 0000:.*backend auto: af_`));
    });

    it("is told of the peer's pauses, and tells its own", async () => {
      expect(await guest.daemon(ipv4(kGuest), { ...kRate, ...kLossless })).toBeUndefined();
      await guest.becomes({ up: true });
      const [heard, heardByPeer] = [await guest.counter("rx_pfc_frames"), await peerCount("rx_pfc_frames")];
      const sender = network.program("python3", "-c", pauses("tap1"));
      expect(await sender.finished).toMatchObject({ status: 0 });
      await guest.does(`python3 -c '${pauses(kNic)}'`);
      await eventually(async () => expect((await peerCount("rx_pfc_frames")) - heardByPeer).toBe(kPauses));
      await guest.becomes({ pfc: "works" });
      await eventually(async () => expect((await guest.counter("rx_pfc_frames")) - heard).toBe(kPauses));
      await guest.stopDaemon();
    });

    describe.each(kBackends)("%o", (backend) => {
      afterAll(() => guest?.stopDaemon());

      it("verified data both ways, and no frame lost uncounted", async () => {
        const failure = await guest.daemon(ipv4(kGuest), { ...kRate, ...kLossless, ...backend });
        if (backend.xdp_mode === "native" && !driver.nativeXdp) {
          expect(failure).toMatch(/xdp_mode|generic/);
          return;
        }
        expect(failure).toBeUndefined();
        const port = await guest.becomes({ up: true, tx_stalled: false, rx_stuck: false });
        if (backend.backend !== "auto") expect(port).toMatchObject({ receive: backend.backend });
        await guest.programs();
        const before = await frames(network, guest, peerCount);
        for (const size of kSizes) await pingBothWays(guest, peer, { count: 10, size });
        await copyBothWays(guest, peer);
        await eventually(async () => {
          const after = await frames(network, guest, peerCount);
          const grown = (name: keyof typeof after) => after[name] - before[name];
          expect(grown("sent")).toBeGreaterThan(100);
          expect(grown("heardByPeer") + grown("lostToPeer")).toBe(grown("sent"));
          expect(grown("heard") + grown("lost")).toBe(grown("sentByPeer"));
        });
      });
    });
  });
});

/** Program in Python that sends PFC frames of priority 3: to the group of MAC control, with a pause of 100 quanta. */
const pauses = (device: string) => `
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("${device}", 0))
for _ in range(${kPauses}):
    s.send(bytes.fromhex("0180c2000001" "525400000077" "8808" "0101" "0008" "000000000000" "0064").ljust(60, b"\\0"))
`;

/** A cable for a NIC with this driver. */
async function makeTap(network: InteropNetwork, driver: NicDriver, tap: string): Promise<void> {
  const queues = driver.tapQueues > 1 ? "multi_queue" : "";
  await network.ip(`tuntap add ${tap} mode tap ${queues}`, `link set ${tap} up`);
}

/** Frames of both ends so far, with those that were lost on the way and counted by whoever lost them. */
async function frames(network: InteropNetwork, guest: NicGuest, peerCount: (name: string) => Promise<number>) {
  const own = await guest.counters();
  const driver = await guest.driverCounts();
  const folder = "/sys/class/net/tap1/statistics";
  const { finished } = network.program("cat", `${folder}/tx_dropped`, `${folder}/rx_dropped`);
  const [droppedOut = 0, droppedIn = 0] = (await finished).stdout.trim().split("\n").map(Number);
  // A driver counts as dropped, too, what an AF_XDP socket had no room for, or had no socket: those are Weir's overruns.
  const ofXdp = [...driver].reduce(
    (all, [name, count]) => all + (/^rx_queue_\d+_xdp_drops$/.test(name) ? count : 0),
    0,
  );
  const sum = (...names: string[]) => names.reduce((all, name) => all + total(own, name), 0);
  return {
    sent: sum("tx_packets", "tx_slow_path"),
    heardByPeer: await peerCount("rx_packets"),
    lostToPeer:
      droppedIn + sum("host_tx_errors") + (driver.get("tx_dropped") ?? 0) + (await peerCount("host_rx_overrun")),
    sentByPeer: (await peerCount("tx_packets")) + (await peerCount("tx_slow_path")),
    heard: total(own, "rx_packets"),
    lost:
      droppedOut +
      (driver.get("rx_dropped") ?? 0) -
      ofXdp +
      (driver.get("rx_missed_errors") ?? 0) +
      sum("host_rx_overrun", "host_rx_truncated", "host_rx_abandoned"),
  };
}

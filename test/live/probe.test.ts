/** The probe between namespaces: an independent sender and receiver of RoCEv2, which share no code with the native core. */
import { createSocket } from "node:dgram";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NetworkNamespace } from "../../src/host/namespace.js";
import { loadAddon } from "../../src/native/addon.js";
import type { NativeAddon, NativeWorker, WorkerConfig } from "../../src/native/types.js";
import { kProtocol, loadRawSocket, openIpSocket } from "../../src/probe/raw_socket.js";
import type { Arrival, ProbeReport } from "../../src/probe/report.js";
import { kRocePort } from "../../src/wire/headers.js";
import { describeUnless, itUnless } from "../obstacles.js";
import { kOrdinaryUser, liveObstacle, ordinaryUserObstacle } from "./capability.js";
import { type Running, start } from "./weir.js";

const kNicMac = 0x0257_4500_0002;
const kNicAddress = "10.87.9.2";
const kHostAddress = "10.87.9.1";
const kQpn = 0x21;

/** raw-socket is an optional dependency. */
function rawSocketObstacle(): string | undefined {
  try {
    loadRawSocket();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const mac = (value: number) => (value.toString(16).padStart(12, "0").match(/../g) ?? []).join(":");

describeUnless(liveObstacle() ?? rawSocketObstacle(), "weir probe", () => {
  let host: NetworkNamespace;
  let peer: NetworkNamespace;
  let hostMac: string;

  beforeAll(async () => {
    host = await NetworkNamespace.create();
    peer = await NetworkNamespace.create();
    await host.run("ip", ["link", "add", "to-peer", "type", "veth", "peer", "name", "to-host", "netns", peer.path]);
    await peer.run("ip", ["link", "set", "to-host", "address", mac(kNicMac), "up"]);
    await host.run("ip", ["link", "set", "to-peer", "up"]);
    await host.run("ip", ["address", "add", `${kHostAddress}/24`, "dev", "to-peer"]);
    await host.run("ip", ["neigh", "replace", kNicAddress, "lladdr", mac(kNicMac), "dev", "to-peer"]);
    const [link] = JSON.parse((await host.run("ip", ["-json", "link", "show", "to-peer"])).stdout) as [
      { address: string },
    ];
    hostMac = link.address;
  });
  afterAll(() => {
    host?.close();
    peer?.close();
  });

  const weir = (namespace: NetworkNamespace, ...args: string[]) =>
    start(["probe", ...args], ["nsenter", `--net=${namespace.path}`, "--"]);
  /** Waits for its end, and until nothing is left of it. */
  const end = async (running: Running) => {
    const finished = await running.finished;
    await running.nothingLeft();
    return finished;
  };
  const probe = async (...args: string[]) => {
    const { status, stdout, stderr } = await end(await weir(host, kNicAddress, "--json", ...args));
    expect(stderr).toBe("");
    return { status, report: JSON.parse(stdout) as ProbeReport };
  };

  /** A queue pair of a native NIC that only receives, connected to the probe's address. */
  function nic(addon: NativeAddon): NativeWorker {
    const octets = (address: string) => Uint8Array.from(address.split("."), Number);
    const config: WorkerConfig = {
      name: "probed",
      cpu: -1,
      seed: 1,
      packets: 256,
      packet_bytes: 2048,
      quantum: 20_000,
      prompt: false,
      sample_interval: 1_000_000,
      reset_after: 0,
      switches: [],
      nics: [
        {
          name: "n",
          port: {
            name: "host",
            interface: "to-host",
            namespace_fd: peer.fd,
            slot_bytes: 2048,
            receive_slots: 512,
            rate: 1e9,
            delay: 0,
          },
          rate: 1e9,
          arrears: 100_000,
          mac: kNicMac,
          first_qpn: kQpn,
          congestion_control: "dcqcn",
          dcqcn: {
            form: "paper",
            rpg_time_reset: 55_000,
            rpg_byte_reset: 10_000_000,
            rpg_threshold: 5,
            rpg_ai_rate: 40e6,
            rpg_hai_rate: 400e6,
            rpg_max_rate: 0,
            rpg_min_rate: 1e6,
            rpg_min_dec_fac: 0.5,
            g: 1 / 256,
            rate_decrease_factor: 0.5,
            dce_tcp_rtt: 55_000,
            rate_reduce_monitor_period: 0,
            initial_alpha_value: 1,
            alpha_decays_at_line_rate: false,
            clamp_tgt_rate: false,
            clamp_tgt_rate_after_time_inc: false,
            rate_to_set_on_first_cnp: 0,
            hyper_increase_scales: false,
            increase_restarts_counters: false,
            stage_by_increases: false,
            increase_raises_rate: false,
          },
          cnp_interval: 50_000,
          cnp_dscp: 48,
          cnp_priority: 6,
          line_rate_start: true,
          initial_rate: 0,
          pfc_priorities: 0,
          scheduler: { strict: 1 << 6, weights: Array(8).fill(1) },
          priority_map: { trust: "port", dscp: Array(64).fill(3), pcp: [0, 1, 2, 3, 4, 5, 6, 7], fallback: 3 },
          receive_buffer: { size: 0, drain: 0, xoff: 0, xon: 0 },
          queue_pairs: [
            {
              name: "to-host",
              remote_qpn: 0x99,
              path: {
                destination_mac: Number.parseInt(hostMac.replaceAll(":", ""), 16),
                source_mac: kNicMac,
                tagged: false,
                vlan_tci: 0,
                ip_version: 4,
                source_ip: octets(kNicAddress),
                destination_ip: octets(kHostAddress),
                dscp: 26,
                ecn: 2,
                udp_source_port: 0xc123,
              },
              priority: 3,
              operation: "write",
              path_mtu: 1024,
              message_bytes: 1024,
              total_bytes: 0,
              first_psn: 0,
              rate_cap: 0,
              remote_address: 0,
              remote_key: 0,
            },
          ],
        },
      ],
    };
    const worker = new addon.Worker(config);
    worker.open();
    worker.begin(addon.monotonicNow());
    return worker;
  }

  it("gets a CNP from a soft NIC for a CE packet, and none for others", async () => {
    const addon = loadAddon<NativeAddon>();
    const worker = nic(addon);
    try {
      const qpn = `0x${kQpn.toString(16)}`;
      const marked = await probe("--ecn", "ce", "--qpn", qpn, "--timeout", "5s");
      expect(marked).toMatchObject({
        status: 0,
        report: { responder: "answers", path_ecn: "survives", arrived_ecn: "ce" },
      });
      // The ICRC is checked by the implementation that did not make it.
      expect(marked.report.answers[0]).toMatchObject({
        kind: "cnp",
        source: kNicAddress,
        qpn: 0x99,
        ecn: "not-ect",
        icrc_ok: true,
      });
      const plain = await probe("--ecn", "ect0", "--qpn", qpn, "--timeout", "200ms");
      expect(plain).toMatchObject({
        status: 1,
        report: { responder: "silent", path_ecn: "unknown", sent: 3, answers: [] },
      });

      // The native core found all six frames of the other implementation sound.
      const counters = new Float64Array(1000);
      worker.readCounters(counters);
      const values = new Map(worker.manifest()?.map(({ name }, i) => [name, counters[i]]));
      const count = (stem: string) => [...values].find(([name]) => name.includes(stem))?.[1];
      expect(count("np_ecn_marked_roce_packets")).toBe(3);
      expect(count("rx_icrc_encapsulated")).toBe(0);
      expect(count("drop_unknown_qp")).toBe(0);
    } finally {
      worker.close();
    }
  });

  it("sees the ECN bits of another probe arrive, and who refuses when nobody listens", async () => {
    await peer.run("ip", ["address", "add", `${kNicAddress}/24`, "dev", "to-host"]);
    const listener = await weir(peer, "--listen", "--json", "--count", "2", "--timeout", "20s");
    await new Promise<void>((resolve) => listener.child.stderr?.once("data", () => resolve()));
    const { report } = await probe("--ecn", "ect1", "--count", "2", "--timeout", "100ms");
    // The listener has the port, so the kernel keeps quiet.
    expect(report).toMatchObject({ responder: "silent", answers: [] });
    const { status, stdout } = await end(listener);
    const arrivals = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Arrival);
    expect(status).toBe(0);
    expect(arrivals).toHaveLength(2);
    for (const arrival of arrivals) {
      expect(arrival).toMatchObject({ source: kHostAddress, name: "WRITE ONLY", ecn: "ect1", dscp: 26, icrc_ok: true });
    }

    const refused = await probe("--ecn", "ce", "--count", "1", "--timeout", "5s");
    expect(refused).toMatchObject({
      status: 1,
      report: { responder: "refused", path_ecn: "survives", arrived_ecn: "ce" },
    });
  });

  itUnless(ordinaryUserObstacle(), "names what is missing to an ordinary user", async () => {
    const { status, stdout, stderr } = await end(await start(["probe", "--listen"], kOrdinaryUser));
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^error: cannot open a raw socket: .*not permitted\n {2}hint: raw sockets need CAP_NET_RAW/);
  });

  it("keeps sockets open that only the kernel knows of", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const sender = createSocket("udp4");
    // Nothing but its own callback holds it.
    const opened = new Promise<() => void>((resolve, reject) => {
      const socket = openIpSocket(
        kProtocol.udp,
        (packet) => packet.includes("collected?") && resolve(socket.close),
        reject,
      );
    });
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    sender.send("collected?", kRocePort, "127.0.0.1");
    const close = await opened;
    close();
    sender.close();
  });
});

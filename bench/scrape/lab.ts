/** Eight hosts with a NIC daemon each and a switch daemon between them: seven send to one, so that there are marks, CNPs and pauses. */

import { LabNetwork } from "../../src/host/veth.js";
import { hostMac } from "../../src/scenario/addresses.js";
import { BenchDaemon, freePort } from "../daemon.js";

const kHosts = 8;
/** Nine data paths share this host with those who look at them. */
const kLink = "40Mbps";
/** Of the link that all want. */
const kBottleneck = "10Mbps";

export interface ScrapedDaemon {
  name: string;
  /** "127.0.0.1:9464". */
  address: string;
}

/** A lab for as long as `body` takes. */
export async function withLab<Result>(body: (daemons: readonly ScrapedDaemon[]) => Promise<Result>): Promise<Result> {
  const hosts = Array.from({ length: kHosts }, (_, i) => ({
    name: `h${i + 1}`,
    mac: hostMac(i),
    ip: `10.79.0.${i + 1}`,
  }));
  const receiver = hosts[kHosts - 1] as (typeof hosts)[number];
  const network = await LabNetwork.create(
    [...hosts.map(({ name }) => ({ name, role: "host" as const })), { name: "sw", role: "switch" }],
    hosts.map(({ name, mac }) => ({ from: name, to: "sw", mtu: 1500, fromMac: mac })),
  );
  const daemons: (ScrapedDaemon & { daemon: BenchDaemon })[] = [];
  const start = async (
    kind: "switch" | "nic",
    config: { name: string; metrics?: object } & Record<string, unknown>,
  ) => {
    const port = await freePort();
    const daemon = await BenchDaemon.start(kind, { ...config, metrics: { ...config.metrics, port } });
    daemons.push({ name: config.name, address: `127.0.0.1:${port}`, daemon });
  };
  try {
    const namespace = network.namespace("sw").path;
    await start("switch", {
      name: "sw0",
      ports: hosts.map(({ name }) => ({
        interface: name,
        namespace,
        rate: name === receiver.name ? kBottleneck : kLink,
      })),
      ecn: { kmin: "10KB", kmax: "200KB", pmax: "10%", priorities: [3] },
      pfc: { priorities: [3] },
      // Pauses may take effect late where the CPUs have much to do.
      buffer: { mode: "static", threshold: "40KB", headroom: "100KB" },
    });
    const startNic = async (host: (typeof hosts)[number]) => {
      const peers = host === receiver ? hosts.filter((one) => one !== receiver) : [receiver];
      await start("nic", {
        name: `roce-${host.name}`,
        interface: "weir0",
        namespace: network.namespace(host.name).path,
        address: host.ip,
        rate: kLink,
        peers: peers.map(({ name, ip, mac }) => ({ name, address: ip, mac: macText(mac) })),
        queue_pairs: peers.map(({ name }) => ({
          name: `${host.name}-${name}`,
          peer: name,
          // Each end's first queue pair is 0x11; the receiver has one for each sender, in their order.
          remote_qpn: host === receiver ? 0x11 : 0x11 + hosts.indexOf(host),
          ...(host !== receiver && { send: { message: "100KB" } }),
        })),
        metrics: { per_qp: true, node_infiniband: true },
      });
    };
    await Promise.all(hosts.map(startNic));
    return await body(daemons.map(({ name, address }) => ({ name, address })));
  } finally {
    for (const { daemon } of daemons.reverse()) await daemon.stop();
    network.close();
  }
}

function macText(mac: number): string {
  return (mac.toString(16).padStart(12, "0").match(/../g) ?? []).join(":");
}

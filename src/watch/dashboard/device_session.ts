/** Describes a daemon as a session: its ports as links, a NIC's queue pairs as flows. */

import type { DeviceConfig } from "../../device/file/load.js";
import { describeQueues } from "./lab_session.js";
import type { Session } from "./protocol.js";

/** Queue pairs that are shown, the first ones of the file. */
export const kMostFlows = 256;
/** Name of the node that stands for whatever a NIC is linked to. */
export const kNetwork = "network";

type Described = Pick<Session, "kind" | "name" | "congestion_control" | "topology" | "flows" | "queues">;

/** @param queues Names of the queues that are shown. */
export function describeDevice(config: DeviceConfig, queues: readonly string[]): Described {
  const { kind, name } = config;
  if (config.kind === "nic") {
    const { port, queue_pairs, congestion } = config;
    return {
      ...{ kind, name, congestion_control: congestion.algorithm, queues: [] },
      topology: {
        nodes: [name, kNetwork].map((node) => ({ name: node, kind: "host" })),
        links: [{ from: name, to: kNetwork, rate_bps: port.rate }],
      },
      flows: queue_pairs.slice(0, kMostFlows).map(({ name: id, peer, priority, send }) => ({
        id,
        ...(send ? { from: name, to: peer.name } : { from: peer.name, to: name }),
        priority,
      })),
    };
  }
  const { ecn, qcn } = config.switch;
  return {
    ...{ kind, name, congestion_control: qcn.enabled ? "qcn" : ecn.enabled ? "dcqcn" : "none", flows: [] },
    topology: {
      nodes: [
        ...config.ports.map((port) => ({ name: port.name, kind: "host" as const })),
        { name, kind: "switch" as const },
      ],
      links: config.ports.map((port) => ({ from: port.name, to: name, rate_bps: port.rate })),
    },
    queues: describeQueues({ switches: [config.switch] }, queues),
  };
}

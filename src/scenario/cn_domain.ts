// The congestion notification domain (802.1Q clauses 30 to 32): which ports of a switch are inside it, and how its edge is defended.
import { hearsCnms } from "../congestion/flow_state.js";
import type { CnDefence, SwitchQcn } from "../congestion/qcn_points.js";
import { kPriorities } from "../wire/priority.js";
import type { Congestion, HostConfig, Scenario, SwitchConfig } from "./types.js";

/** Defence of one port, by priority. */
export interface PortDefence {
  defence: CnDefence[];
  alternate: number[];
}

/** @param automatic Returns the defence that `auto` means at the port for a CNPV. */
export function portDefence(qcn: SwitchQcn, port: string, automatic: (priority: number) => CnDefence): PortDefence {
  const own = qcn.ports[port];
  const wish = own?.defence ?? qcn.defence;
  return {
    defence: kPriorities.map((p) => {
      if (!qcn.priorities.includes(p)) return "disabled";
      return wish === "auto" ? automatic(p) : wish;
    }),
    alternate: kPriorities.map(() => own?.alternate_priority ?? qcn.alternate_priority),
  };
}

/** Whether frames that a host sends at a priority carry CN-TAGs. */
export function sendsCnTags(
  { algorithm }: Pick<Congestion, "algorithm">,
  { qcn }: HostConfig,
  priority: number,
): boolean {
  return hearsCnms(algorithm) && qcn.cn_tag && qcn.priorities.includes(priority);
}

/** The domain of one scenario whose hosts run QCN; in other scenarios no device is in a domain. */
export class CnDomain {
  private readonly switches: ReadonlyMap<string, SwitchConfig>;
  private readonly hosts: ReadonlyMap<string, HostConfig>;

  constructor(private readonly scenario: Pick<Scenario, "switches" | "hosts" | "congestion">) {
    this.switches = new Map(scenario.switches.map((s) => [s.name, s]));
    this.hosts = new Map(scenario.hosts.map((host) => [host.name, host]));
  }

  /** The defence at the port of a switch that faces `peer`. */
  at({ qcn }: SwitchConfig, peer: string): PortDefence {
    return portDefence(qcn, peer, (priority) => this.neighbour(peer, priority));
  }

  /** The defence as LLDP would find it: whether the neighbour is in the domain of this priority, and knows CN-TAGs. */
  private neighbour(name: string, priority: number): CnDefence {
    const other = this.switches.get(name)?.qcn;
    if (other !== undefined) return other.enabled && other.priorities.includes(priority) ? "interior-ready" : "edge";
    const host = this.hosts.get(name)?.qcn;
    if (!hearsCnms(this.scenario.congestion.algorithm) || !host?.priorities.includes(priority)) return "edge";
    return host.cn_tag ? "interior-ready" : "interior";
  }
}

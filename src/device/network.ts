/** Behaviour of a network's switches and NICs, and the traffic of its flows, as far as labs and simulations have them in common. */

import { hearsTelemetry } from "../congestion/flow_state.js";
import type { NativeRouter } from "../native/types.js";
import { hostMac, routerMac, switchMac } from "../scenario/addresses.js";
import { priorityRates } from "../scenario/changes.js";
import { CnDomain } from "../scenario/cn_domain.js";
import type { Fabric } from "../scenario/fabric.js";
import type { NextHopGroups } from "../scenario/topology.js";
import { applications } from "../scenario/traffic.js";
import type { Flow, Link, Scenario, SwitchConfig } from "../scenario/types.js";
import { nicBehaviour, portBehaviour, switchBehaviour } from "./behaviour.js";
import { fabricRouter, gatewayOf } from "./fabric_router.js";

/** Composes devices and flows, by their numbers in the fabric. */
export class NetworkComposer {
  private readonly domain: CnDomain;
  private readonly applications: readonly number[];

  /** @param lateness Meant ns by which feedback may be late. */
  constructor(
    private readonly scenario: Scenario,
    private readonly fabric: Fabric,
    private readonly lateness = 0,
  ) {
    this.domain = new CnDomain(scenario);
    this.applications = applications(scenario.flows);
  }

  /** A switch as it is from `time` on, meant ns; its routes are left to the caller. */
  switchAt(index: number, time: number) {
    const { seed, ecmp_seed, links, switches } = this.scenario;
    const s = switches[index] as SwitchConfig;
    const ports = (this.fabric.ports[index] ?? []).map(({ link, peer }, port) => {
      const { rate, mtu } = links[link] as Link;
      const name = this.fabric.nameOf(peer);
      const limits = priorityRates(this.scenario, { switch: s.name, port: name, time });
      return {
        rate,
        mtu,
        mac: switchMac(index, port),
        ...(limits && { priority_rates: limits }),
        ...portBehaviour(s, name, this.domain.at(s, name)),
      };
    });
    const fastest = Math.max(0, ...ports.map(({ rate }) => rate));
    return {
      ports,
      ...switchBehaviour(s, Math.ceil((fastest * this.lateness) / 8e9)),
      ...(hearsTelemetry(this.scenario.congestion.algorithm) && { telemetry: true }),
      learning: s.forwarding === "learning",
      ageing: s.ageing,
      load_balancing: s.load_balancing,
      flowlet_gap: s.flowlet_gap,
      seed,
      hash_seed: ecmp_seed,
      component: index,
    };
  }

  /** Router of a switch that routes, by those paths. @param versions Versions of IP that hosts speak. */
  router(index: number, paths: NextHopGroups, versions: readonly (4 | 6)[]): { router?: NativeRouter } {
    if (this.scenario.switches[index]?.forwarding !== "routed") return {};
    return { router: fabricRouter(this.scenario, this.fabric, index, paths, versions) };
  }

  /** MAC address to which a host sends frames for another: the other's, or its router's. */
  nextMac(host: number, other: number): number {
    const gateway = gatewayOf(this.fabric, host);
    return gateway === undefined ? hostMac(other) : routerMac(gateway);
  }

  nic(index: number) {
    const { seed, congestion, hosts } = this.scenario;
    const { link, neighbour } = this.fabric.attachment(index);
    const setting = { rate: link.rate, seed, component: index };
    const behaviour = nicBehaviour(hosts[index] as Scenario["hosts"][number], neighbour, congestion, setting);
    return { mac: hostMac(index), ...behaviour };
  }

  /** Traffic of a flow's sending queue pair, as far as it is the same on every clock. */
  flow(number: number) {
    const { flows, hosts } = this.scenario;
    const flow = flows[number] as Flow;
    return {
      priority: flow.priority,
      operation: flow.operation,
      path_mtu: hosts[this.fabric.host(flow.from)]?.path_mtu ?? 1024,
      message_bytes: flow.message,
      total_bytes: flow.bytes ?? 0,
      rate_cap: flow.rate ?? 0,
      application: this.applications[number] ?? 0,
    };
  }
}

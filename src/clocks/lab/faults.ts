/** Faults of a scenario at the ports of a running lab. */
import { nativeFault } from "../../device/faults.js";
import type { FaultState } from "../../native/reports.js";
import { kUnits } from "../../native/units.js";
import { inWallUnits } from "../../native/wall.js";
import type { FaultWorker } from "../../native/workers.js";
import type { Fabric } from "../../scenario/fabric.js";
import { failedLinks } from "../../scenario/failures.js";
import { deviceOfFault, linksOfFault, requestOf } from "../../scenario/faults.js";
import { Share } from "../../scenario/parts.js";
import type { LinkPlace } from "../../scenario/places.js";
import type { Fault, Link } from "../../scenario/types.js";
import type { LabAccess } from "./access.js";
import { labPort } from "./capture.js";

interface Made {
  worker: FaultWorker;
  number: number;
}

export class LabFaults {
  /** By the scenario's faults, and by their links; a link that goes down does so at both ends, as one that fails does. */
  private readonly made: readonly Made[][][];

  /** Hands all of them to the workers, which begin them at their times. */
  constructor(
    private readonly lab: Pick<LabAccess, "scenario" | "scale" | "switches" | "nics" | "now">,
    fabric: Fabric,
  ) {
    const { scenario } = lab;
    this.made = scenario.faults.map((fault) => this.make(fault, fabric));
    for (const { link, at, until } of failedLinks(scenario)) {
      const lasts = Number.isFinite(until) ? { for: until - at } : {};
      this.add(
        { device: link.from, kind: "down", link: scenario.links.indexOf(link) },
        { kind: "down", after: at, ...lasts },
      );
    }
  }

  /** States of the faults; undefined: those of another part. */
  states(): (Pick<FaultState, "matched" | "hits"> | undefined)[] {
    const workers = [this.lab.switches.worker, this.lab.nics.worker];
    const states = new Map(workers.map((worker) => [worker as FaultWorker, worker.faults()]));
    return this.made.map((links) => {
      const known = links.flatMap(([first]) => {
        const state = states.get(first?.worker as FaultWorker)?.find(({ number }) => number === first?.number);
        return state === undefined ? [] : [state];
      });
      if (known.length === 0) return undefined;
      // Links of a device go down together: its times are those of any.
      return { matched: Math.max(...known.map((one) => one.matched)), hits: Math.max(...known.map((one) => one.hits)) };
    });
  }

  private make(fault: Fault, fabric: Fabric): Made[][] {
    const { links } = this.lab.scenario;
    return linksOfFault(links, fault).map((link) => {
      const place = { ...fault, link: links.indexOf(link), device: deviceOfFault(fault, link) };
      return this.add(place, { ...requestOf(fault, fabric), after: fault.at });
    });
  }

  /** @param request `after` counts from the start of traffic. */
  private add(place: Place, { after = 0, ...request }: Parameters<typeof nativeFault>[0]): Made[] {
    const { scenario, scale } = this.lab;
    const share = new Share(scenario);
    const link = scenario.links[place.link] as Link;
    return endsOf(place, link)
      .filter(({ node }) => share.has(node))
      .map((end) => {
        const { worker, device, port } = labPort(this.lab, end).place;
        // Time goes on meanwhile: each counts from its own moment.
        const left = Math.max(0, after - this.lab.now());
        const native = inWallUnits(nativeFault({ ...request, after: left }, link.rate), kUnits.NativeFault, scale);
        return { worker, number: worker.addFault({ tap: 0, device, port }, native) };
      });
  }
}

type Place = Pick<Fault, "device" | "kind"> & { link: number };

/** Ends at which a fault is made; first that at which the scenario has it. */
function endsOf({ device, kind, link }: Place, { from, to }: Link): LinkPlace[] {
  const near = { link, node: device, peer: device === from ? to : from };
  return kind === "down" ? [near, { link, node: near.peer, peer: near.node }] : [near];
}

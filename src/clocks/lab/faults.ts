/** Faults of a scenario at the ports of a running lab. */
import { nativeFault } from "../../device/faults.js";
import type { FaultState } from "../../native/reports.js";
import { kUnits } from "../../native/units.js";
import { inWallUnits } from "../../native/wall.js";
import type { FaultWorker } from "../../native/workers.js";
import type { Fabric } from "../../scenario/fabric.js";
import { linkOfFault, requestOf } from "../../scenario/faults.js";
import { Share } from "../../scenario/parts.js";
import type { LinkPlace } from "../../scenario/places.js";
import type { Fault } from "../../scenario/types.js";
import type { LabAccess } from "./access.js";
import { labPort } from "./capture.js";

interface Made {
  worker: FaultWorker;
  number: number;
}

export class LabFaults {
  /** By the scenario's faults; a link that goes down does so at both ends. */
  private readonly made: readonly Made[][];

  /** Hands all of them to the workers, which begin them at their times. */
  constructor(
    private readonly lab: Pick<LabAccess, "scenario" | "scale" | "switches" | "nics" | "now">,
    fabric: Fabric,
  ) {
    this.made = lab.scenario.faults.map((fault) => this.make(fault, fabric));
  }

  /** States of the faults; undefined: those of another part. */
  states(): (Pick<FaultState, "matched" | "hits"> | undefined)[] {
    const workers = [this.lab.switches.worker, this.lab.nics.worker];
    const states = new Map(workers.map((worker) => [worker as FaultWorker, worker.faults()]));
    return this.made.map(([first]) =>
      states.get(first?.worker as FaultWorker)?.find((one) => one.number === first?.number),
    );
  }

  private make(fault: Fault, fabric: Fabric): Made[] {
    const { scenario, scale } = this.lab;
    const share = new Share(scenario);
    const link = linkOfFault(scenario.links, fault);
    return endsOf(fault, scenario.links[link] as { from: string; to: string }, link)
      .filter(({ node }) => share.has(node))
      .map((end) => {
        const { worker, device, port } = labPort(this.lab, end).place;
        // Time goes on meanwhile: each is as late as the calls before it.
        const after = Math.max(0, fault.at - this.lab.now());
        const native = inWallUnits(nativeFault({ ...requestOf(fault, fabric), after }), kUnits.NativeFault, scale);
        return { worker, number: worker.addFault({ tap: 0, device, port }, native) };
      });
  }
}

/** Ends at which a fault is made; first that at which the scenario has it. */
function endsOf({ device, kind }: Fault, { from, to }: { from: string; to: string }, link: number): LinkPlace[] {
  const near = { link, node: device, peer: device === from ? to : from };
  return kind === "down" ? [near, { link, node: near.peer, peer: near.node }] : [near];
}

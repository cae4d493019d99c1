/** Places of traces: which frames go to which file. */
import { WeirError } from "../../base/error.js";
import type { SimulationConfig } from "../../native/simulation_types.js";
import type { Fabric, FabricEnd } from "../../scenario/fabric.js";
import { type FileRequest, findPlaces } from "../../scenario/places.js";
import type { Scenario } from "../../scenario/types.js";
import { openTrace, type Trace, type TraceTap } from "./trace.js";

/** The traces of a run: where the native core taps, and the files that it fills. */
export class Taps {
  readonly places: SimulationConfig["taps"] = [];
  private readonly names: string[] = [];
  private readonly files: { file: string; taps: Set<number> }[] = [];
  private traces: Trace[] = [];

  /**
   * A link is traced in both directions, a device as all of its links.
   * @throws WeirError for a place that the scenario does not have, and where two traces have one file.
   */
  constructor(scenario: Scenario, fabric: Fabric, requests: readonly FileRequest[]) {
    const numbers = new Map<string, number>();
    for (const { target, file } of requests) {
      if (this.files.some((other) => other.file === file)) {
        throw new WeirError(`--trace ${target}: ${file} is written to already`, {
          hint: "give each trace its own file",
        });
      }
      const taps = findPlaces(scenario.links, target, "--trace").flatMap(({ link }) =>
        (fabric.ends[link] ?? []).map((end) => this.tap(fabric, end, numbers)),
      );
      this.files.push({ file, taps: new Set(taps) });
    }
  }

  open(): void {
    for (const { file, taps } of this.files) {
      const own = this.names.map((name, i): TraceTap | undefined => (taps.has(i) ? { name } : undefined));
      this.traces.push(openTrace(file, own));
    }
  }

  write(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    for (const trace of this.traces) trace.write(chunk);
  }

  close(): void {
    for (const trace of this.traces) trace.close();
    this.traces = [];
  }

  private tap(fabric: Fabric, end: FabricEnd, numbers: Map<string, number>): number {
    const key = `${end.device} ${end.port}`;
    const known = numbers.get(key);
    if (known !== undefined) return known;
    const peer = fabric.ports[end.device]?.[end.port]?.peer ?? -1;
    const number = this.places.push(end) - 1;
    this.names.push(`${fabric.nameOf(end.device)}--${fabric.nameOf(peer)}`);
    numbers.set(key, number);
    return number;
  }
}

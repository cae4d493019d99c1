/** Captures of labs: what `--capture` asks for, and a lab's devices as `weir capture` sees them. */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { WeirError } from "../base/error.js";
import { formatRate } from "../base/units.js";
import { interfaceDescription, interfaceStatistics, sectionHeader } from "../capture/pcapng.js";
import { sectionOfHere } from "../capture/section.js";
import { FrameTap } from "../capture/tap.js";
import type { CapturePort } from "../device/captures.js";
import { kCaptureKinds, type NativeAddon } from "../native/types.js";
import { findPlaces, type LinkPlace } from "../scenario/places.js";
import { switchPorts } from "../scenario/topology.js";
import type { Link, Scenario } from "../scenario/types.js";
import type { LabAccess, LabObserver } from "./access.js";
import type { CaptureRequest } from "./types.js";

export interface LabCaptures {
  /** The pcap file of each end that has one, by "link node": a file has one end. */
  pcap: Map<string, string>;
  /** A file has all ends of its place. */
  pcapng: { file: string; ends: LinkPlace[] }[];
}

/**
 * A link is captured at its first end; a node at each of its ports: in pcapng, in one file, else in one file per port when there
 * are several.
 * @throws WeirError for a place that the scenario does not have, and where two captures meet in one place or file.
 */
export function planCaptures(scenario: Scenario, requests: readonly CaptureRequest[], directory: string): LabCaptures {
  const plan: LabCaptures = { pcap: new Map(), pcapng: [] };
  const files = new Set<string>();
  const places = new Set<string>();
  for (const { target, file } of requests) {
    const path = isAbsolute(file) ? file : join(directory, file);
    const ends = findPlaces(scenario.links, target, "--capture");
    for (const { link, node, peer } of ends) {
      if (places.has(`${link} ${node}`))
        throw new WeirError(`--capture ${target}: ${node}--${peer} is captured already`);
      places.add(`${link} ${node}`);
    }
    const take = (own: string) => {
      if (files.has(own)) throw new WeirError(`--capture ${target}: ${own} is written to already`);
      files.add(own);
      return own;
    };
    if (path.endsWith(".pcapng")) {
      plan.pcapng.push({ file: take(path), ends });
      continue;
    }
    for (const { link, node, peer } of ends) {
      const own = ends.length === 1 ? path : path.replace(/(\.\w+)?$/, `-${peer}$1`);
      plan.pcap.set(`${link} ${node}`, take(own));
    }
  }
  return plan;
}

type Running = Pick<LabAccess, "scenario" | "scale" | "switches" | "nics">;

/** Comments tell the meant rate; the link itself, and the times in the file, are slower by the scale. */
function labPort({ scenario, scale, switches, nics }: Running, { link, node, peer }: LinkPlace): CapturePort {
  const { rate } = scenario.links[link] as Link;
  const asSwitch = scenario.switches.findIndex(({ name }) => name === node);
  const port = (switchPorts(scenario).get(node) ?? []).findIndex((own) => own.link === scenario.links[link]);
  const place = { rate, meant: scale !== 1 };
  const meant = scale === 1 ? "" : ` meant, times are stretched by ${scale}`;
  return {
    name: peer,
    description: `${node}, port to ${peer}, ${formatRate(rate, 4)}${meant}`,
    speed: rate / scale,
    place:
      asSwitch >= 0
        ? { ...place, worker: switches.worker, device: asSwitch, port }
        : { ...place, worker: nics.worker, device: scenario.hosts.findIndex(({ name }) => name === node), port: 0 },
  };
}

/** The ports of a device of a lab, for captures over its control socket. They are called as those that they face. */
export function labCapturePorts(lab: Running, device: string): CapturePort[] {
  return findPlaces(lab.scenario.links, device, "device").map((end) => labPort(lab, end));
}

/** Writes one pcapng file. */
export class PcapngFile implements LabObserver {
  private readonly descriptor: number;
  private readonly from = BigInt(Date.now()) * 1_000_000n;
  private tap: FrameTap | undefined;
  private closed = false;

  /** Creates the file, or empties it. @throws WeirError when it cannot be written. */
  constructor(
    private readonly addon: Pick<NativeAddon, "Capture">,
    private readonly file: string,
    private readonly ends: readonly LinkPlace[],
    private readonly version: string,
  ) {
    this.descriptor = this.#writing(() => openSync(file, "w"));
  }

  /** Frames that are missing because the file was written too slowly. */
  get dropped(): number {
    return (this.tap?.counts() ?? []).reduce((sum, { dropped }) => sum + dropped, 0);
  }

  begun(lab: LabAccess): void {
    const ports = this.ends.map((end) => ({ ...labPort(lab, end), node: end.node }));
    const described = ports.map(({ node, name, description, speed }) =>
      interfaceDescription({ name: `${node}:${name}`, description, speed, snapLength: kSnaplen }),
    );
    this.#write(Buffer.concat([sectionHeader(sectionOfHere(this.version)), ...described]));
    const kinds = Object.values(kCaptureKinds).reduce((mask, kind) => mask | kind, 0);
    this.tap = new FrameTap(
      this.addon,
      ports.map(({ place }) => place),
      { snaplen: kSnaplen, kinds },
    );
  }

  looked(): void {
    for (let more = true; more; ) {
      more = false;
      for (const blocks of this.tap?.drain() ?? []) {
        this.#write(blocks);
        more = true;
      }
    }
  }

  ended(): void {
    this.tap?.detach();
  }

  /** The rest. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    try {
      this.looked();
      const to = BigInt(Date.now()) * 1_000_000n;
      const statistics = (this.tap?.counts() ?? []).map(({ seen, captured, dropped }, i) =>
        interfaceStatistics(i, { from: this.from, to, seen, wanted: captured + dropped, dropped, written: captured }),
      );
      this.#write(Buffer.concat(statistics));
    } finally {
      closeSync(this.descriptor);
    }
  }

  #write(bytes: Buffer): void {
    this.#writing(() => writeFileSync(this.descriptor, bytes));
  }

  #writing<T>(action: () => T): T {
    try {
      return action();
    } catch (cause) {
      throw new WeirError(`cannot write ${this.file}: ${(cause as Error).message}`, { field: "--capture", cause });
    }
  }
}

const kSnaplen = 262_144;

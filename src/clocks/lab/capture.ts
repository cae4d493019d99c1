/** Captures of labs: the files of `--capture`, and a lab's devices as `weir capture` sees them. */

import { closeSync, openSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { getSystemErrorMap } from "node:util";
import { WeirError } from "../../base/error.js";
import { formatRate } from "../../base/units.js";
import { PcapRecords, pcapHeader } from "../../device/capture/pcap.js";
import { fileHeader, interfaceStatistics } from "../../device/capture/pcapng.js";
import { kindsMask, kKindNames } from "../../device/capture/request.js";
import { sectionOfHere } from "../../device/capture/section.js";
import { FrameTap } from "../../device/capture/tap.js";
import type { FaultPort } from "../../device/faults.js";
import type { NativeAddon } from "../../native/types.js";
import { Share } from "../../scenario/parts.js";
import { type FileRequest, findPlaces, type LinkPlace } from "../../scenario/places.js";
import { switchPorts } from "../../scenario/topology.js";
import type { Link, Scenario } from "../../scenario/types.js";
import type { LabObserver, OpenLab } from "./access.js";

/** One file, and the ends of links whose frames it has: a pcap file has one end. */
export interface LabCapture {
  file: string;
  format: "pcap" | "pcapng";
  ends: LinkPlace[];
}

/**
 * A link is captured at its first end; a node at each of its ports: in pcapng, in one file, else in one file per port when there
 * are several.
 * @throws WeirError for a place that the scenario does not have, and where two captures meet in one place or file.
 */
export function planCaptures(scenario: Scenario, requests: readonly FileRequest[], directory: string): LabCapture[] {
  const plan: LabCapture[] = [];
  const share = new Share(scenario);
  const files = new Set<string>();
  const places = new Set<string>();
  for (const { target, file } of requests) {
    const path = isAbsolute(file) ? file : join(directory, file);
    const ends = findPlaces(scenario.links, target, "--capture").filter(({ node }) => share.has(node));
    if (ends.length === 0) {
      throw new WeirError(`--capture ${target}: it is not in the part ${scenario.part}`, {
        hint: "capture it where its part runs",
      });
    }
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
      plan.push({ file: take(path), format: "pcapng", ends });
      continue;
    }
    for (const end of ends) {
      const own = ends.length === 1 ? path : path.replace(/(\.\w+)?$/, `-${end.peer}$1`);
      plan.push({ file: take(own), format: "pcap", ends: [end] });
    }
  }
  return plan;
}

type Running = Pick<OpenLab, "scenario" | "scale" | "switches" | "nics">;

/** Comments tell the meant rate; the link itself, and the times in the file, are slower by the scale. */
export function labPort({ scenario, scale, switches, nics }: Running, { link, node, peer }: LinkPlace): FaultPort {
  const { rate } = scenario.links[link] as Link;
  const share = new Share(scenario);
  const asSwitch = share.switchAt(node);
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
        : { ...place, worker: nics.worker, device: share.hostAt(node), port: 0 },
  };
}

/** The ports of a device of a lab, for captures over its control socket. They are called as those that they face. */
export function labCapturePorts(lab: Running, device: string): FaultPort[] {
  return findPlaces(lab.scenario.links, device, "device").map((end) => labPort(lab, end));
}

/** Writes one file while the lab runs. */
export class LabCaptureFile implements LabObserver {
  private failure: NodeJS.ErrnoException | undefined;
  private readonly descriptor: number;
  private readonly from = BigInt(Date.now()) * 1_000_000n;
  private tap: FrameTap | undefined;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  /** Creates the file, or empties it. @throws WeirError when it cannot be written. */
  constructor(
    private readonly addon: Pick<NativeAddon, "Capture">,
    private readonly capture: LabCapture,
    private readonly version: string,
  ) {
    const { file } = capture;
    try {
      this.descriptor = openSync(file, "w");
    } catch (cause) {
      throw new WeirError(`cannot write ${file}: ${(cause as Error).message}`, { field: "--capture", cause });
    }
  }

  /** Reason why a pcap file ends early, once it does: frames go on passing. */
  get error(): string | undefined {
    return this.failure && `${this.capture.file}: ${systemMessage(this.failure)}`;
  }

  /** @throws WeirError when a file of pcapng cannot be written any more. */
  looked(): void {
    const { failure: cause, capture } = this;
    if (cause === undefined || capture.format === "pcap") return;
    throw new WeirError(`cannot write ${capture.file}: ${cause.message}`, { field: "--capture", cause });
  }

  /** Frames that are missing because the file was written too slowly. */
  get dropped(): number {
    return (this.tap?.counts() ?? []).reduce((sum, { dropped }) => sum + dropped, 0);
  }

  opened(lab: OpenLab): void {
    const ports = this.capture.ends.map((end) => ({ ...labPort(lab, end), node: end.node }));
    const pcap = this.capture.format === "pcap";
    const interfaces = ports.map((port) => ({ ...port, name: `${port.node}:${port.name}`, snapLength: kSnaplen }));
    this.#write(pcap ? pcapHeader(kSnaplen) : fileHeader(sectionOfHere(this.version), interfaces));
    this.tap = new FrameTap(
      this.addon,
      ports.map(({ place }) => place),
      { snaplen: kSnaplen, kinds: kindsMask(kKindNames), ...(pcap && { encoder: new PcapRecords() }) },
    );
    this.#tick();
  }

  ended(): void {
    this.tap?.detach();
    this.close();
  }

  /** Writes the rest of the frames and closes the file. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    while (this.#pass());
    if (this.capture.format === "pcapng") {
      const to = BigInt(Date.now()) * 1_000_000n;
      const statistics = (this.tap?.counts() ?? []).map(({ seen, captured, dropped }, i) =>
        interfaceStatistics(i, { from: this.from, to, seen, wanted: captured + dropped, dropped, written: captured }),
      );
      this.#write(Buffer.concat(statistics));
    }
    closeSync(this.descriptor);
  }

  /** Writes in small steps while frames wait, so that other files and the lab itself have their turn in between. */
  #tick(): void {
    const more = this.#pass();
    this.timer = setTimeout(() => this.#tick(), more ? 0 : kDrainMs);
  }

  /** Writes the frames that have come. Returns whether there were any. */
  #pass(): boolean {
    let more = false;
    for (const part of this.tap?.drain() ?? []) {
      this.#write(part);
      more = true;
    }
    return more;
  }

  #write(bytes: Buffer): void {
    if (this.failure !== undefined) return;
    try {
      writeFileSync(this.descriptor, bytes);
    } catch (cause) {
      this.failure = cause as NodeJS.ErrnoException;
    }
  }
}

/** Text of the error as strerror(3) has it, or nearly. */
function systemMessage({ errno, message }: NodeJS.ErrnoException): string {
  const [, text = message] = getSystemErrorMap().get(errno ?? 0) ?? [];
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const kSnaplen = 262_144;
const kDrainMs = 10;

/** One part of a lab while it runs: the interfaces that join it to others, and its hellos there. */
import { closeSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../../../base/error.js";
import { formatTime } from "../../../base/units.js";
import { type Carrier, carrierLosses, checkCarrier, inspectCarrier } from "../../../host/carrier.js";
import type { LinkSockets, NativeAddon } from "../../../native/types.js";
import { type Crossing, digestOf, linkName, Share } from "../../../scenario/parts.js";
import type { Link, Scenario } from "../../../scenario/types.js";
import { decodeHello, encodeHello, kHelloEthertype } from "./hello.js";
import type { JointReport } from "./joint.js";
import { Meeting } from "./meeting.js";

type Addon = Pick<NativeAddon, "monotonicNow"> & LinkSockets;

/** Time between two looks at what has come; hellos go out with each, while a run lasts with every fifth. */
const kStepMs = 20;
const kRunningSteps = 5;
/** Starts that are nearer than this, ns, would be missed. */
const kLatestNs = 100e6;
/** A run is over when nothing has happened anywhere for this long beyond the delays of links, ns. */
const kQuietNs = 200e6;
/** Longest frame that is read, bytes. */
const kLongestFrame = 2048;

export interface PartOptions {
  /** Time that the others may take to come, ns. */
  patience: number;
  /** Is given one sentence for the person who waits. */
  tell(text: string): void;
  /** Is given each doubt about the run, one sentence each. */
  warn(text: string): void;
}

interface Joint {
  crossing: Crossing;
  carrier: Carrier;
  socket: number;
}

export class PartRun {
  private readonly meeting: Meeting;
  private readonly stopped = new AbortController();
  private readonly words = new Float64Array(2);
  private readonly frame = Buffer.alloc(kLongestFrame);
  private timer: NodeJS.Timeout | undefined;
  private steps = 0;
  private begun = false;
  private over = false;
  private quietSince = Number.POSITIVE_INFINITY;

  private constructor(
    private readonly addon: Addon,
    private readonly scenario: Scenario,
    private readonly joints: readonly Joint[],
    private readonly options: PartOptions,
  ) {
    const names = scenario.parts.map(({ name }) => name);
    const place = {
      digest: digestOf(scenario),
      parts: names,
      own: names.indexOf(scenario.part ?? ""),
      links: joints.map(({ crossing }) => ({
        link: crossing.link,
        far: names.indexOf(crossing.farPart),
        interface: crossing.interface,
      })),
    };
    this.meeting = new Meeting(place, Date.now());
  }

  /** @throws WeirError for an interface that is not there, or cannot carry its link. */
  static open(addon: Addon, scenario: Scenario, options: PartOptions): PartRun {
    const joints: Joint[] = [];
    try {
      for (const crossing of new Share(scenario).crossings) {
        const carrier = openCarrier(scenario, crossing, options);
        const socket = asWeirError(() => addon.openLinkSocket(crossing.interface, kHelloEthertype));
        joints.push({ crossing, carrier, socket });
      }
    } catch (error) {
      for (const { socket } of joints) closeSync(socket);
      throw error;
    }
    const run = new PartRun(addon, scenario, joints, options);
    run.timer = setInterval(() => run.step(), kStepMs);
    return run;
  }

  /** Signal that is aborted, with the reason, when the run cannot go on as one of all parts. */
  get signal(): AbortSignal {
    return this.stopped.signal;
  }

  /**
   * Waits for the others once all is open here. Returns when traffic starts, by monotonicNow().
   * @throws WeirError when they do not come, or run something else; the signal's reason.
   */
  async agree(signal: AbortSignal): Promise<number> {
    const { addon, meeting, options } = this;
    const limit = addon.monotonicNow() + options.patience;
    let told = "";
    for (;;) {
      await sleep(kStepMs);
      signal.throwIfAborted();
      if (meeting.problem !== undefined) {
        throw new WeirError(meeting.problem, { hint: "run the same file with the same options at all parts" });
      }
      if (meeting.synchronised) meeting.enter("ready");
      if (meeting.agree(addon.monotonicNow())) break;
      const missing = meeting.absent.filter((name) => name !== this.scenario.part).join(", ");
      if (addon.monotonicNow() > limit) throw this.nobody(missing);
      if (missing !== "" && missing !== told) options.tell(`part ${this.scenario.part} waits for ${missing}`);
      told = missing;
    }
    const start = meeting.startsAt;
    if (start - addon.monotonicNow() < kLatestNs) {
      throw new WeirError("the other parts have started without this one", { hint: "start it again at all of them" });
    }
    meeting.enter("running");
    this.begun = true;
    return start;
  }

  /** Tells the others at once to end the run, too, because traffic ends before its time here. */
  leave(why: string): void {
    this.meeting.enter("ended", why);
    this.send();
  }

  /** Whether traffic is over here and no frame under way, which may change while other parts send. */
  calm(calm: boolean): void {
    this.meeting.enter(calm ? "calm" : "running");
    if (!calm) this.quietSince = Number.POSITIVE_INFINITY;
  }

  /** Whether nothing happens at any part, for longer than any frame is under way between two of them. */
  get quiet(): boolean {
    const now = this.addon.monotonicNow();
    if (!this.meeting.quiet) this.quietSince = Number.POSITIVE_INFINITY;
    else this.quietSince = Math.min(this.quietSince, now);
    const { links, scale } = this.scenario;
    const delay = Math.max(0, ...this.joints.map(({ crossing }) => (links[crossing.link] as Link).delay));
    return now - this.quietSince > kQuietNs + delay * Number(scale);
  }

  /** Number of the run of all parts. */
  get run(): number {
    return this.meeting.run;
  }

  reports(): JointReport[] {
    return this.joints.map(({ crossing, carrier }, i) => ({
      crossing,
      carrier,
      losses: lossesSince(carrier),
      roundTrip: this.meeting.roundTrip(i),
    }));
  }

  /** Tells the others that this part has ended. Idempotent. @param why Reason, where it ended before its time. */
  close(why?: string): void {
    if (this.over) return;
    this.over = true;
    clearInterval(this.timer);
    this.meeting.enter("ended", why);
    // It is sent three times, because nobody repeats it later.
    for (let i = 0; i < 3; i++) this.send();
    for (const { socket } of this.joints) closeSync(socket);
  }

  private step(): void {
    const { addon, meeting } = this;
    this.joints.forEach(({ socket }, i) => {
      while (addon.readLink(socket, this.frame, this.words)) {
        const [length, received] = this.words as unknown as [number, number];
        const hello = decodeHello(this.frame.subarray(0, length));
        if (hello !== undefined) meeting.hear(i, hello, received);
      }
    });
    if (!this.begun || this.steps++ % kRunningSteps === 0) this.send();
    const lost = this.begun ? meeting.lost(addon.monotonicNow()) : undefined;
    if (lost !== undefined && !this.signal.aborted) this.stopped.abort(new Error(lost));
  }

  private send(): void {
    this.joints.forEach(({ socket, carrier }, i) => {
      try {
        writeSync(socket, encodeHello(this.meeting.hello(i, this.addon.monotonicNow()), carrier.mac));
      } catch {
        // The interface is down, or has no room: the next one may pass.
      }
    });
  }

  private nobody(missing: string): WeirError {
    const { part } = this.scenario;
    const waited = formatTime(this.options.patience);
    const ends = this.joints.map(({ crossing }) => `${crossing.interface} to ${crossing.farPart}`).join(", ");
    return new WeirError(`part ${part} has waited ${waited} for ${missing || "a common start"}`, {
      hint: `start it there: weir lab run FILE --part ${missing.split(", ")[0] || "NAME"}; do frames pass? ${ends}: tcpdump -i ${this.joints[0]?.crossing.interface ?? "DEV"} ether proto 0x88b5`,
    });
  }
}

/** Losses since the run began. An interface that is gone has nothing to tell any more; frames lost with it are missing. */
function lossesSince(carrier: Carrier): JointReport["losses"] {
  try {
    return carrierLosses(carrier, inspectCarrier(carrier.name));
  } catch {
    return {};
  }
}

/** @throws WeirError for an interface that is not there, or cannot carry its link. */
export function openCarrier(
  scenario: Scenario,
  { link, interface: name }: Crossing,
  { warn }: Pick<PartOptions, "warn">,
): Carrier {
  const joined = scenario.links[link] as Link;
  const carrier = inspectCarrier(name);
  for (const warning of checkCarrier(carrier, joined.mtu, linkName(joined))) warn(warning);
  return carrier;
}

/** Faults that are made on purpose at the ports of a running device: to frames that come in there, or to the link itself. */
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { field, fraction, integer, problemsOf, section, time } from "../base/fields.js";
import type { FaultState, NativeFault } from "../native/types.js";
import type { FaultWorker } from "../native/workers.js";
import { addressBytes } from "../wire/address.js";
import type { CapturePort } from "./captures.js";

export const kFaultKinds = ["drop", "delay", "duplicate", "corrupt", "mark", "down"] as const;

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
/** Opcodes of the BTH by words (IBTA volume 1, table 38, and annex 17 for the CNP): of reliable and unreliable connections, and datagrams. */
export const kOpcodes: Readonly<Record<string, readonly number[]>> = {
  send: [...range(0x00, 0x05), 0x16, 0x17, ...range(0x20, 0x25), 0x64, 0x65],
  write: [...range(0x06, 0x0b), ...range(0x26, 0x2b)],
  "read-request": [0x0c],
  "read-response": range(0x0d, 0x10),
  ack: [0x11],
  atomic: [0x13, 0x14],
  "atomic-ack": [0x12],
  cnp: [0x81],
};

const kMostTime = 86_400e9;
const opcode = z.union([z.enum(Object.keys(kOpcodes) as [string, ...string[]]), z.int().min(0).max(0xff)], {
  error: `an opcode is ${Object.keys(kOpcodes).join(", ")}, or its number`,
});
const address = z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or IPv6 address" });

/** A fault as it is asked for. */
export const faultSchema = section({
  kind: z.enum(kFaultKinds, { error: `a fault is one of ${kFaultKinds.join(", ")}` }),
  port: field(z.string().min(1).max(255), "Port of the device. Default: its only one."),
  opcode: field(z.array(opcode).min(1).max(64), "Opcodes of RoCEv2 packets that match. Default: all frames."),
  qp: integer("Queue pair that matching packets are for.", 0, 0xff_ffff),
  source_port: integer("UDP source port of matching packets.", 0, 0xffff),
  from: field(address, "IP address of the sender of matching packets."),
  to: field(address, "IP address of their receiver."),
  share: fraction("Share of those that match.", { default: 1 }),
  every: integer("One of so many that match, the last of them.", 1, 0xffff_ffff, 1),
  count: integer("Frames after which it is over.", 1, Number.MAX_SAFE_INTEGER),
  seed: integer("Seed of the share: the same frames have the same fate.", 0, Number.MAX_SAFE_INTEGER, 1),
  for: time("Time after which it is over. Default: until it is ended.", { min: 1_000, max: kMostTime }),
  delay: time("Time that a frame is held back, kind delay: others overtake it.", { min: 1_000, max: kMostTime }),
  down: time("Time that the link is down each time, kind down. Default: it stays down.", { min: 1e6, max: kMostTime }),
  up: time("Time that the link is up in between, kind down with `down`.", { min: 1e6, max: kMostTime }),
});
export type FaultRequest = z.output<typeof faultSchema>;

/** A fault of a device that goes on, or has ended by itself, with what it has done. */
export interface FaultReport extends Omit<FaultState, "over"> {
  /** Name of the port. */
  port: string;
  kind: FaultRequest["kind"];
  state: "active" | "over";
  /** Fault as it was asked for. */
  fault: FaultRequest;
}

/** A port of a device as faults need it. */
export type FaultPort = CapturePort & { place: { worker: FaultWorker } };

interface Known {
  port: FaultPort;
  /** Number at the worker. */
  native: number;
  fault: FaultRequest;
}

export class DeviceFaults {
  readonly #known = new Map<number, Known>();
  #last = 0;

  /** @param scale Wall time is this many times the time that is meant. */
  constructor(
    private readonly device: string,
    private readonly scale: number,
    private readonly ports: () => readonly FaultPort[],
  ) {}

  /** Makes a fault from now on. @throws WeirError for one that cannot be. */
  make(asked: object): FaultReport {
    const { request: _, device: _d, ...written } = asked as { request?: unknown; device?: unknown };
    const parsed = faultSchema.safeParse(written);
    if (!parsed.success) {
      const [problem] = problemsOf(parsed.error, written);
      throw new WeirError(`fault: ${problem?.path.join(".")}: ${problem?.message}`, { hint: problem?.hint });
    }
    const fault = parsed.data;
    checkFault(fault);
    const port = this.#portOf(fault.port);
    const { worker, device, port: position } = port.place;
    const native = worker.addFault({ tap: 0, device, port: position }, nativeFault(fault, this.scale));
    const number = ++this.#last;
    this.#known.set(number, { port, native, fault });
    return { number, port: port.name, kind: fault.kind, state: "active", matched: 0, hits: 0, fault };
  }

  /** Those that go on, and those that ended by themselves, until their port has another. */
  list(): FaultReport[] {
    const states = new Map([...this.#workers()].map((worker) => [worker, worker.faults()] as const));
    return [...this.#known].flatMap(([number, { port, native, fault }]) => {
      const state = states.get(port.place.worker)?.find((one) => one.number === native);
      if (state === undefined) {
        this.#known.delete(number);
        return [];
      }
      const { matched, hits, over } = state;
      return { number, port: port.name, kind: fault.kind, state: over ? "over" : "active", matched, hits, fault };
    });
  }

  /** Ends one, or all; returns those that it has ended, as they are then. @throws WeirError when there is none of this number. */
  end(asked: Readonly<Record<string, unknown>>): FaultReport[] {
    const active = this.list().filter(({ state }) => state === "active");
    const wanted = asked.number === undefined ? active : active.filter(({ number }) => number === asked.number);
    if (asked.number !== undefined && wanted.length === 0) {
      throw new WeirError(`${this.device} has no fault ${JSON.stringify(asked.number)} that goes on`, {
        hint: active.length === 0 ? "there is none" : `there is ${active.map(({ number }) => number).join(", ")}`,
      });
    }
    for (const { number } of wanted) {
      const { port, native } = this.#known.get(number) as Known;
      port.place.worker.endFault(native);
    }
    const ended = new Set(wanted.map(({ number }) => number));
    return this.list().filter(({ number }) => ended.has(number));
  }

  *#workers() {
    yield* new Set([...this.#known.values()].map(({ port }) => port.place.worker));
  }

  #portOf(name: string | undefined): FaultPort {
    const ports = this.ports();
    const names = ports.map((port) => port.name).join(", ");
    const [only, ...others] = ports;
    if (name === undefined && only !== undefined && others.length === 0) return only;
    const found = ports.find((port) => port.name === name);
    if (found !== undefined) return found;
    const message = name === undefined ? "which port?" : `${this.device} has no port called ${JSON.stringify(name)}`;
    throw new WeirError(`fault: port: ${message}`, { hint: `its ports: ${names}` });
  }
}

/** @throws WeirError for fields that do not go together. */
export function checkFault({ kind, delay, down, up, ...fault }: FaultRequest): void {
  const wrong = (field: string, message: string, hint: string): never => {
    throw new WeirError(`fault: ${field}: ${message}`, { hint });
  };
  if ((kind === "delay") !== (delay !== undefined)) {
    if (delay === undefined) wrong("delay", "is missing", "say for how long: delay 10ms");
    else wrong("delay", `not with kind ${kind}`, "it is of kind delay");
  }
  if (kind !== "down") {
    const extra = down !== undefined ? "down" : "up";
    if (down !== undefined || up !== undefined) wrong(extra, `not with kind ${kind}`, "it is of kind down");
    return;
  }
  if ((down === undefined) !== (up === undefined)) {
    wrong(down === undefined ? "down" : "up", "is missing", "a link that flaps has both: down 100ms, up 900ms");
  }
  for (const name of ["opcode", "qp", "source_port", "from", "to", "count"] as const) {
    if (fault[name] !== undefined) wrong(name, "not with kind down", "the whole link is");
  }
}

function nativeFault(fault: FaultRequest, scale: number): NativeFault {
  const { kind, opcode, qp, source_port, from, to, share, every, count, seed, delay, down, up } = fault;
  const wall = (meant: number) => Math.round(meant * scale);
  return {
    kind,
    ...(opcode !== undefined && {
      opcodes: opcode.flatMap((one) => (typeof one === "number" ? [one] : (kOpcodes[one] ?? []))),
    }),
    ...(qp !== undefined && { destination_qp: qp }),
    ...(source_port !== undefined && { udp_source_port: source_port }),
    ...(from !== undefined && { source: nativeAddress(from) }),
    ...(to !== undefined && { destination: nativeAddress(to) }),
    ...(share !== undefined && { share }),
    ...(every !== undefined && { every }),
    ...(count !== undefined && { count }),
    ...(seed !== undefined && { seed }),
    ...(delay !== undefined && { delay: wall(delay) }),
    ...(fault.for !== undefined && { lasts: wall(fault.for) }),
    ...(down !== undefined && up !== undefined && { up: wall(up), period: wall(down + up) }),
  };
}

const nativeAddress = (text: string) => {
  const bytes = addressBytes(text);
  return { version: bytes.length === 4 ? 4 : 6, bytes };
};

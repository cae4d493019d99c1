/** Faults that are made on purpose at the ports of a running device: to frames that come in there, or to the link itself. */
import { isDeepStrictEqual } from "node:util";
import { WeirError } from "../base/error.js";
import { nativeAddress } from "../native/ip_address.js";
import type { NativeFault } from "../native/types.js";
import { kUnits } from "../native/units.js";
import { inWallUnits } from "../native/wall.js";
import type { FaultWorker } from "../native/workers.js";
import { kFaultStatuses, kNakCodes, kOpcodes, kPausedPriorities, kTrimDscp } from "../scenario/fault_schema.js";
import { mask } from "../scenario/features/feature.js";
import { type CapturePort, named } from "./captures.js";
import { type FaultRequest, ofNicsAlone, parseFault } from "./fault_request.js";
import type { FaultReport, Status } from "./protocol.js";

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
  /** Those of the device's file, and their numbers. */
  #ofFile: { faults: readonly FaultRequest[]; numbers: number[] } = { faults: [], numbers: [] };
  #last = 0;

  /** @param scale Wall time is this many times the time that is meant. */
  constructor(
    private readonly device: string,
    private readonly kind: Status["kind"],
    private readonly scale: number,
    private readonly ports: () => readonly FaultPort[],
    /** How many programs have paths of their own. */
    private readonly lent: () => number = () => 0,
  ) {}

  /** Makes a fault from now on. @throws WeirError for one that cannot be. */
  make(asked: object): FaultReport {
    return this.#begin(parseFault(asked));
  }

  /** Makes those of the device's file; others that the file had before are over. @throws WeirError for one that cannot be. */
  replace(faults: readonly FaultRequest[]): void {
    if (isDeepStrictEqual(faults, this.#ofFile.faults)) return;
    for (const number of this.#ofFile.numbers) {
      const known = this.#known.get(number);
      known?.port.place.worker.endFault(known.native);
    }
    this.#ofFile = { faults, numbers: faults.map((fault) => this.#begin(fault).number) };
  }

  #begin(fault: FaultRequest): FaultReport {
    const misfit = this.kind === "switch" ? ofNicsAlone(fault) : undefined;
    if (misfit !== undefined) {
      const { field, message, hint } = misfit;
      throw new WeirError(`fault: ${field}: ${message}: ${this.device} is a switch`, { hint });
    }
    const lent = this.lent();
    if (lent > 0) {
      throw new WeirError(
        `fault: ${lent} program(s) of ${this.device} send and receive by paths of their own, which no fault reaches`,
        {
          hint: "make it at the switch, or start the NIC with programs: true (programs.direct: false)",
        },
      );
    }
    const port = this.#portOf(fault.port);
    const { worker, device, port: position, rate } = port.place;
    const native = worker.addFault(
      { tap: 0, device, port: position },
      inWallUnits(nativeFault(fault, rate), kUnits.NativeFault, this.scale),
    );
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
    if (name !== undefined) return named(ports, name, this.device);
    throw new WeirError("fault: port: which port?", { hint: `its ports: ${names}` });
  }
}

/** A fault as the native core has it, in meant units. @param rate Rate of its link, bit/s. */
export function nativeFault(fault: Omit<FaultRequest, "port">, rate: number): NativeFault {
  const { kind, opcode, qp, source_port, from, to, share, every, count, seed, delay, code, after, down, up } = fault;
  const { status = "wr-flush", size, dscp = kTrimDscp, priorities = kPausedPriorities } = fault;
  return {
    kind,
    ...(fault.direction === "out" && { leaving: true }),
    ...(kind === "error" && { status: kFaultStatuses[status] }),
    ...(kind === "trim" && { dscp }),
    ...(size !== undefined && { size }),
    ...(fault.rate !== undefined && { rate: fault.rate }),
    ...(kind === "pause" && { priorities: mask(priorities), rate }),
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
    ...(delay !== undefined && { delay }),
    ...(code !== undefined && { syndrome: kNakCodes[code] }),
    ...(after !== undefined && { after }),
    ...(fault.for !== undefined && { lasts: fault.for }),
    ...(down !== undefined && up !== undefined && { up, period: down + up }),
  };
}

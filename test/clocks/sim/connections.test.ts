/** Connection management of hosts in virtual time: what it hears, says and sends, and when. */
import { expect, it } from "vitest";
import { SimConnections } from "../../../src/clocks/sim/connections.js";
import { VirtualClock } from "../../../src/clocks/sim/virtual_clock.js";
import type { HostNews } from "../../../src/native/simulation_types.js";
import { readMadFrame } from "../../../src/wire/cm/frame.js";
import { at, command, parameters, words } from "../../daemon/programs/ucma_client.js";

const kMacs = [0x02_00_00_00_00_01, 0x02_00_00_00_00_02] as const;
const kAddresses = ["10.87.0.1", "10.87.0.2"] as const;
const kHello = 0x6d63_7277;
const kEvent = { addressResolved: 0, addressError: 1, unreachable: 7 };
const kMs = 1e6;

/** A program on host 0: its channel is session 1, its commands are session 2. */
class Bed {
  readonly sent: Buffer[] = [];
  readonly ended: number[] = [];
  readonly connections: SimConnections;
  #news: HostNews[] = [];
  #told = new Map<number, Buffer>();

  constructor() {
    const hosts = {
      takeNews: () => this.#news.splice(0),
      tellProgram: (_: number, session: number, bytes: Uint8Array) => {
        this.#told.set(session, Buffer.concat([this.#told.get(session) ?? Buffer.alloc(0), bytes]));
      },
      endSession: (_: number, session: number) => void this.ended.push(session),
      programListens: () => true,
      sendFrame: (_: number, bytes: Uint8Array) => void this.sent.push(Buffer.from(bytes)),
    };
    const nic = { nic: 0, mac: kMacs[0], address: kAddresses[0], pathMtu: 1024 };
    const nextHop = (address: string) => kMacs[kAddresses.indexOf(address as (typeof kAddresses)[number])];
    this.connections = new SimConnections(hosts, [{ ...nic, nextHop }], 1);
  }

  /** What the program is told in answer. */
  async say(session: number, bytes: Buffer, now = 0): Promise<Buffer> {
    this.#news.push({ kind: "said", nic: 0, session, process: 7, bytes });
    await this.connections.attend(now);
    return this.take(session);
  }

  take(session: number): Buffer {
    const told = this.#told.get(session) ?? Buffer.alloc(0);
    this.#told.delete(session);
    return told;
  }

  async hello(session: number, role: number): Promise<number> {
    const hello = Buffer.alloc(16);
    hello.writeUInt32LE(kHello, 0);
    hello.writeUInt32LE(role, 4);
    hello.writeBigUInt64LE(role === 0 ? 5n : 0n, 8);
    return (await this.say(session, hello)).readUInt32LE(0);
  }

  /** The answer of a command, without its head. */
  async ask(bytes: Buffer, now = 0): Promise<Buffer> {
    const head = Buffer.alloc(16);
    head.writeUInt32LE(bytes.length, 0);
    head.writeBigUInt64LE(5n, 8);
    const answer = await this.say(2, Buffer.concat([head, bytes]), now);
    expect(answer.readUInt32LE(0)).toBe(0);
    return answer.subarray(16);
  }

  /** An id of the program, which looks for an address for two seconds. */
  async looking(address: string): Promise<number> {
    expect([await this.hello(1, 0), await this.hello(2, 1)]).toEqual([0, 0]);
    const create = command(0, 32);
    create.writeBigUInt64LE(1n, 8);
    create.writeUInt16LE(0x0106, 24);
    const id = (await this.ask(create)).readUInt32LE(0);
    await this.ask(at(words(3, 72, [64, id], [68, 2000]), 36, address, 7471));
    return id;
  }

  /** Kind and status of the event that waits on the channel. */
  async event(now = 0): Promise<[number, number]> {
    expect(this.take(1)).toHaveLength(1);
    const event = await this.ask(command(12, 16), now);
    return [event.readUInt32LE(12), event.readInt32LE(16)];
  }
}

it("asks a peer by frames, again when nobody answers in virtual time, and gives up", async () => {
  const bed = new Bed();
  const id = await bed.looking(kAddresses[1]);
  expect(await bed.event()).toEqual([kEvent.addressResolved, 0]);
  await bed.ask(words(4, 16, [8, id], [12, 2000]));
  await bed.event();
  await bed.ask(parameters(words(6, 296, [280, id]), 8, 100, "", {}));
  expect(bed.sent.map((frame) => readMadFrame(frame)?.destinationMac)).toEqual([kMacs[1]]);
  const times: number[] = [];
  while (bed.connections.due < Number.POSITIVE_INFINITY && times.length < 100) {
    times.push(bed.connections.due);
    await bed.connections.attend(bed.connections.due);
  }
  // 4.096 us x 2^18 each time, and 15 times again.
  expect(bed.sent).toHaveLength(16 + 1);
  expect(times[0]).toBeCloseTo(4.096e3 * 2 ** 18, -6);
  expect((await bed.event(times.at(-1)))[0]).toBe(kEvent.unreachable);
});

it("looks for an address that no host has as long as the program waits", async () => {
  const bed = new Bed();
  await bed.looking("10.87.0.9");
  expect(bed.take(1)).toHaveLength(0);
  for (let now = bed.connections.due; now <= 2000 * kMs; now = bed.connections.due) await bed.connections.attend(now);
  expect(await bed.event(2000 * kMs)).toEqual([kEvent.addressError, -110]);
});

it("cuts off who does not say hello", async () => {
  const bed = new Bed();
  await bed.say(3, Buffer.alloc(16, 1));
  expect(bed.ended).toEqual([3]);
});

it("runs timers in the order of time, each when it is due", () => {
  const clock = new VirtualClock();
  const ran: string[] = [];
  clock.after(2, () => ran.push("second"));
  clock.after(1, () => ran.push("first"));
  clock.after(1, () => ran.push("first, too"));
  clock.after(1, () => ran.push("never"))();
  expect(clock.due).toBe(kMs);
  expect(clock.advance(kMs - 1)).toBe(false);
  while (clock.advance(kMs));
  expect(ran).toEqual(["first", "first, too"]);
  expect(clock.now()).toBe(1);
  clock.after(0, () => ran.push("a moment later"));
  expect(clock.due).toBe(kMs + 1);
});

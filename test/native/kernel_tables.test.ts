import { describe, expect, it } from "vitest";
import { Random } from "../../src/base/random.js";
import { parseNeighbour, parseRoute } from "../../src/native/kernel_tables.js";
import { attribute, attributesIn, messageOf, messagesIn, word } from "../../src/native/netlink.js";

interface Fixed {
  family?: number;
  length?: number;
  table?: number;
  type?: number;
  flags?: number;
}

/** A struct rtmsg, and attributes. */
function route({ family = 2, length = 24, table = 254, type = 1, flags = 0 }: Fixed, ...attributes: Buffer[]): Buffer {
  const fixed = Buffer.from([family, length, 0, 0, table, 186, 0, type, 0, 0, 0, 0]);
  fixed.writeUInt32LE(flags, 8);
  return Buffer.concat([fixed, ...attributes]);
}

/** A struct rtnexthop, and its gateway. */
function hop(flags: number, weight: number, interfaceNumber: number, ...attributes: Buffer[]): Buffer {
  const fixed = Buffer.alloc(8);
  const whole = Buffer.concat([fixed, ...attributes]);
  whole.writeUInt16LE(whole.length, 0);
  whole[2] = flags;
  whole[3] = weight - 1;
  whole.writeInt32LE(interfaceNumber, 4);
  return whole;
}

const bytes = (...values: number[]) => Buffer.from(values);
const kTo = attribute(1, bytes(10, 2, 0, 0));
const kBy = attribute(4, word(7));
const via = (last: number) => attribute(5, bytes(10, 9, 0, last));

describe("routes of the kernel", () => {
  it("have a gateway, several with weights, or none", () => {
    expect(parseRoute(route({}, kTo, kBy, via(1), attribute(6, word(20))))).toEqual({
      address: bytes(10, 2, 0, 0),
      length: 24,
      kind: "forward",
      metric: 20,
      ways: [{ interface: 7, gateway: bytes(10, 9, 0, 1), weight: 1 }],
    });
    const several = attribute(9, Buffer.concat([hop(0, 3, 7, via(1)), hop(0, 256, 8, via(2)), hop(0, 1, 9)]));
    expect(parseRoute(route({ length: 0 }, several))).toMatchObject({
      address: bytes(0, 0, 0, 0),
      ways: [
        { interface: 7, weight: 3 },
        { interface: 8, weight: 255 },
        { interface: 9, gateway: undefined },
      ],
    });
    const six = attribute(1, Buffer.alloc(16, 0xfd));
    expect(parseRoute(route({ family: 10, length: 64 }, six, kBy))?.ways).toEqual([
      { interface: 7, gateway: undefined, weight: 1 },
    ]);
  });

  it("lose the ways whose link is down, and those by the other IP version", () => {
    const several = attribute(9, Buffer.concat([hop(16, 1, 7, via(1)), hop(1, 1, 8, via(2)), hop(0, 1, 9, via(3))]));
    expect(parseRoute(route({}, kTo, several))?.ways).toEqual([
      { interface: 9, gateway: bytes(10, 9, 0, 3), weight: 1 },
    ]);
    expect(parseRoute(route({ flags: 16 }, kTo, kBy, via(1)))?.ways).toEqual([]);
    expect(parseRoute(route({}, kTo, kBy, attribute(18, Buffer.alloc(18))))?.ways).toEqual([]);
  });

  it("are those of the tables main and local alone, and of kinds that have to do with packets", () => {
    expect(parseRoute(route({ type: 2, table: 255, length: 32 }, kTo, kBy))).toMatchObject({ kind: "own", ways: [] });
    expect(parseRoute(route({ type: 6 }, kTo))).toMatchObject({ kind: "blackhole" });
    expect(parseRoute(route({ type: 8 }, kTo))).toMatchObject({ kind: "unreachable" });
    expect(parseRoute(route({ type: 3, table: 255 }, kTo, kBy))).toBeUndefined();
    expect(parseRoute(route({ table: 10 }, kTo, kBy))).toBeUndefined();
    expect(parseRoute(route({}, kTo, kBy, attribute(15, word(1000))))).toBeUndefined();
    expect(parseRoute(route({ flags: 0x200 }, kTo, kBy))).toBeUndefined();
    expect(parseRoute(route({ family: 7 }, kTo, kBy))).toBeUndefined();
    expect(parseRoute(route({ length: 33 }, kTo, kBy))).toBeUndefined();
    expect(parseRoute(route({}, attribute(1, bytes(10, 2)), kBy))).toBeUndefined();
    expect(parseRoute(route({}, kTo))).toBeUndefined();
  });
});

it("permanent neighbours of the kernel are told, others are not", () => {
  const message = (state: number, ...attributes: Buffer[]) =>
    Buffer.concat([bytes(2, 0, 0, 0, 7, 0, 0, 0, state, 0, 0, 1), ...attributes]);
  const whole = [attribute(1, bytes(10, 2, 0, 9)), attribute(2, bytes(2, 0, 0, 0, 0, 0x99))];
  expect(parseNeighbour(message(0x80, ...whole))).toEqual({
    interface: 7,
    address: bytes(10, 2, 0, 9),
    mac: 0x0200_0000_0099,
  });
  expect(parseNeighbour(message(0x02, ...whole))).toBeUndefined();
  expect(parseNeighbour(message(0x40, ...whole))).toBeUndefined();
  expect(parseNeighbour(message(0x80, attribute(1, bytes(10, 2, 0, 9))))).toBeUndefined();
});

it("any bytes are read, and nothing beyond their end", () => {
  const random = new Random(7, "kernel tables");
  const several = attribute(9, Buffer.concat([hop(0, 1, 7, via(1)), hop(0, 1, 8, via(2))]));
  const seeds = [
    route({}, kTo, kBy, via(1)),
    route({}, kTo, several),
    messageOf(24, 0, route({}, kTo, several)),
    Buffer.alloc(40),
  ];
  for (let round = 0; round < 20_000; round++) {
    const seed = seeds[round % seeds.length] as Buffer;
    const message = Buffer.from(seed.subarray(0, random.below(seed.length + 1)));
    for (let i = 0; i < 3 && message.length > 0; i++) {
      message[random.below(message.length)] = random.below(256);
    }
    const found = parseRoute(message);
    if (found !== undefined) expect([4, 16]).toContain(found.address.length);
    parseNeighbour(message);
    attributesIn(message, 12);
    for (const { body } of messagesIn(message)) expect(body.length).toBeLessThanOrEqual(message.length);
  }
});

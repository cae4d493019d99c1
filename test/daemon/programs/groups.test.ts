/** Multicast groups that programs of librdmacm join. */
import { constants } from "node:os";
import { expect, it } from "vitest";
import { gidOfAddress } from "../../../src/wire/address.js";
import { kAddresses, kEvent, kPort, kUdp, listening, network } from "./network.js";
import type { UcmaClient } from "./ucma_client.js";

const { EINVAL, ENOENT, ENOMEM } = constants.errno;
const kGroup = "239.1.2.3";

/** An id that knows the way to a group. */
async function towards(client: UcmaClient, group: string, uid = 2): Promise<number> {
  const id = await client.create(uid, kUdp);
  expect(await client.resolve(id, group, 0)).toMatchObject({ error: 0 });
  expect(await client.event()).toMatchObject({ event: kEvent.addressResolved });
  return id;
}

/** Reports of IGMP and of MLD that have been sent, and what says that a group is left. */
const told = (frames: readonly Buffer[]) =>
  frames.map((frame) => frame.readUInt8(frame.readUInt16BE(12) === 0x0800 ? 38 : 62)).filter((type) => type !== 0);

it("tells where datagrams to the group go, and switches that it is joined, once", async () => {
  const net = await network(2);
  const client = await net.program(0);
  for (const [index, group] of [kGroup, "ff0e::4242"].entries()) {
    net.links[0].sent.length = 0;
    const id = await towards(client, group);
    const [first, second] = [await client.join(id, 20, group), await client.join(id, 30, group)];
    expect([first.error, second.error]).toEqual([0, 0]);
    const event = await client.event();
    expect(event).toMatchObject({ uid: 20, id: first.bytes.readUInt32LE(), event: kEvent.groupJoined, status: 0 });
    const { parameters } = event;
    expect([parameters.readUInt32LE(0), parameters.readUInt32LE(4)]).toEqual([0xff_ffff, 0x0123_4567]);
    expect(parameters.subarray(8, 24)).toEqual(gidOfAddress(group));
    expect(parameters.readUInt8(8 + 20)).toBe(index); // This is the index of our own GID.
    expect(await client.event()).toMatchObject({ uid: 30 });
    expect(told(net.links[0].sent)).toHaveLength(1);

    // The answer has as many events of each membership as the program has had.
    const left = await client.leave(first.bytes.readUInt32LE());
    expect([left.error, left.bytes.readUInt32LE()]).toEqual([0, 1]);
    expect(await client.leave(first.bytes.readUInt32LE())).toMatchObject({ error: ENOENT });
    expect(told(net.links[0].sent)).toHaveLength(1);
    const destroyed = await client.destroy(id);
    expect(destroyed.bytes.readUInt32LE()).toBe(3);
    expect(told(net.links[0].sent)).toHaveLength(2);
  }
});

it("is left with its id, with an event that waits, and by a program that ends", async () => {
  const net = await network();
  const client = await net.program(0);
  const id = await towards(client, kGroup);
  const joined = await client.join(id, 20, kGroup);
  const left = await client.leave(joined.bytes.readUInt32LE());
  expect([left.bytes.readUInt32LE(), left.taken]).toEqual([0, 1]);
  await client.join(id, 20, kGroup);
  const gone = net.links[0].sent.length;
  client.kill();
  await expect.poll(() => told(net.links[0].sent.slice(gone))).toEqual([0x17]);
});

it("is joined as often as a program may, and again once it has left", async () => {
  const net = await network();
  const [one, other] = [await net.program(0), await net.program(0)];
  const id = await towards(one, kGroup);
  const numbers: number[] = [];
  for (let i = 0; i < 256; i++) numbers.push((await one.join(id, 20, kGroup)).bytes.readUInt32LE());
  expect(await one.join(id, 20, kGroup)).toMatchObject({ error: ENOMEM });
  const more = await towards(other, kGroup);
  expect(await other.join(more, 20, kGroup)).toMatchObject({ error: ENOMEM });
  await one.leave(numbers[0] as number);
  expect(await other.join(more, 20, kGroup)).toMatchObject({ error: 0 });
  await one.destroy(id);
  expect(await other.join(more, 20, kGroup)).toMatchObject({ error: 0 });
});

it("is joined out of what queue pairs of the same user's programs leave, and another user's", async () => {
  const net = await network();
  const client = await net.program(0);
  const id = await towards(client, kGroup);
  while (net.memberships[0]?.take(net.who.uid)) {}
  expect(await client.join(id, 20, kGroup)).toMatchObject({ error: ENOMEM });
  net.who.uid++;
  const other = await net.program(0);
  const theirs = await towards(other, kGroup);
  expect(await other.join(theirs, 20, kGroup)).toMatchObject({ error: 0 });
  net.memberships[0]?.give(net.who.uid - 1);
  expect(await client.join(id, 20, kGroup)).toMatchObject({ error: ENOMEM });
  await other.destroy(theirs);
  expect(await client.join(id, 20, kGroup)).toMatchObject({ error: 0 });
});

it("goes with its id to another channel", async () => {
  const net = await network();
  const [one, other] = [await net.program(0), await net.program(0)];
  const id = await towards(one, kGroup);
  const joined = (await one.join(id, 20, kGroup)).bytes.readUInt32LE();
  expect(await other.migrate(id, one)).toMatchObject({ error: 0 });
  expect(await one.leave(joined)).toMatchObject({ error: ENOENT });
  expect(await other.event()).toMatchObject({ uid: 20, event: kEvent.groupJoined });
  expect((await other.leave(joined)).bytes.readUInt32LE()).toBe(1);
});

it("is refused to what has no datagrams, or no address of its version, and is nobody to connect to", async () => {
  const net = await network();
  const client = await net.program(0);
  const id = await towards(client, kGroup);
  expect(await client.join(id, 20, kAddresses[1])).toMatchObject({ error: EINVAL });
  expect(await client.join(id, 20, "ff0e::1")).toMatchObject({ error: EINVAL });
  expect(await client.join(77, 20, kGroup)).toMatchObject({ error: ENOENT });
  expect(await client.join(await client.create(3, kUdp), 20, kGroup)).toMatchObject({ error: EINVAL });
  expect(await client.join(await client.routed(4, kAddresses[1], kPort), 20, kGroup)).toMatchObject({ error: EINVAL });
  const { server, listener } = await listening(net, kUdp);
  expect(await server.join(listener, 20, kGroup)).toMatchObject({ error: EINVAL });
  const connection = await client.routed(5, kGroup, kPort);
  expect(await client.connect(connection, 100)).toMatchObject({ error: EINVAL });
});

/** Connections of programs begin and end with the events and statuses that Linux has for it. */
import { constants } from "node:os";
import { expect, it } from "vitest";
import { buildMadFrame } from "../../../src/wire/cm/frame.js";
import { buildMessage, kAnswered, type Message, type MessageKind } from "../../../src/wire/cm/messages.js";
import { eventually } from "../../patience.js";
import { FakeClock, messageIn } from "../../wire/cm/fakes.js";
import { kAddresses, kEvent, kMacs, kPort, kUdp, listening, network } from "./network.js";

const { ETIMEDOUT } = constants.errno;

/** Two NICs in virtual time; a client that has asked, and a server that was asked. */
async function asked(space?: number) {
  const clock = new FakeClock();
  const net = await network(1, clock);
  const { server } = await listening(net, space);
  const client = await net.program(0);
  const id = await client.routed(2, kAddresses[1], kPort, space);
  /** Nothing reaches the other NIC from now on. */
  const cut = (nic: 0 | 1) => {
    net.links[nic].onSend = () => {};
  };
  return { clock, net, server, client, id, cut };
}

/** Both ends, up. */
async function connected() {
  const all = await asked();
  const { client, server, id } = all;
  await client.connect(id, 100);
  const request = await server.event();
  await server.accept(request.id, 3, 101);
  expect(await client.event()).toMatchObject({ event: kEvent.connectResponse, status: 0 });
  await client.accept(id, 0, 0);
  expect(await server.event()).toMatchObject({ event: kEvent.established, status: 0 });
  return { ...all, accepted: request.id };
}

function sent<Kind extends MessageKind>(net: Awaited<ReturnType<typeof network>>, nic: 0 | 1, kind: Kind) {
  const found = net.links[nic].sent.map(messageIn).find((message) => message?.kind === kind);
  return found as Message<Kind>;
}

/** Delivers a message of the server's NIC to the client's. */
const says = (net: Awaited<ReturnType<typeof network>>, mad: Buffer) =>
  net.links[0].receive(
    buildMadFrame(
      {
        ...{ destinationMac: kMacs[0], sourceMac: kMacs[1], source: kAddresses[1], destination: kAddresses[0] },
        ...{ psn: 0, mad },
      },
      1,
    ),
  );

it("who disconnects and is answered, and who is disconnected, hears status 0, then of the end of timewait", async () => {
  const { clock, client, server, id } = await connected();
  await client.disconnect(id);
  expect(await client.event()).toMatchObject({ event: kEvent.disconnected, status: 0 });
  expect(await server.event()).toMatchObject({ event: kEvent.disconnected, status: 0 });
  await clock.run(10_000);
  expect(await client.event()).toMatchObject({ event: kEvent.timewaitExit, status: 0 });
  expect(await server.event()).toMatchObject({ event: kEvent.timewaitExit, status: 0 });
});

it("who disconnects and is not answered hears that time is up", async () => {
  const { clock, client, id, cut } = await connected();
  cut(0);
  await client.disconnect(id);
  await clock.run(10_000);
  expect(client.channel.waiting).toBe(0);
  await clock.run(10_000);
  expect(await client.event()).toMatchObject({ id, event: kEvent.disconnected, status: -ETIMEDOUT });
  expect(await client.event()).toMatchObject({ id, event: kEvent.timewaitExit, status: 0 });
});

it("who is up and is rejected hears why, and of no timewait", async () => {
  const { clock, net, client, id } = await connected();
  const ids = { localId: sent(net, 1, "REP").fields.localId, remoteId: sent(net, 0, "REQ").fields.localId };
  const privateData = Buffer.from("late");
  says(net, buildMessage("REJ", 1n, { ...ids, answered: kAnswered.REP, reason: 4, privateData }));
  const event = await client.event();
  expect(event).toMatchObject({ id, event: kEvent.rejected, status: 4 });
  expect(event.parameters.toString("latin1", 8, 12)).toBe("late");
  await clock.run(10_000);
  expect(client.channel.waiting).toBe(0);
  expect(await client.disconnect(id)).toMatchObject({ error: 0 });
});

it.each([undefined, kUdp])("whose request nobody answers finds its peer unreachable (port space %s)", async (space) => {
  const { clock, client, id, cut } = await asked(space);
  cut(0);
  await client.connect(id, 100);
  await clock.run(20_000);
  expect(await client.event()).toMatchObject({ id, event: kEvent.unreachable, status: -ETIMEDOUT });
});

it("whose acceptance nobody confirms finds its peer unreachable, and the peer is told", async () => {
  const { clock, client, server, id } = await asked();
  await client.connect(id, 100);
  const request = await server.event();
  await server.accept(request.id, 3, 101);
  expect(await client.event()).toMatchObject({ event: kEvent.connectResponse });
  await clock.run(100_000);
  expect(await server.event()).toMatchObject({ id: request.id, event: kEvent.unreachable, status: -ETIMEDOUT });
  expect(await client.event()).toMatchObject({ id, event: kEvent.rejected, status: 4 });
});

it("who looks for an address goes on for as long as it may, and finds who comes late", async () => {
  const clock = new FakeClock();
  const net = await network(1, clock);
  const client = await net.program(0);
  const id = await client.create(2);
  await client.resolve(id, "10.0.0.9", kPort);
  await clock.run(1999);
  expect(client.channel.waiting).toBe(0);
  await clock.run(1);
  expect(await client.event()).toMatchObject({ id, event: kEvent.addressError, status: -ETIMEDOUT });
  net.late.set("10.0.0.9", kMacs[1]);
  await client.resolve(id, "10.0.0.9", kPort);
  await eventually(() => expect(client.channel.waiting).toBe(1));
  expect(await client.event()).toMatchObject({ id, event: kEvent.addressResolved, status: 0 });
});

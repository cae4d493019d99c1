/** Two NICs with a link between them, and programs that speak to them by hand: src/daemon/programs/connections.ts and what it stands on. */
import { constants } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { gidOfAddress, guidOfMac } from "../../../src/wire/address.js";
import { ConnectionManager, type IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import { eventually } from "../../patience.js";
import { kAddresses, kEvent, kIpv6, kMacs, kPort, kStranger, kUdp, listening, network } from "./network.js";
import { command, type Event } from "./ucma_client.js";

const { EADDRINUSE, EADDRNOTAVAIL, EAGAIN, EBADF, EINVAL, ENOENT, ENOMEM, EOPNOTSUPP, ENETUNREACH, EPROTONOSUPPORT } =
  constants.errno;
/** Both ends of a connection, up. */
async function connected(net: Awaited<ReturnType<typeof network>>) {
  const { server, listener } = await listening(net);
  const client = await net.program(0);
  const id = await client.routed(2, kAddresses[1], kPort);
  await client.connect(id, 100, "hello", { responderResources: 4, initiatorDepth: 3 });
  const request = await server.event();
  await server.accept(request.id, 3, 101, "welcome", { responderResources: 3, initiatorDepth: 4 });
  await client.event();
  await client.accept(id, 0, 0);
  await server.event();
  return { server, listener, client, id, accepted: request.id };
}

/** Private data of a connection's event. */
const dataOf = ({ parameters }: Event) => parameters.toString("latin1", 8, 8 + parameters.readUInt8(264));
const text = (data: string) => data.replace(/\0+$/, "");

it("agrees on PSNs with a peer that begins elsewhere", async () => {
  const net = await network();
  const neighbours = { resolve: async () => kMacs[0] };
  const manager = new ConnectionManager({ link: net.links[1], neighbours, address: kStranger });
  onTestFinished(() => manager.close());
  const asked = new Promise<IncomingRequest>((resolve) => manager.listen(kPort, resolve));
  const client = await net.program(0);
  const id = await client.routed(2, kStranger, kPort);
  await client.connect(id, 100);
  const request = await asked;
  const startingPsn = (request.remoteStartingPsn + 1000) & 0xff_ffff;
  void request.accept({ qpn: 9, startingPsn }).catch(() => {});
  await client.event();
  // Each names what it expects first (IBTA volume 1, 12.7.7).
  expect((await client.attributes(id, 2)).bytes.readUInt32LE(24)).toBe(request.remoteStartingPsn);
  expect((await client.attributes(id, 3)).bytes.readUInt32LE(28)).toBe(startingPsn);
  await client.accept(id, 0, 0);
});

describe("connections of programs", () => {
  it("tell each side what the other said, and what its queue pair needs", async () => {
    const net = await network();
    const { server, listener } = await listening(net);
    const client = await net.program(0);
    const id = await client.create(2);
    expect(await client.resolve(id, kAddresses[1], kPort)).toMatchObject({ error: 0 });
    expect(await client.event()).toMatchObject({ uid: 2, id, event: kEvent.addressResolved, status: 0 });
    await client.route(id);
    expect(await client.event()).toMatchObject({ event: kEvent.routeResolved, status: 0 });
    const route = (await client.query(id)).bytes;
    expect(route.subarray(0, 8)).toEqual(guidOfMac(kMacs[0]));
    expect([route.readUInt32LE(192), route.readUInt8(196)]).toEqual([1, 1]);
    expect(route.subarray(8, 40)).toEqual(Buffer.concat([gidOfAddress(kAddresses[1]), gidOfAddress(kAddresses[0])]));
    expect(route.subarray(164, 172)).toEqual(Buffer.from([2, 0, kPort >> 8, kPort & 0xff, 10, 0, 0, 2]));

    expect(await client.connect(id, 100, "hello", { responderResources: 4, initiatorDepth: 3 })).toMatchObject({
      error: 0,
    });
    const request = await server.event();
    expect(request).toMatchObject({ uid: 1, event: kEvent.connectRequest, status: 0 });
    expect(request.id).not.toBe(listener);
    expect(text(dataOf(request))).toBe("hello");
    expect(dataOf(request)).toHaveLength(56);
    expect([...request.parameters.subarray(266, 268)]).toEqual([3, 4]);
    expect((await server.query(request.id)).bytes.subarray(0, 8)).toEqual(guidOfMac(kMacs[1]));

    // Modified to be ready before it accepts.
    const rtr = (await server.attributes(request.id, 2)).bytes;
    expect(rtr.readUInt32LE(0)).toBe(1 | (1 << 7) | (1 << 8) | (1 << 12) | (1 << 15) | (1 << 17) | (1 << 20));
    expect([rtr.readUInt32LE(12), rtr.readUInt32LE(32), rtr.readUInt8(131)]).toEqual([3, 100, 3]);
    expect(rtr.subarray(40, 56)).toEqual(gidOfAddress(kAddresses[0]));
    expect([rtr.readUInt8(69), rtr.readUInt8(70)]).toEqual([1, 1]);
    const rts = (await server.attributes(request.id, 3)).bytes;
    expect([rts.readUInt8(130), rts.readUInt8(135), rts.readUInt8(136)]).toEqual([4, 7, 7]);
    await server.accept(request.id, 3, 101, "welcome", { responderResources: 3, initiatorDepth: 4 });

    const response = await client.event();
    expect(response).toMatchObject({ uid: 2, id, event: kEvent.connectResponse, status: 0 });
    expect(text(dataOf(response))).toBe("welcome");
    const ready = (await client.attributes(id, 2)).bytes;
    // Both send from where the other expects it.
    expect(ready.readUInt32LE(24)).toBe(rts.readUInt32LE(28));
    expect((await client.attributes(id, 3)).bytes.readUInt32LE(28)).toBe(rtr.readUInt32LE(24));
    expect(ready.readUInt32LE(32)).toBe(101);
    await client.accept(id, 0, 0);
    expect(await server.event()).toMatchObject({ uid: 3, id: request.id, event: kEvent.established, status: 0 });
  });

  it("end on both sides when one disconnects, and ids when they are destroyed", async () => {
    const { server, client, id, accepted } = await connected(await network());
    expect(await client.disconnect(id)).toMatchObject({ error: 0 });
    expect(await server.event()).toMatchObject({ uid: 3, id: accepted, event: kEvent.disconnected, status: 0 });
    expect(await client.event()).toMatchObject({ uid: 2, id, event: kEvent.disconnected });
    expect(await server.disconnect(accepted)).toMatchObject({ error: 0 });
    // The answer has the number of events that the program has had of an id, so that it can wait until all are acknowledged.
    expect((await client.destroy(id)).bytes.readUInt32LE(0)).toBe(4);
    expect((await server.destroy(accepted)).bytes.readUInt32LE(0)).toBe(2);
    expect(await client.destroy(id)).toMatchObject({ error: ENOENT });
  });

  it("end when a program is killed: its peers hear of it, and its ports are free", async () => {
    const net = await network();
    const { server, client, id } = await connected(net);
    server.kill();
    expect(await client.event()).toMatchObject({ uid: 2, id, event: kEvent.disconnected });
    await listening(net);
  });

  it("are refused by whoever does not listen, and by whoever is asked, who may say why", async () => {
    const net = await network();
    const client = await net.program(0);
    const nobody = await client.routed(2, kAddresses[1], kPort);
    await client.connect(nobody, 100);
    expect(await client.event()).toMatchObject({ uid: 2, id: nobody, event: kEvent.rejected, status: 8 });
    const { server } = await listening(net);
    const id = await client.routed(3, kAddresses[1], kPort);
    await client.connect(id, 101);
    await server.reject((await server.event()).id, "not today");
    const refusal = await client.event();
    expect(refusal).toMatchObject({ uid: 3, event: kEvent.rejected, status: 28 });
    expect(text(dataOf(refusal))).toBe("not today");
    // A second attempt has a peer that nobody answers for.
    const lost = await client.create(4);
    await client.resolve(lost, "10.0.0.9", kPort);
    expect(await client.event()).toMatchObject({
      uid: 4,
      event: kEvent.addressError,
      status: -constants.errno.ETIMEDOUT,
    });
  });

  it("wait for a listener whose port had another just now, and not for long", async () => {
    const net = await network();
    const { server, listener } = await listening(net);
    const client = await net.program(0);
    await server.destroy(listener);
    const id = await client.routed(2, kAddresses[1], kPort);
    await client.connect(id, 100, "again");
    await eventually(() => expect(net.links[0].sent.length).toBeGreaterThan(0));
    const next = await listening(net);
    const request = await next.server.event();
    expect(text(dataOf(request))).toBe("again");
    await next.server.reject(request.id);
    await next.server.destroy(next.listener);
    expect(await client.event()).toMatchObject({ uid: 2, event: kEvent.rejected, status: 28 });
    const late = await client.routed(3, kAddresses[1], kPort);
    await client.connect(late, 101);
    expect(await client.event()).toMatchObject({ uid: 3, event: kEvent.rejected, status: 8 });
  });

  // One address is nowhere in particular, the others are loopback addresses, which are no NIC's.
  it.each(["0.0.0.0", "127.0.0.1", "::1"])("of two programs on one NIC come about as well, to %s", async (here) => {
    const net = await network(here.includes(":") ? 2 : 1);
    const server = await net.program(0);
    const listener = await server.create(1);
    expect(await server.bind(listener, here, kPort)).toMatchObject({ error: 0 });
    expect(await server.listen(listener)).toMatchObject({ error: 0 });
    const client = await net.program(0);
    const id = await client.routed(2, here, kPort);
    await client.connect(id, 100, "hello");
    const request = await server.event();
    await server.accept(request.id, 3, 101);
    expect(await client.event()).toMatchObject({ event: kEvent.connectResponse });
    await client.accept(id, 0, 0);
    expect(await server.event()).toMatchObject({ event: kEvent.established });
    expect(net.links[0].sent).toEqual([]);
  });

  it("of datagrams learn the queue pair behind a port", async () => {
    const net = await network();
    const { server } = await listening(net, kUdp);
    const client = await net.program(0);
    const id = await client.routed(2, kAddresses[1], kPort, kUdp);
    expect((await client.attributes(id, 1)).bytes.readUInt32LE(20)).toBe(0x0123_4567);
    await client.connect(id, 100, "hello");
    const request = await server.event();
    expect(text(request.parameters.toString("latin1", 40, 40 + request.parameters.readUInt8(296)))).toBe("hello");
    await server.accept(request.id, 3, 101, "welcome");
    const found = await client.event();
    expect(found).toMatchObject({ uid: 2, event: kEvent.established, status: 0 });
    expect([found.parameters.readUInt32LE(0), found.parameters.readUInt32LE(4)]).toEqual([101, 0x0123_4567]);
    expect(found.parameters.subarray(8, 24)).toEqual(gidOfAddress(kAddresses[1]));
    expect(text(found.parameters.toString("latin1", 40, 40 + found.parameters.readUInt8(296)))).toBe("welcome");
    const other = await client.routed(4, kAddresses[1], kPort, kUdp);
    await client.connect(other, 100);
    await server.reject((await server.event()).id);
    expect(await client.event()).toMatchObject({ uid: 4, event: kEvent.unreachable, status: 2 });
  });

  it("are of both versions of IP, each from the NIC's address of that version", async () => {
    const net = await network(2);
    // A listener on "::" is for both; unless the program says that it is IPv6's alone.
    const server = await net.program(1);
    const [both, alone] = [await server.create(1), await server.create(2)];
    expect(await server.bind(both, "::", kPort)).toMatchObject({ error: 0 });
    expect(await server.listen(both)).toMatchObject({ error: 0 });
    await server.option(alone, 2, Buffer.from([1, 0, 0, 0]));
    await server.bind(alone, "::", kPort + 1);
    await server.listen(alone);

    const client = await net.program(0);
    for (const [family, version] of [kAddresses, kIpv6].entries()) {
      const id = await client.routed(3, version[1], kPort);
      const path = (await client.query(id)).bytes.subarray(8, 40);
      expect(path).toEqual(Buffer.concat([gidOfAddress(version[1]), gidOfAddress(version[0])]));
      await client.connect(id, 100);
      const request = await server.event();
      expect((await server.query(request.id)).bytes.subarray(24, 40)).toEqual(gidOfAddress(version[1]));
      const rtr = (await server.attributes(request.id, 2)).bytes;
      expect(rtr.subarray(40, 56)).toEqual(gidOfAddress(version[0]));
      expect(rtr.readUInt8(60)).toBe(family); // These are its own GIDs.
      await server.reject(request.id);
      expect(await client.event()).toMatchObject({ event: kEvent.rejected });
    }
    await client.connect(await client.routed(4, kIpv6[1], kPort + 1), 100);
    expect(await server.event()).toMatchObject({ uid: 2, event: kEvent.connectRequest });
    await client.connect(await client.routed(5, kAddresses[1], kPort + 1), 100);
    expect(await client.event()).toMatchObject({ uid: 5, event: kEvent.rejected, status: 8 });

    const bound = await client.create(6);
    expect(await client.bind(bound, kIpv6[0], 0)).toMatchObject({ error: 0 });
    expect(await client.resolve(bound, kAddresses[1], kPort)).toMatchObject({ error: EINVAL });
    expect(await client.resolve(bound, kIpv6[1], kPort)).toMatchObject({ error: 0 });
  });

  it("wait no longer for an answer when their id is destroyed, and the peer hears that", async () => {
    const net = await network();
    const { server, listener } = await listening(net);
    const client = await net.program(0);
    const id = await client.routed(2, kAddresses[1], kPort);
    await client.connect(id, 100);
    const request = await server.event();
    await client.destroy(id);
    // A server that accepts now hears that nobody is there any more, however soon that is.
    await server.accept(request.id, 3, 101);
    const { uid, event } = await server.event();
    expect([uid, [kEvent.rejected, kEvent.unreachable].includes(event)]).toEqual([3, true]);
    expect((await server.destroy(listener)).bytes.readUInt32LE(0)).toBe(1);
  });
});

describe("ids", () => {
  it("have ports that nobody else has", async () => {
    const net = await network();
    const { server } = await listening(net);
    const one = await server.create(5);
    expect(await server.bind(one, "0.0.0.0", kPort)).toMatchObject({ error: EADDRINUSE });
    expect(await server.bind(one, "10.1.1.1", 80)).toMatchObject({ error: EADDRNOTAVAIL });
    expect(await server.bind(one, "10.0.0.2", 0)).toMatchObject({ error: 0 });
    expect((await server.query(one)).bytes.readUInt16BE(138)).toBeGreaterThanOrEqual(32_768);
    // The other space has ports of its own.
    expect(await server.bind(await server.create(6, kUdp), "0.0.0.0", kPort)).toMatchObject({ error: 0 });
    // Ids that share a port may have it, until one of them listens.
    const [first, second] = [await server.create(7), await server.create(8)];
    for (const id of [first, second]) {
      expect(await server.option(id, 1, Buffer.from([1, 0, 0, 0]))).toMatchObject({ error: 0 });
      expect(await server.bind(id, "0.0.0.0", 9000)).toMatchObject({ error: 0 });
    }
    expect(await server.listen(first)).toMatchObject({ error: 0 });
    expect(await server.listen(second)).toMatchObject({ error: EADDRINUSE });
  });

  it("may have one port where they have no address in common", async () => {
    const net = await network(2);
    const server = await net.program(1);
    const bind = async (uid: number, address: string, onlyItsFamily = false) => {
      const id = await server.create(uid);
      if (onlyItsFamily) await server.option(id, 2, Buffer.from([1, 0, 0, 0]));
      const { error } = await server.bind(id, address, kPort);
      return { id, error };
    };
    const [four, six] = [await bind(1, "0.0.0.0"), await bind(2, "::", true)];
    expect([four.error, six.error]).toEqual([0, 0]);
    for (const [uid, address] of [kAddresses[1], kIpv6[1], "::", "0.0.0.0"].entries()) {
      expect(await bind(3 + uid, address, true)).toMatchObject({ error: EADDRINUSE });
    }
    for (const { id } of [four, six]) expect(await server.listen(id)).toMatchObject({ error: 0 });
    const client = await net.program(0);
    for (const [uid, address] of [kAddresses[1], kIpv6[1]].entries()) {
      await client.connect(await client.routed(10 + uid, address, kPort), 100);
      expect(await server.event()).toMatchObject({ uid: 1 + uid, event: kEvent.connectRequest });
    }
    for (const { id } of [four, six]) await server.destroy(id);
    // One for all addresses has none beside it; others have an address each.
    const all = await bind(20, "::");
    expect(await bind(21, "0.0.0.0")).toMatchObject({ error: EADDRINUSE });
    await server.destroy(all.id);
    const each = [await bind(22, kAddresses[1]), await bind(23, kIpv6[1])];
    for (const { id, error } of each) {
      expect(error).toBe(0);
      expect(await server.listen(id)).toMatchObject({ error: 0 });
    }
  });

  it("have no more requests than their backlog", async () => {
    const net = await network();
    const { server, listener } = await listening(net);
    const client = await net.program(0);
    const events = [];
    for (const qpn of [100, 101, 102]) {
      const id = await client.routed(qpn, kAddresses[1], kPort);
      await client.connect(id, qpn);
    }
    events.push(await client.event());
    expect(events).toMatchObject([{ uid: 102, event: kEvent.rejected, status: 28 }]);
    // Unread requests go with their listener, and whoever asked hears of it.
    expect(await server.destroy(listener)).toMatchObject({ error: 0, taken: 2 });
    expect(await client.event()).toMatchObject({ event: kEvent.rejected });
    expect(await client.event()).toMatchObject({ event: kEvent.rejected });
    expect(server.channel.waiting).toBe(0);
    expect(await server.write(command(12, 16))).toMatchObject({ error: EAGAIN });
  });

  it("go to another channel with the events that wait for them", async () => {
    const net = await network();
    const { server } = await listening(net);
    const client = await net.program(0);
    const id = await client.routed(2, kAddresses[1], kPort);
    await client.connect(id, 100);
    const request = await server.event();
    const other = await net.program(1);
    expect(await other.migrate(request.id, server)).toMatchObject({ error: 0 });
    expect(await server.destroy(request.id)).toMatchObject({ error: ENOENT });
    await other.accept(request.id, 3, 101);
    await client.event();
    await client.accept(id, 0, 0);
    expect(await other.event()).toMatchObject({ uid: 3, event: kEvent.established });
    const moved = await client.create(9);
    await client.resolve(moved, kAddresses[1], kPort);
    await eventually(() => expect(client.channel.waiting).toBe(1));
    const third = await net.program(0);
    expect(await third.migrate(moved, client)).toMatchObject({ error: 0, taken: 1 });
    expect(client.channel.waiting).toBe(0);
    expect(await third.event()).toMatchObject({ uid: 9, event: kEvent.addressResolved });
  });
});

describe("what makes no sense", () => {
  it("is refused with the errno that Linux has", async () => {
    const net = await network();
    const { server, listener } = await listening(net);
    const client = await net.program(0);
    const id = await client.create(2);
    await expect(client.create(2, 0x013f)).rejects.toThrow(String(EPROTONOSUPPORT));
    expect(await client.route(id)).toMatchObject({ error: EINVAL });
    expect(await client.connect(id, 100)).toMatchObject({ error: EINVAL });
    expect(await client.accept(id, 2, 100)).toMatchObject({ error: EINVAL });
    expect(await client.reject(id)).toMatchObject({ error: EINVAL });
    expect(await client.disconnect(id)).toMatchObject({ error: EINVAL });
    expect(await client.attributes(id, 1)).toMatchObject({ error: EINVAL });
    expect(await client.notify(id, 99)).toMatchObject({ error: EINVAL });
    expect(await client.option(id, 77, Buffer.alloc(4))).toMatchObject({ error: EINVAL });
    expect(await client.resolve(id, "fd00::1", kPort)).toMatchObject({ error: ENETUNREACH });
    expect(await client.resolve(id, kAddresses[1], kPort, "10.9.9.9")).toMatchObject({ error: EADDRNOTAVAIL });
    expect(await client.write(command(13, 16))).toMatchObject({ error: EOPNOTSUPP });
    expect(await client.write(command(99, 16))).toMatchObject({ error: EOPNOTSUPP });
    expect(await client.write(command(6, 40))).toMatchObject({ error: EINVAL });
    expect(await client.write(Buffer.alloc(3))).toMatchObject({ error: EOPNOTSUPP });
    // Ids of another are refused, also by another's channel.
    expect(await server.destroy(id + 1000)).toMatchObject({ error: ENOENT });
    net.who.uid = 9;
    const stranger = await net.program(1);
    expect(await stranger.destroy(listener)).toMatchObject({ error: ENOENT });
    expect(await stranger.write(destroying(listener), Buffer.alloc(0), server.key)).toMatchObject({ error: EBADF });
    expect(await stranger.migrate(listener, server)).toMatchObject({ error: EBADF });
    // The program does not have this queue pair.
    const routed = await client.routed(5, kAddresses[1], kPort);
    expect(await client.connect(routed, 300)).toMatchObject({ error: EINVAL });
  });

  it("is taken of as much as a program may have", async () => {
    const net = await network();
    const client = await net.program(0);
    let made = 0;
    for (; made < 5000; made++) {
      const { error } = await client.write(creating());
      if (error === 0) continue;
      expect(error).toBe(ENOMEM);
      break;
    }
    expect(made).toBe(4096);
    // Another program has its own.
    net.who.pid = 70;
    await (await net.program(0)).create(1);
  });

  it("of any kind gets an answer, or an end", async () => {
    const net = await network();
    const { server } = await listening(net);
    const client = await net.program(0);
    const ids = [await client.create(2), await client.routed(3, kAddresses[1], kPort)];
    let state = 12_345;
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state % below;
    };
    for (let round = 0; round < 3000; round++) {
      const bytes = command(random(26), 8 + random(300));
      for (let i = 8; i < bytes.length; i++) bytes[i] = random(4) === 0 ? random(256) : 0;
      // The bytes often have one of its own ids, wherever a command may have it.
      for (const offset of [8, 16, 44, 64, 280, 288]) {
        if (bytes.length >= offset + 4 && random(2) === 0) bytes.writeUInt32LE(ids[random(2)] as number, offset);
      }
      const { error } = await client.write(bytes, Buffer.alloc(random(3) * 4));
      expect(error).toBeLessThan(200);
    }
    // Others are served as before.
    expect(await server.write(command(12, 16))).toMatchObject({ error: expect.any(Number) });
    const more = await net.program(0);
    more.commands.socket.write(Buffer.alloc(16, 0xff));
    await eventually(() => expect(more.commands.ended).toBe(true));
    more.channel.socket.write("x");
    await eventually(() => expect(more.channel.ended).toBe(true));
  });
});

const destroying = (id: number) => {
  const bytes = command(1, 24);
  bytes.writeUInt32LE(id, 16);
  return bytes;
};
const creating = () => {
  const bytes = command(0, 32);
  bytes.writeUInt16LE(0x0106, 24);
  return bytes;
};

it("slows down who commands without end, and stays there for others", async () => {
  const net = await network();
  const [flood, other] = [await net.program(0), await net.program(0)];
  // Commands of no channel: each is answered with an error, 16 bytes.
  const kFlood = 40_000;
  flood.commands.socket.write(Buffer.alloc(16 * kFlood));
  const answered = () => flood.commands.waiting / 16;
  await other.create(1);
  expect(answered()).toBeLessThan(kFlood / 2);
  await eventually(() => expect(answered()).toBeGreaterThan(8192));
  const before = answered();
  await other.create(2);
  expect(answered() - before).toBeLessThan(kFlood / 4);
});

/** Ids of programs whose NIC loses addresses, and gets others. */
import { constants } from "node:os";
import { describe, expect, it } from "vitest";
import { gidOfAddress } from "../../../src/wire/address.js";
import { systemClock } from "../../../src/wire/cm/link.js";
import { kAddresses, kEvent, kIpv6, kPort, network } from "./network.js";

const { EADDRNOTAVAIL } = constants.errno;
/** Requests behind a listener that has just closed wait for so long. */
const kPauseMs = 1500;
const pause = () => new Promise<void>((resolve) => void systemClock.after(kPauseMs, resolve));

describe("ids of a NIC that loses an address", () => {
  it("are told, and get it back with the address", async () => {
    const net = await network(2);
    const place = net.nics[1]?.place;
    const server = await net.program(1);
    const [bound, other] = [await server.create(1), await server.create(2)];
    expect(await server.bind(bound, kAddresses[1], kPort)).toMatchObject({ error: 0 });
    expect(await server.listen(bound)).toMatchObject({ error: 0 });
    expect(await server.bind(other, kIpv6[1], kPort + 1)).toMatchObject({ error: 0 });
    place?.(undefined, 1);
    expect(await server.event()).toMatchObject({ uid: 1, event: kEvent.addressChange, status: 0 });
    expect(await server.bind(await server.create(3), kAddresses[1], 0)).toMatchObject({ error: EADDRNOTAVAIL });
    await pause();
    const client = await net.program(0);
    await client.connect(await client.routed(4, kAddresses[1], kPort), 100);
    expect(await client.event()).toMatchObject({ uid: 4, event: kEvent.rejected, status: 8 });

    // At another place of the table of GIDs, which the program is told of with the connection.
    place?.(5, 1);
    await client.connect(await client.routed(5, kAddresses[1], kPort), 100);
    const request = await server.event();
    expect(request).toMatchObject({ uid: 1, event: kEvent.connectRequest });
    const rtr = (await server.attributes(request.id, 2)).bytes;
    expect(rtr.subarray(40, 56)).toEqual(gidOfAddress(kAddresses[0]));
    expect(rtr.readUInt8(60)).toBe(5);
    await server.reject(request.id);
    expect(await client.event()).toMatchObject({ uid: 5, event: kEvent.rejected, status: 28 });
  });

  it("keep their connections, and those on all addresses have the others", async () => {
    const net = await network(2);
    const place = net.nics[1]?.place;
    place?.(0);
    const server = await net.program(1);
    const listener = await server.create(1);
    expect(await server.bind(listener, "::", kPort)).toMatchObject({ error: 0 });
    expect(await server.listen(listener)).toMatchObject({ error: 0 });
    const client = await net.program(0);
    const id = await client.routed(2, kAddresses[1], kPort);
    await client.connect(id, 100);
    const request = await server.event();
    await server.accept(request.id, 3, 101);
    expect(await client.event()).toMatchObject({ event: kEvent.connectResponse });
    await client.accept(id, 0, 0);
    expect(await server.event()).toMatchObject({ uid: 3, event: kEvent.established });

    place?.(undefined, 0);
    expect(await server.event()).toMatchObject({ uid: 3, event: kEvent.addressChange });
    const another = await client.routed(4, kIpv6[1], kPort);
    await client.connect(another, 100);
    expect(await server.event()).toMatchObject({ uid: 1, event: kEvent.connectRequest });
    await client.disconnect(id);
    expect(await server.event()).toMatchObject({ uid: 3, event: kEvent.disconnected, status: 0 });
    expect(await client.event()).toMatchObject({ uid: 2, event: kEvent.disconnected, status: 0 });
  });

  it("cannot reach anybody without one", async () => {
    const net = await network();
    net.nics[0]?.place();
    const client = await net.program(0);
    const id = await client.create(1);
    expect(await client.resolve(id, kAddresses[1], kPort)).toMatchObject({ error: constants.errno.ENETUNREACH });
  });
});

/** Two connection managers a millisecond apart, in virtual time. */

import type { WeirError } from "../../../src/base/error.js";
import { addressBytes, gidOfAddress, guidOfMac } from "../../../src/wire/address.js";
import { ConnectionManager, type IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import { buildMadFrame } from "../../../src/wire/cm/frame.js";
import { buildMessage, type Message } from "../../../src/wire/cm/messages.js";
import type { ConnectOptions, Disconnection, Established } from "../../../src/wire/cm/parameters.js";
import { FakeClock, FakeLink, join, messageIn } from "./fakes.js";

export const kMacs = [0x0200_0000_0001, 0x0200_0000_0002] as const;
export const kAddresses = ["10.9.0.1", "10.9.0.2"] as const;
export const kPort = 7174;
/** The default: 4.096 us x 2^18, and 15 times again. */
export const kResponseMs = 1073.741824;
export const kRetries = 15;

function side(clock: FakeClock, index: 0 | 1) {
  const link = new FakeLink(kMacs[index]);
  const peer = kMacs[1 - index] as number;
  const cm = new ConnectionManager({
    link,
    address: kAddresses[index],
    clock,
    neighbours: { resolve: () => Promise.resolve(peer) },
  });
  return { link, cm };
}

/** A client and a server, a millisecond apart. */
export function setUp(drops: (message: Message, index: number) => boolean = () => false) {
  const clock = new FakeClock();
  const client = side(clock, 0);
  const server = side(clock, 1);
  const seen: Message[] = [];
  join(clock, client.link, server.link, (frame) => {
    const message = messageIn(frame) as Message;
    seen.push(message);
    return drops(message, seen.filter(({ kind }) => kind === message.kind).length);
  });
  const requests: IncomingRequest[] = [];
  server.cm.listen(kPort, (request) => requests.push(request));
  const connect = (options: Partial<ConnectOptions> = {}) =>
    client.cm.connect({
      destination: kAddresses[1],
      port: kPort,
      qpn: 17,
      startingPsn: 100,
      pathMtu: 1024,
      ...options,
    });
  return { clock, client, server, requests, connect, seen, kinds: () => seen.map(({ kind }) => kind) };
}

export type Pair = ReturnType<typeof setUp>;

/** Both ends of a connection. */
export async function connected(net: Pair, options: Partial<ConnectOptions> = {}) {
  const connecting = net.connect(options);
  await net.clock.run(10);
  const request = net.requests.at(-1) as IncomingRequest;
  const accepting = request.accept({ qpn: 18, startingPsn: 200 });
  await net.clock.run(10);
  const client = await connecting;
  client.ready();
  await net.clock.run(10);
  return { client, server: await accepting };
}

/** Notes how each has ended, once it has. */
export function endsOf({ client, server }: { client: Established; server: Established }) {
  const how: { client?: Disconnection; server?: Disconnection } = {};
  client.onDisconnected((end) => {
    how.client = end;
  });
  server.onDisconnected((end) => {
    how.server = end;
  });
  return how;
}

export const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error as WeirError,
  );

/** Messages of a peer that is no friend of ours. */
export function hostile(net: Pair) {
  const template = { localGuid: guidOfMac(kMacs[0]), partition: 0xffff };
  const valid = { pathMtu: 3, remoteGid: gid(2), serviceId: (0x0106n << 16n) | BigInt(kPort) };
  const privateData = Buffer.alloc(36);
  privateData.set([0, 0x40, 0, 1]);
  privateData.set([10, 9, 0, 1], 16);
  privateData.set([10, 9, 0, 2], 32);
  const send = (mad: Buffer, source: string = kAddresses[0]) =>
    net.server.link.receive(
      buildMadFrame(
        { destinationMac: kMacs[1], sourceMac: kMacs[0], source, destination: kAddresses[1], psn: 0, mad },
        1,
      ),
    );
  return {
    send,
    request: (fields: Parameters<typeof buildMessage<"REQ">>[2], source: string = kAddresses[0]) => {
      const of = { localGid: gidOfAddress(source), privateData: Buffer.from(privateData) };
      of.privateData.set(addressBytes(source), 16);
      send(buildMessage("REQ", 1n, { localId: 5, localQpn: 17, ...template, ...valid, ...of, ...fields }), source);
    },
  };
}
export const gid = (last: number) => Buffer.from(`00000000000000000000ffff0a0900${`0${last}`}`, "hex");

/** Two NICs with a link between them, and programs that speak to them by hand. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { expect, onTestFinished } from "vitest";
import { isHello, ProgramConnections } from "../../../src/daemon/programs/connections.js";
import { Shares } from "../../../src/daemon/programs/shares.js";
import { isGroup, macOfGroup } from "../../../src/wire/address.js";
import { GroupReports } from "../../../src/wire/cm/group_reports.js";
import { type Clock, systemClock } from "../../../src/wire/cm/link.js";
import { FakeLink, join } from "../../wire/cm/fakes.js";
import { UcmaClient } from "./ucma_client.js";

export const kUdp = 0x0111;
export const kPort = 7471;
const kMostMemberships = 4096;
export const kMacs = [0x02_00_00_00_00_01, 0x02_00_00_00_00_02] as const;
export const kAddresses = ["10.0.0.1", "10.0.0.2"] as const;
/** Address on the second NIC's link; its connections are not a program's. */
export const kStranger = "10.0.0.3";
export const kIpv6 = ["fd00::1", "fd00::2"] as const;
export const kEvent = {
  addressResolved: 0,
  addressError: 1,
  routeResolved: 2,
  connectRequest: 4,
  connectResponse: 5,
  unreachable: 7,
  rejected: 8,
  established: 9,
  disconnected: 10,
  groupJoined: 12,
  addressChange: 14,
  timewaitExit: 15,
};

/**
 * Programs have queue pairs 100 to 199, whatever their user. `who` is changed to be another.
 * @param clock Clock of timers; frames take a real millisecond.
 */
export async function network(families = 1, clock: Clock = systemClock) {
  const links = [new FakeLink(kMacs[0]), new FakeLink(kMacs[1])] as const;
  join(systemClock, ...links);
  const who = { pid: 7, uid: 8 };
  /** Other stations on the links, once they are there: MAC address by address. */
  const late = new Map<string, number>();
  /** Memberships in groups, of all users of a NIC. */
  const memberships = links.map(() => new Shares(kMostMemberships));
  const path = mkdtempSync(joinPath(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const nics = await Promise.all(
    links.map(async (link, i) => {
      const addresses = [kAddresses, kIpv6].slice(0, families).map((family: readonly string[], index) => ({
        index,
        address: family[i] as string,
        neighbours: {
          resolve: async (address: string) => {
            const host = address === kStranger ? 1 : family.indexOf(address);
            const found = late.get(address) ?? (isGroup(address) ? macOfGroup(address) : kMacs[host]);
            if (found === undefined) throw new Error("nobody answers");
            return found;
          },
        },
      }));
      const groups = new GroupReports({ link, addresses: addresses.map(({ address }) => address) });
      onTestFinished(() => groups.close());
      const connections = new ProgramConnections({
        addresses,
        pathMtu: () => 1024,
        link,
        groups,
        memberships: memberships[i] as Shares,
        clock,
        credentials: () => ({ ...who }),
        mayNameQueuePair: (_, qpn) => qpn >= 100 && qpn < 200,
      });
      const socket = joinPath(path, `${i}.verbs`);
      const sockets = new Set<Socket>();
      const server = createServer((client) => {
        sockets.add(client);
        client
          .on("error", () => {})
          .once("data", (first: Buffer) => {
            expect(isHello(first)).toBe(true);
            connections.serve(client, first);
          });
      });
      await new Promise<void>((resolve) => server.listen(socket, resolve));
      onTestFinished(() => {
        for (const client of sockets) client.destroy();
        connections.close();
        server.close();
      });
      /** Gives the NIC its address of each family at this index of the table of GIDs, or takes it. */
      const place = (...indices: (number | undefined)[]) =>
        connections.takeAddresses(
          addresses.flatMap((own, family) => {
            const index = indices[family];
            return index === undefined ? [] : [{ ...own, index }];
          }),
        );
      return { socket, place };
    }),
  );
  let keys = 0n;
  const program = (nic: 0 | 1) => UcmaClient.open((nics[nic] as { socket: string }).socket, ++keys);
  return { nics, program, who, links, late, memberships };
}

/** A server on NIC 1 that listens, and its id. */
export async function listening(net: Awaited<ReturnType<typeof network>>, space?: number, nic: 0 | 1 = 1) {
  const server = await net.program(nic);
  const listener = await server.create(1, space);
  expect(await server.bind(listener, "0.0.0.0", kPort)).toMatchObject({ error: 0 });
  expect(await server.listen(listener, 2)).toMatchObject({ error: 0 });
  return { server, listener };
}

/** RDMA between a guest's NIC and one of this host, verified where it arrives. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, inject } from "vitest";
import { connected, onNic, type Program, served } from "../interop/exchange.js";
import { type InteropNetwork, ipv4 } from "../interop/network.js";
import type { NicGuest } from "./nic_guest.js";

/** Numbers of addresses: that of the guest's NIC and that of the host's. */
export const kGuest = 8;
export const kPeer = 9;
/** Seconds that a program may take in emulation. */
const kLimitS = 120;
const kCopied = 200_000;

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** A program on the guest's NIC; whether it listens nobody tells, and a client that comes too early tries again. */
export function onGuestNic(guest: NicGuest, command: string): Program {
  return (limit) => ({
    finished: guest.guest.run(`. /run/weir.env; ${command}`, { timeout: limit }),
    listening: () => delay(1000),
    kill: () => void guest.guest.run(`pkill -KILL -x ${command.split(" ")[0]}`),
  });
}

/** A program on the host's NIC. */
export const onPeer =
  (network: InteropNetwork, socket: string, command: string): Program =>
  (limit) => ({ ...onNic(network, socket, command, 0)(limit), listening: () => delay(1000) });

/** Pings that compare what comes back, with the guest as the client and as the server. @param size bytes */
export async function pingBothWays(
  guest: NicGuest,
  peer: (command: string) => Program,
  { count, size }: { count: number; size: number },
): Promise<void> {
  const options = `-C ${count} -S ${size} -V`;
  const client = `rping -c ${options} -v -a`;
  const ways = [
    await connected(peer(`rping -s ${options}`), onGuestNic(guest, `${client} ${ipv4(kPeer)}`), kLimitS),
    await connected(onGuestNic(guest, `rping -s ${options}`), peer(`${client} ${ipv4(kGuest)}`), kLimitS),
  ];
  for (const { client: said } of ways) expect(said.match(/^ping data: rdma-ping-\d+: /gm)).toHaveLength(count);
}

/** Copies a file to the guest and one from it, by RDMA WRITE, and compares their sums. */
export async function copyBothWays(guest: NicGuest, peer: (command: string) => Program): Promise<void> {
  const folder = mkdtempSync(join(inject("folder"), "copies-"));
  const [from, back] = [join(folder, "from"), join(folder, "back")];
  const bytes = randomBytes(kCopied);
  writeFileSync(from, bytes);
  await served(onGuestNic(guest, "rcopy"), peer(`rcopy ${from} ${ipv4(kGuest)}:/run/copy`), kLimitS);
  expect(await guest.does("sha256sum </run/copy")).toContain(sha256(bytes));
  await served(peer("rcopy"), onGuestNic(guest, `rcopy /run/copy ${ipv4(kPeer)}:${back}`), kLimitS);
  expect(sha256(readFileSync(back))).toBe(sha256(bytes));
}

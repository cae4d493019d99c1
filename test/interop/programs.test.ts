/** Programs of others on `weir nic` against the same programs on a stock Soft-RoCE guest, each as the client and as the server. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Guest, Output } from "../guests/guest.js";
import { eventually } from "../patience.js";
import { describeInterop } from "./describe_interop.js";
import { connected, exchange, inGuest, onNic, type Program, served } from "./exchange.js";
import { InteropNetwork, ipv4, kHostAddress } from "./network.js";

const kWeir = 9;
const kPort = 18_515;
const kGroup = "239.77.1.2";
// -u: an acknowledgement may take a second, for an emulated guest may be kept waiting.
const kPerftest = "-F -n 100 -u 18";
const kTests = [
  "ibv_rc_pingpong -n 200 -c",
  "ibv_rc_pingpong -n 200 -e",
  "ibv_ud_pingpong -n 200 -s 1024",
  `ib_write_bw ${kPerftest}`,
  `ib_read_bw ${kPerftest}`,
  `ib_send_bw ${kPerftest}`,
  `ib_atomic_bw ${kPerftest}`,
  `ib_write_lat ${kPerftest}`,
];

const kStream = "-S 16384 -I 10 -C 5 -T v";

/** Commands on librdmacm: the server's, and the client's but for the address. */
const kConnections: readonly (readonly [string, string])[] = [
  ["rping -s -C 200 -S 1000 -V", "rping -c -C 200 -S 1000 -V -v -a"],
  ["ucmatose -c 4 -C 20", "ucmatose -c 4 -C 20 -s"],
  ["udaddy -c 2 -C 20", "udaddy -c 2 -C 20 -s"],
  [`rstream ${kStream}`, `rstream ${kStream} -s`],
  [`ib_write_bw -R ${kPerftest}`, `ib_write_bw -R ${kPerftest}`],
  [`ib_read_bw -R ${kPerftest}`, `ib_read_bw -R ${kPerftest}`],
];

let network: InteropNetwork;
let guest: Guest;
let folder: string;
let socket: string;

/** A command with the index of the guest's IPv4 address, or of Weir's. */
const withGid = (test: string, index: number) =>
  `${test} ${test.startsWith("ibv_") ? "-g" : "-x"} ${index} -p ${kPort}`;

const onGuest = (test: string, server = "") => inGuest(guest, `${withGid(test, 1)} ${server}`);

/** Runs a program on the NIC; the programs find each other by TCP through the bridge. */
const onWeir = (test: string, ...server: string[]) => byNic(`${withGid(test, 0)} ${server.join(" ")}`.trim());

const byNic = (command: string) => onNic(network, socket, command, kPort);

/** A server: whether its id listens nobody tells, and a client that comes too early tries again. */
const byConnection =
  (command: string): Program =>
  (limit) => ({ ...byNic(command)(limit), listening: () => delay(1000) });

const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** Runs two ends of a multicast group: nobody tells a sender whether the member has joined. */
async function heard(member: Program, sender: Program, limit = 60): Promise<void> {
  const listening = member(limit).finished;
  let ended: Output | undefined;
  void listening.then((end) => {
    ended = end;
  });
  await eventually(async () => {
    const { status, stdout } = await sender(limit).finished;
    expect(status, stdout).toBe(0);
    expect(ended).toBeDefined();
  });
  expect(ended?.status, ended?.stdout).toBe(0);
}

describeInterop("programs on weir nic and on Soft-RoCE", () => {
  beforeAll(async () => {
    network = await InteropNetwork.create();
    [guest] = (await network.guests(1)) as [Guest];
    const nic = await network.nic(kWeir);
    await network.bridge("tap1", nic.port);
    folder = mkdtempSync(join(inject("folder"), "programs-"));
    socket = await network.nicDaemon(nic.device.interface, kWeir);
  });
  afterAll(() => network?.close());

  describe.each(kConnections)("%s", (server, client) => {
    it("on Soft-RoCE is served on Weir", async () => {
      await connected(byConnection(server), inGuest(guest, `${client} ${ipv4(kWeir)}`));
    });

    it("on Weir is served on Soft-RoCE", async () => {
      await connected(inGuest(guest, server), byNic(`${client} ${ipv4(1)}`));
    });
  });

  it("cmtime on Soft-RoCE is served on Weir", async () => {
    await served(byConnection("cmtime"), inGuest(guest, `cmtime -c 20 -s ${ipv4(kWeir)}`));
  });

  it("cmtime on Weir is served on Soft-RoCE", async () => {
    await served(inGuest(guest, "cmtime"), byNic(`cmtime -c 20 -s ${ipv4(1)}`));
  });

  it("rcopy on Soft-RoCE is served on Weir", async () => {
    const to = join(folder, "from-guest");
    const made = "head -c 1000000 /dev/urandom >/tmp/from; sha256sum </tmp/from";
    const { client } = await served(
      byConnection("rcopy"),
      inGuest(guest, `${made}; rcopy /tmp/from ${ipv4(kWeir)}:${to}`),
    );
    expect(client).toContain(sha256(to));
  });

  it("rcopy on Weir is served on Soft-RoCE", async () => {
    const from = join(folder, "from-weir");
    writeFileSync(from, randomBytes(1_000_000));
    await served(inGuest(guest, "rcopy"), byNic(`rcopy ${from} ${ipv4(1)}:/tmp/to`));
    expect((await guest.run("sha256sum </tmp/to")).stdout).toContain(sha256(from));
  });

  it("mckey on Soft-RoCE is heard on Weir", async () => {
    await heard(
      byNic(`mckey -m ${kGroup} -b ${ipv4(kWeir)} -C 20`),
      inGuest(guest, `mckey -m ${kGroup} -b ${ipv4(1)} -s -C 20`),
    );
  });

  it("mckey on Weir is heard on Soft-RoCE", async () => {
    await heard(
      inGuest(guest, `mckey -m ${kGroup} -b ${ipv4(1)} -C 20`),
      byNic(`mckey -m ${kGroup} -b ${ipv4(kWeir)} -s -C 20`),
    );
  });

  describe.each(kTests)("%s", (test) => {
    it("on Soft-RoCE is served on Weir", async () => {
      await exchange(onWeir(test), onGuest(test, kHostAddress));
    });

    it("on Weir is served on Soft-RoCE", async () => {
      await exchange(onGuest(test), onWeir(test, ipv4(1)));
    });
  });
});

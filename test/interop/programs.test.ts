/** Programs of others on `weir nic` against the same programs on a stock Soft-RoCE guest, each as the client and as the server. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { kWeir as kCommand } from "../command.js";
import { eventually } from "../patience.js";
import { describeInterop } from "./capability.js";
import { connected, exchange, inGuest, type Program } from "./exchange.js";
import type { Guest } from "./guest.js";
import { InteropNetwork, ipv4, kHostAddress } from "./network.js";

const kWeir = 9;
const kPort = 18_515;
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

/** By librdmacm: the server's command, and the client's but for the address. */
const kConnections: readonly (readonly [string, string])[] = [
  ["rping -s -C 200 -S 1000 -V", "rping -c -C 200 -S 1000 -V -v -a"],
  ["ucmatose -c 4 -C 20", "ucmatose -c 4 -C 20 -s"],
  ["udaddy -c 2 -C 20", "udaddy -c 2 -C 20 -s"],
  [`ib_write_bw -R ${kPerftest}`, `ib_write_bw -R ${kPerftest}`],
  [`ib_read_bw -R ${kPerftest}`, `ib_read_bw -R ${kPerftest}`],
];

let network: InteropNetwork;
let guest: Guest;
let socket: string;

/** With the index of the guest's IPv4 address, or of Weir's. */
const withGid = (test: string, index: number) =>
  `${test} ${test.startsWith("ibv_") ? "-g" : "-x"} ${index} -p ${kPort}`;

const onGuest = (test: string, server = "") => inGuest(guest, `${withGid(test, 1)} ${server}`);

/** On the NIC; the programs find each other by TCP through the bridge. */
const onWeir = (test: string, ...server: string[]) => byNic(`${withGid(test, 0)} ${server.join(" ")}`.trim());

function byNic(command: string): Program {
  return (limit) => {
    const whole = ["timeout", String(limit), ...command.split(" ")];
    const { child, finished } = network.program(...kCommand, "run", "--socket", socket, "--", ...whole);
    return {
      finished: finished.then(({ status, stdout, stderr }) => ({ status, stdout: stdout + stderr })),
      async listening() {
        const port = kPort.toString(16).toUpperCase();
        await eventually(async () => {
          const { stdout } = await network.namespace.run("cat", ["/proc/self/net/tcp", "/proc/self/net/tcp6"]);
          expect(stdout).toMatch(new RegExp(`:${port} [0-9A-F]+:0000 0A `));
        });
      },
      kill: () => void child.kill("SIGTERM"),
    };
  };
}

/** A server: whether its id listens nobody tells, and a client that comes too early tries again. */
const byConnection =
  (command: string): Program =>
  (limit) => ({ ...byNic(command)(limit), listening: () => delay(1000) });

describeInterop("programs on weir nic and on Soft-RoCE", () => {
  beforeAll(async () => {
    network = await InteropNetwork.create();
    [guest] = (await network.guests(1)) as [Guest];
    const nic = await network.nic(kWeir);
    await network.bridge("tap1", nic.port);
    const folder = mkdtempSync(join(inject("folder"), "programs-"));
    const file = join(folder, "nic.yaml");
    socket = join(folder, "roce0.sock");
    const { interface: name, namespace } = nic.device;
    const config = { name: "roce0", interface: name, namespace, address: ipv4(kWeir), metrics: false, programs: true };
    writeFileSync(file, JSON.stringify({ ...config, control: socket }));
    const daemon = network.program(...kCommand, "nic", "-c", file);
    let ended: unknown;
    void daemon.finished.then((end) => {
      ended = end;
    });
    await eventually(async () => ended ?? (await ask(socket, "ports")));
    expect(ended).toBeUndefined();
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

  describe.each(kTests)("%s", (test) => {
    it("on Soft-RoCE is served on Weir", async () => {
      await exchange(onWeir(test), onGuest(test, kHostAddress));
    });

    it("on Weir is served on Soft-RoCE", async () => {
      await exchange(onGuest(test), onWeir(test, ipv4(1)));
    });
  });
});

/** Every operation of two stock Soft-RoCE guests crosses `weir switch`, verified where it arrives; at a path MTU of 4096, too. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Guest } from "../guests/guest.js";
import { describeInterop } from "./describe_interop.js";
import { connected, exchange, inGuest } from "./exchange.js";
import { InteropNetwork, ipv4, ipv6 } from "./network.js";

let network: InteropNetwork;
let a: Guest;
let b: Guest;

/** Both ends of the guests' program `opcodes`. */
function opcodes(options: string, address = ipv4(1), test = "ops") {
  const client = inGuest(b, `opcodes -c ${address} ${options} -x ${test}`);
  return exchange(inGuest(a, `opcodes -s ${options}`), client);
}

describeInterop("verbs of Soft-RoCE guests through weir switch", () => {
  describe.each([
    [1500, 1024],
    [4176, 4096],
  ])("MTU %i", (mtu, pathMtu) => {
    beforeAll(async () => {
      network = await InteropNetwork.create();
      [a, b] = (await network.guests(2, mtu)) as [Guest, Guest];
      await network.switch(["tap1", "tap2"], "rate: 1Gbps");
    });
    afterAll(() => network?.close());

    it.each([
      ["rc", 47],
      ["uc", 24],
      ["ud", 8],
    ])("all operations of %s over IPv4 and IPv6", async (transport, count) => {
      for (const [gid, address] of [
        [1, ipv4(1)],
        [2, ipv6(1)],
      ]) {
        const { client } = await opcodes(`-t ${transport} -m ${pathMtu} -g ${gid}`, String(address));
        expect(client.match(/: success$/gm)).toHaveLength(count);
      }
    });

    it("all operations of rc while packet sequence numbers wrap", async () => {
      await opcodes(`-m ${pathMtu} -P 0xfffff8`);
    });

    it.each([
      ["rkey", "RDMA WRITE with a wrong rkey, 64 bytes: remote access error"],
      ["read-rkey", "RDMA READ with a wrong rkey, 64 bytes: remote access error"],
      ["long", "SEND that is too long, 16385 bytes: remote operation error"],
      ["rnr", "SEND, 1000 bytes: success"],
    ])("refusals: %s", async (test, expected) => {
      const { client } = await opcodes(`-m ${pathMtu}`, ipv4(1), test);
      expect(client).toContain(expected);
    });

    it("ib_send_lat with RDMA CM", async () => {
      const command = `ib_send_lat -R -F -u 18 -n 100 -s ${pathMtu}`;
      const { client } = await connected(inGuest(a, command), inGuest(b, `${command} ${ipv4(1)}`));
      expect(client).toMatch(new RegExp(`^ ${pathMtu} +100 `, "m"));
    });
  });
});

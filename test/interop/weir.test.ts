/** A stock Soft-RoCE guest against Weir, each as the client and as the server, with nothing of Weir between them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Guest } from "../guests/guest.js";
import { describeInterop } from "./describe_interop.js";
import { byWeir, connected, exchange, inGuest } from "./exchange.js";
import { InteropNetwork, ipv4, ipv6, type Nic } from "./network.js";

const kWeir = 9;
const kPings = 1000;
/** Tests, some of them both ways. */
const kTests = ["write-bw", "read-bw", "send-bw", "send-lat", "write-bw -b", "read-bw -b", "send-bw -b"];

let network: InteropNetwork;
let guest: Guest;
let nic: Nic;

describeInterop("Soft-RoCE against Weir", () => {
  describe.each([
    [1500, 1024],
    [4176, 4096],
  ])("MTU %i", (mtu, pathMtu) => {
    beforeAll(async () => {
      network = await InteropNetwork.create();
      [guest] = (await network.guests(1, mtu)) as [Guest];
      nic = await network.nic(kWeir, mtu);
      await network.bridge("tap1", nic.port);
    });
    afterAll(() => network?.close());

    describe.each([
      ["IPv4", ipv4],
      ["IPv6", ipv6],
    ])("%s", (_, address) => {
      it("rping is served by weir ping", async () => {
        const server = byWeir(network, nic, "ping", "-s", "-C", String(kPings));
        const client = inGuest(guest, `rping -c -a ${address(kWeir)} -C ${kPings} -S 1000 -V -v`);
        const { client: said } = await exchange(server, client, 90);
        expect(said.match(/^ping data: rdma-ping-\d+: /gm)).toHaveLength(kPings);
      });

      it("weir ping is served by rping", async () => {
        const server = inGuest(guest, `rping -s -a ${address(1)} -C ${kPings} -S 1000 -V`);
        const client = byWeir(network, nic, "ping", "-c", address(1), "-C", String(kPings), "-S", "1000", "--validate");
        expect((await exchange(server, client, 90)).client).toContain(`${kPings} pings, all unchanged`);
      });
    });

    describe.each(kTests)("%s", (test) => {
      // -u: an acknowledgement may take a second, for an emulated guest may be kept waiting.
      const options = "-F -n 100 -s 65536";
      const theirs = `ib_${test.replace("-", "_")} -R -u 18 ${options}`;
      const ours = ["perf", ...test.split(" "), ...options.split(" ")];

      it("of perftest is served by weir perf", async () => {
        const client = inGuest(guest, `${theirs} ${ipv4(kWeir)}`);
        const { client: said } = await exchange(byWeir(network, nic, ...ours), client);
        expect(said).toMatch(/^ 65536 +100 /m);
      });

      it("of weir perf is served by perftest", async () => {
        const { client } = await connected(inGuest(guest, theirs), byWeir(network, nic, ...ours, ipv4(1)));
        expect(client).toMatch(/^ 65536 +100 /m);
        expect(client).toContain(`${pathMtu}`);
      });
    });
  });
});

/** Programs on librdmacm, as they are, where a NIC has addresses of both versions of IP; and their multicast groups. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { type Daemon, network } from "./daemons.js";
import { fabric, run, startNic } from "./program_runs.js";

const addresses = (last: number) => `address: [10.66.0.${last}, "fd66::${last}"]\nprograms: true\n`;

/** A server that ends with its client, which is tried until it listens. */
async function meets(
  server: Daemon,
  serves: readonly string[],
  client: Daemon,
  asks: readonly string[],
): Promise<void> {
  const serving = run(server, ...serves);
  await eventually(async () => {
    const { status, output } = await run(client, ...asks).ended;
    expect(status, `${output}${serving.output()}`).toBe(0);
  });
  expect((await serving.ended).status, serving.output()).toBe(0);
}

describeLive("addresses of programs", () => {
  it("are of either version of IP", async () => {
    const { a, b } = await fabric({ fields: addresses });
    await meets(b, ["rping", "-s", "-a", "fd66::2", "-C", "3"], a, ["rping", "-c", "-a", "fd66::2", "-V", "-C", "3"]);
    await meets(b, ["rping", "-s", "-a", "10.66.0.2", "-C", "3"], a, ["rping", "-c", "-a", "10.66.0.2", "-C", "3"]);
    await meets(b, ["ucmatose", "-b", "fd66::2"], a, ["ucmatose", "-s", "fd66::2"]);
    await meets(b, ["udaddy", "-b", "fd66::2"], a, ["udaddy", "-s", "fd66::2"]);
    // The server listens on all addresses.
    await meets(b, ["udaddy", "-b", "::"], a, ["udaddy", "-s", "10.66.0.2"]);
    await meets(b, ["ucmatose", "-b", "::"], a, ["ucmatose", "-s", "fd66::2", "-b", "fd66::1"]);
  });

  it("are of multicast groups, too, of which others hear nothing", async () => {
    const { a, b } = await fabric({ fields: addresses });
    const groups = [
      { group: "239.66.1.2", from: "10.66.0.1", to: "10.66.0.2" },
      { group: "ff0e::66:2", from: "fd66::1", to: "fd66::2" },
    ];
    const send = async (group: string, from: string) => {
      const { status, output } = await run(a, "mckey", "-m", group, "-b", from, "-s", "-C", "20").ended;
      expect(status, output).toBe(0);
    };
    for (const { group, from, to } of groups) {
      const joins = () => run(b, "mckey", "-m", group, "-b", to, "-C", "20");
      const members = [joins(), joins()];
      let left = members.length;
      for (const { ended } of members) void ended.then(() => left--);
      // Nobody tells a sender whether all have joined.
      await eventually(async () => {
        await send(group, from);
        expect(left).toBe(0);
      });
      for (const { ended } of members) {
        const { status, output } = await ended;
        expect(status, output).toBe(0);
        expect(output).toContain("data transfers complete");
      }
    }
    // Nobody has joined any more, and one that is killed leaves.
    const { group, from, to } = groups[0] as (typeof groups)[0];
    const killed = run(b, "sh", "-c", `echo $$; exec mckey -m ${group} -b ${to} -C 1000`);
    await eventually(async () => {
      await send(group, from);
      const [pair] = await ask(b.socket, "queue_pairs");
      expect(pair?.counters?.rx_packets).toBeGreaterThan(0);
    });
    process.kill(Number.parseInt(killed.output(), 10), "SIGKILL");
    await killed.ended;
    const refused = async () => {
      const { counters } = await ask(b.socket, "counters");
      return counters.find(({ name }) => name === "drop_unknown_group")?.value ?? 0;
    };
    await eventually(async () => expect(await ask(b.socket, "queue_pairs")).toEqual([]));
    const before = await refused();
    await send(group, from);
    await eventually(async () => expect((await refused()) - before).toBe(20));
  });

  it("of groups are known to a switch that snoops, as long as somebody has joined", async () => {
    const net = await network();
    const bridge = net.namespace("sw");
    const lines = [
      "link add br0 type bridge mcast_snooping 1 mcast_querier 1",
      ...["link set br0 up", "link set dev a master br0 up", "link set dev b master br0 up"],
    ];
    await bridge.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
    const b = await startNic(net, "b", addresses);
    const known = async () => {
      const found = (await bridge.run("bridge", ["mdb", "show"])).stdout.split("\n");
      return found.filter((line) => /grp (239\.66|ff0e::66)/.test(line)).map((line) => line.match(/port (\S+)/)?.[1]);
    };
    for (const [group, to] of [
      ["239.66.1.2", "10.66.0.2"],
      ["ff0e::66:2", "fd66::2"],
    ] as const) {
      expect(await known()).toEqual([]);
      const member = run(b, "sh", "-c", `echo $$; exec mckey -m ${group} -b ${to}`);
      await eventually(async () => expect(await known()).toEqual(["b"]));
      process.kill(Number.parseInt(member.output(), 10), "SIGKILL");
      await eventually(async () => expect(await known()).toEqual([]));
    }
  });

  it("of groups reach an interface that the kernel uses, too, and that takes nothing else of others", async () => {
    const net = await network();
    const b = await startNic(net, "b", () => "address: 10.66.0.2\nprograms: true\nbackend: af_xdp\n");
    const state = async () => {
      const { stdout } = await net.namespace("b").run("ip", ["-details", "-json", "link", "show", "dev", "weir0"]);
      const [{ promiscuity, allmulti }] = JSON.parse(stdout) as [{ promiscuity: number; allmulti: number }];
      return { promiscuity, allmulti };
    };
    expect(await state()).toEqual({ promiscuity: 0, allmulti: 0 });
    run(b, "mckey", "-m", "239.66.1.2");
    await eventually(async () => expect(await state()).toEqual({ promiscuity: 0, allmulti: 1 }));
  });
});

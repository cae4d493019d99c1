/** A NIC that has the addresses of its interface, whatever they are. */
import { expect, it } from "vitest";
import type { NicAddresses } from "../../src/daemon/kinds.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { start } from "./started.js";

const kFile = (folder: string) => `name: roce0
interface: lo
address: 127.0.0.1
control: ${folder}/roce0.sock
metrics: false
`;

/** The daemon, the addresses that its interface has from now on, and those that its worker knows. */
async function following(more = "") {
  const now: { addresses: string[]; gateways: NicAddresses["gateways"]; error?: Error } = {
    addresses: ["127.0.0.1"],
    gateways: [],
  };
  const follow = () => {
    if (now.error !== undefined) throw now.error;
    return { addresses: now.addresses, gateways: now.gateways };
  };
  const daemon = await start(
    "nic",
    (folder) => kFile(folder) + more,
    (addon) => {
      addon.takeRouteNews.mockReturnValue(1);
    },
    () => ({ follow }),
  );
  const known = () => {
    const neighbours = daemon.addon.worker.configs.at(-1)?.nics[0]?.neighbours;
    return neighbours?.addresses.map(({ address }) => address.bytes.join("."));
  };
  const logged = (text: string) => daemon.log.filter(({ msg }) => msg.startsWith(text));
  return { ...daemon, now, known, logged };
}

describeUnless(lacking("iproute2"), "a NIC with the addresses of its interface", () => {
  it("follows them until there is none, and when they are back", async () => {
    const { now, known, logged, signals } = await following();
    expect(known()).toEqual(["127.0.0.1"]);
    now.addresses = [];
    await eventually(() => expect(known()).toEqual([]));
    // A reload does not bring those of the start back.
    signals.emit("SIGHUP");
    expect(logged("reloaded")).toHaveLength(1);
    expect(known()).toEqual([]);
    now.addresses = ["127.0.0.1"];
    await eventually(() => expect(known()).toEqual(["127.0.0.1"]));
    expect(logged("the interface has other addresses")).toMatchObject([
      { addresses: [] },
      { addresses: ["127.0.0.1"] },
    ]);
    signals.emit("SIGTERM");
  });

  it("says once what is in the way, and tries again", async () => {
    const { now, known, logged, signals } = await following();
    now.error = new Error("there is no interface lo");
    await eventually(() => expect(logged("addresses not followed")).toMatchObject([{ error: now.error?.message }]));
    // One that went away before it was looked at closely: the kernel does not answer for it.
    delete now.error;
    now.addresses = ["192.0.2.1"];
    await eventually(() => expect(logged("addresses not followed")).toHaveLength(2));
    expect(known()).toEqual(["127.0.0.1"]);
    now.addresses = [];
    await eventually(() => expect(known()).toEqual([]));
    expect(logged("addresses not followed")).toHaveLength(2);
    signals.emit("SIGTERM");
  });

  it("keeps those of the start where queue pairs of its own send from them", async () => {
    const pairs = `peers: [{ name: b, address: 127.0.0.2, mac: "02:00:00:00:00:02" }]\nqueue_pairs: [{ name: to-b, peer: b }]\n`;
    const { addon, signals } = await following(pairs);
    expect(addon.openAddressWatch).not.toHaveBeenCalled();
    signals.emit("SIGTERM");
  });
});

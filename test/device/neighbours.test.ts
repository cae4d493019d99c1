/** The addresses that the core is asked for, and what becomes of its answers. */
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import { neighboursOf } from "../../src/device/neighbours.js";
import { routeFrom } from "../../src/device/path.js";
import type { NativeIpAddress } from "../../src/native/types.js";
import { addressText } from "../../src/wire/address.js";

const kOurs = 0x0200_0000_0001;
const kTheirs = 0x0200_0000_0002;
const kFamilies = [
  { family: "IPv4", ours: "10.9.0.1", theirs: "10.9.0.2", far: "10.8.0.1", gateway: "10.9.0.3", group: "224.0.0.9" },
  { family: "IPv6", ours: "fd99::1", theirs: "fd99::2", far: "fd98::1", gateway: "fd99::3", group: "ff02::9" },
];

function setUp(ours: string, answer: number | undefined | Error = kTheirs, gateway?: string) {
  const asked: unknown[] = [];
  const worker = {
    resolve: (nic: number, own: number, { bytes }: NativeIpAddress) => {
      asked.push([nic, own, addressText(Uint8Array.from(bytes))]);
      if (answer instanceof Error) throw answer;
      return Promise.resolve(answer);
    },
  };
  const prefix = ours.includes(":") ? 64 : 24;
  const route = routeFrom(gateway === undefined ? [] : [{ address: gateway, prefix }], ours);
  const neighbours = neighboursOf({ worker, mac: kOurs, addresses: () => ["192.0.2.1", ours], from: ours, route });
  return { asked, neighbours };
}

describe.each(kFamilies)("neighbours, $family", ({ ours, theirs, far, gateway, group }) => {
  it("are asked for from the NIC's own address, others at their gateway", async () => {
    const { asked, neighbours } = setUp(ours, kTheirs, gateway);
    expect(await neighbours.resolve(theirs)).toBe(kTheirs);
    expect(await neighbours.resolve(far)).toBe(kTheirs);
    expect(asked).toEqual([
      [0, 1, theirs],
      [0, 1, gateway],
    ]);
  });

  it("are the NIC itself, and groups, without a question", async () => {
    const { asked, neighbours } = setUp(ours);
    expect(await neighbours.resolve(ours)).toBe(kOurs);
    expect(await neighbours.resolve(group)).toBe(ours.includes(":") ? 0x3333_0000_0009 : 0x0100_5e00_0009);
    expect(asked).toEqual([]);
  });

  it("are no names, and none of the other family", async () => {
    const { neighbours } = setUp(ours);
    await expect(neighbours.resolve("peer")).rejects.toThrow("peer is not an IP address");
    await expect(neighbours.resolve(ours.includes(":") ? "10.0.0.1" : "fd00::1")).rejects.toThrow("cannot be reached");
  });

  it("that do not answer, or are too many, are told with what to look at", async () => {
    const silent = setUp(ours, 0).neighbours.resolve(theirs);
    await expect(silent).rejects.toBeInstanceOf(WeirError);
    const hint = expect.stringContaining("same link");
    await expect(silent).rejects.toMatchObject({ message: expect.stringContaining(`${theirs} does not answer`), hint });
    const refused = Object.assign(new Error("too many addresses"), { hint: "try again" });
    await expect(setUp(ours, refused).neighbours.resolve(theirs)).rejects.toMatchObject({ hint: "try again" });
  });
});

it("a search that the end of the device cuts off fails", async () => {
  const worker = { resolve: () => Promise.resolve(undefined) };
  const neighbours = neighboursOf({
    worker,
    mac: kOurs,
    addresses: () => ["10.9.0.1"],
    from: "10.9.0.1",
    route: (hop) => hop,
  });
  await expect(neighbours.resolve("10.9.0.2")).rejects.toThrow("10.9.0.2 was not resolved: the device was closed");
});

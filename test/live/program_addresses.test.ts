/** Programs on librdmacm, as they are, where a NIC has addresses of both versions of IP. */
import { expect, it } from "vitest";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import type { Daemon } from "./daemons.js";
import { run, twoNics } from "./program_hosts.js";

const addresses = (last: number) => `address: [10.66.0.${last}, "fd66::${last}"]\nprograms: true\n`;

/** A server that ends with its client, which is tried until it listens. */
async function meets(
  server: Daemon,
  serves: readonly string[],
  client: Daemon,
  asks: readonly string[],
): Promise<void> {
  const serving = run(server, serves);
  await eventually(async () => {
    const { status, output } = await run(client, asks).ended;
    expect(status, `${output}${serving.output()}`).toBe(0);
  });
  expect((await serving.ended).status, serving.output()).toBe(0);
}

describeLive("addresses of programs", () => {
  it("are of either version of IP", async () => {
    const { a, b } = await twoNics(addresses);
    await meets(b, ["rping", "-s", "-a", "fd66::2", "-C", "3"], a, ["rping", "-c", "-a", "fd66::2", "-V", "-C", "3"]);
    await meets(b, ["rping", "-s", "-a", "10.66.0.2", "-C", "3"], a, ["rping", "-c", "-a", "10.66.0.2", "-C", "3"]);
    await meets(b, ["ucmatose", "-b", "fd66::2"], a, ["ucmatose", "-s", "fd66::2"]);
    await meets(b, ["udaddy", "-b", "fd66::2"], a, ["udaddy", "-s", "fd66::2"]);
    // On all of them.
    await meets(b, ["udaddy", "-b", "::"], a, ["udaddy", "-s", "10.66.0.2"]);
    await meets(b, ["ucmatose", "-b", "::"], a, ["ucmatose", "-s", "fd66::2", "-b", "fd66::1"]);
  });
});

/** Links with a delay, and rates that change, of a switch daemon on real frames. */
import { expect, it } from "vitest";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { network, startSwitch } from "./daemons.js";

describeLive("weir switch with a delay line", () => {
  it("holds what arrives for as long, and changes rates when their time has come", async () => {
    const net = await network();
    const more = `changes:
  - { at: 300ms, port: b, priority: 0, rate: 5Mbps }
  - { at: 600ms, port: b, priority: 0, rate: unlimited }
`;
    const bridge = await startSwitch(net, { port: "rate: 1Gbps, delay: 25ms", more });
    const { stdout } = await net.namespace("a").run("ping", ["-q", "-c", "10", "-i", "0.1", "10.66.0.2"]);
    expect(stdout).toContain("10 received");
    // The delay is there and back.
    expect(Number(/= ([\d.]+)\//.exec(stdout)?.[1])).toBeGreaterThanOrEqual(50);
    const changed = () => bridge.log().filter(({ msg }) => msg === "rate changed");
    const both = [expect.objectContaining({ port: "b", rate: 5e6 }), expect.objectContaining({ port: "b", rate: 0 })];
    await eventually(() => expect(changed()).toEqual(both));
    // SIGHUP begins anew.
    bridge.child.kill("SIGHUP");
    await eventually(() => expect(changed()).toEqual([...both, ...both]));
    bridge.child.kill("SIGTERM");
    expect((await bridge.finished).status).toBe(0);
  });
});

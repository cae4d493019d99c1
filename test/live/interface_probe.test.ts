/** Interfaces of this machine's making, as the native core sees them: by kind, by setting, in other namespaces. */
import { readlinkSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { NetworkNamespace } from "../../src/host/namespace.js";
import { macControl } from "../../src/host/port_probe.js";
import type { NativeAddon } from "../../src/native/types.js";
import { lacking } from "../needs.js";
import { describeUnless, nativeCore } from "../obstacles.js";
import { describeLive, liveObstacle } from "./capability.js";

async function namespace(...lines: string[]): Promise<NetworkNamespace> {
  const made = await NetworkNamespace.create();
  onTestFinished(() => made.close());
  await made.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  return made;
}

const addon = nativeCore<NativeAddon>();

describeLive("a probe of interfaces", () => {
  it("tells kinds and members apart, and what they are like", async () => {
    const { path } = await namespace(
      "link add v0 mtu 9000 type veth peer name v1",
      "link add br0 type bridge",
      "link set v1 master br0",
      "tuntap add t0 mode tap",
      "link set v0 address 02:57:00:00:00:0a up",
      "link set v1 up",
      "address add 10.88.0.1/24 dev br0",
    );
    const home = readlinkSync("/proc/self/ns/net");
    const v0 = addon.probeInterface("v0", path);
    expect(v0).toMatchObject({
      kind: "veth",
      driver: "veth",
      master: "",
      loopback: false,
      up: true,
      running: true,
      mtu: 9000,
      mac: 0x02_57_00_00_00_0a,
      addressed: false,
      speed: 10e9,
      receive_queues: 1,
      xdp_attached: "none",
    });
    expect(addon.probeInterface("v1", path)).toMatchObject({ kind: "veth", master: "br0", master_kind: "bridge" });
    expect(addon.probeInterface("br0", path)).toMatchObject({ kind: "bridge", up: false, addressed: true });
    expect(addon.probeInterface("t0", path)).toMatchObject({ kind: "tun", driver: "tun" });
    expect(addon.probeInterface("lo", path)).toMatchObject({ kind: "", loopback: true, up: false });
    expect(addon.probeInterface("lo")).toMatchObject({ loopback: true, mtu: 65_536 });
    expect(readlinkSync("/proc/self/ns/net")).toBe(home);
    const reaches = ["v0", "br0", "t0"].map((name) => macControl(addon.probeInterface(name, path)).reaches);
    expect(reaches).toEqual(["yes", "no", "yes"]);
  });

  it("names what is not there", async () => {
    const { path } = await namespace();
    const caught = (action: () => unknown) => {
      try {
        action();
      } catch (error) {
        return error;
      }
      return undefined;
    };
    expect(caught(() => addon.probeInterface("v9", path))).toMatchObject({
      code: "ENODEV",
      message: "there is no interface v9: No such device",
    });
    expect(caught(() => addon.probeInterface("lo", "/nonexistent/ns"))).toMatchObject({ code: "ENOENT" });
  });
});

describeUnless(liveObstacle() ?? lacking("ethtool"), "a probe of an interface that is changed", () => {
  it("follows what is changed: offloads, queues", async () => {
    const own = await namespace("link add v0 numrxqueues 4 numtxqueues 2 type veth peer name v1", "link set v0 up");
    const { offloads, receive_queues, transmit_queues } = addon.probeInterface("v0", own.path);
    expect({ receive_queues, transmit_queues }).toEqual({ receive_queues: 4, transmit_queues: 2 });
    expect(offloads).toMatchObject({ tso: true, gso: true, gro: false, lro: false, tx: true, rx: true, rxvlan: true });
    await own.run("ethtool", ["-K", "v0", "tso", "off", "gro", "on", "tx", "off", "rxvlan", "off"]);
    const after = addon.probeInterface("v0", own.path).offloads;
    expect(after).toMatchObject({ tso: false, gso: true, gro: true, tx: false, rx: true, rxvlan: false });
  });
});

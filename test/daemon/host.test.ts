/** Facts that a daemon learns of its host, and requests that it makes of it. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLog } from "../../src/daemon/log.js";
import { serviceNotifier } from "../../src/daemon/notify.js";
import { inspectInterface, kernelAddresses } from "../../src/host/interface.js";
import { loadAddon } from "../../src/native/addon.js";
import { KernelPort } from "../../src/native/kernel_port.js";
import type { NativeAddon } from "../../src/native/types.js";
import { liveObstacle } from "../live/capability.js";
import { lacking } from "../needs.js";
import { itUnless, nativeObstacle, skipWhere } from "../obstacles.js";
import { FakeAddon } from "./fake_addon.js";

describe("interfaces", () => {
  skipWhere(lacking("iproute2"));

  it("are looked up in the kernel", () => expect(inspectInterface("lo", undefined)).toEqual({ mtu: 65_536, mac: 0 }));

  it("that are not there are named, with the way to list them", () => {
    expect(() => inspectInterface("weir-none", undefined)).toThrow("there is no interface weir-none");
    expect(() => inspectInterface("lo", "/nonexistent/ns")).toThrow(
      /^cannot enter the network namespace \/nonexistent\/ns/,
    );
  });

  itUnless(liveObstacle(), "are looked up in namespaces by path", () => {
    expect(inspectInterface("lo", "/proc/self/ns/net")).toEqual(inspectInterface("lo", undefined));
  });

  it("tell which addresses the kernel has", () => {
    expect(kernelAddresses(["192.0.2.1", "127.0.0.1"], "lo", undefined)).toEqual(["127.0.0.1"]);
  });
});

describe("the kernel's RoCEv2 port", () => {
  itUnless(nativeObstacle(), "is held, so that nobody answers for it", async () => {
    const addon = loadAddon<NativeAddon>();
    const held = new KernelPort(addon, "127.0.0.9", undefined);
    onTestFinished(() => held.close());
    // A connected UDP socket would be told of ICMP port unreachable by its next send.
    const client = createSocket("udp4");
    onTestFinished(() => void client.close());
    client.connect(4791, "127.0.0.9");
    await once(client, "connect");
    const errors: Error[] = [];
    client.on("error", (error) => errors.push(error));
    for (let i = 0; i < 3; i++) await new Promise((resolve) => client.send("x", resolve));
    expect(errors).toEqual([]);
    expect(() => new KernelPort(addon, "127.0.0.9", undefined)).toThrow(
      "UDP port 4791 of 127.0.0.9: Address already in use",
    );
    held.close();
    new KernelPort(addon, "127.0.0.9", undefined).close();
    expect(() => new KernelPort(addon, "192.0.2.1", undefined)).toThrow("Cannot assign requested address");
  });
});

describe("logs", () => {
  const written = (isTTY: boolean) => {
    const lines: string[] = [];
    const log = createLog("sw0", { isTTY, write: (text) => void lines.push(text) });
    log.warn({ port: "a", tries: 2 }, "interface is down or gone");
    return lines.join("");
  };

  it("are one JSON object per line", () => {
    const text = written(false);
    expect(text.endsWith("\n")).toBe(true);
    expect(JSON.parse(text)).toEqual({
      level: "warn",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      daemon: "sw0",
      pid: process.pid,
      port: "a",
      tries: 2,
      msg: "interface is down or gone",
    });
  });

  it("are plain lines at a terminal", () => {
    expect(written(true)).toMatch(/^\d\d:\d\d:\d\d warn {2}interface is down or gone port=a tries=2\n$/);
  });
});

describe("the service manager", () => {
  it("is told what happens, where there is one", () => {
    const addon = new FakeAddon();
    serviceNotifier(addon, "/run/notify")("READY=1", "MAINPID=7");
    serviceNotifier(addon, undefined)("READY=1");
    serviceNotifier(addon, "")("READY=1");
    expect(addon.notified).toEqual(["READY=1\nMAINPID=7"]);
  });
});

/** A switch as a config_db.json of SONiC has it, between ordinary namespaces. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { network, ping, weir } from "./daemons.js";
import { folder } from "./weir.js";

const kExample = new URL("../../examples/sonic/config_db.json", import.meta.url);

describeLive("weir switch --sonic", () => {
  it("carries traffic by the names and thresholds of the file, and takes others on SIGHUP", async () => {
    const net = await network();
    const path = folder();
    const [file, socket] = [join(path, "config_db.json"), join(path, "leaf1.sock")];
    const text = readFileSync(kExample, "utf8");
    writeFileSync(file, text);
    const { path: inside } = net.namespace("sw");
    const set = ["metrics=false", `control=${socket}`, `ports.0.namespace=${inside}`, `ports.1.namespace=${inside}`];
    const options = ["--map", "Ethernet0=a,Ethernet12=b", "--scale", "100", ...set.flatMap((one) => ["--set", one])];
    const running = weir("switch", "--sonic", file, ...options);
    await eventually(async () => ask(socket, "ports"));
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
    const { ports, ecn, pfc_priorities, pfc_watchdog } = await ask(socket, "switch");
    expect(ports.map(({ name, profile, settings }) => [name, profile, settings.buffer.headroom])).toEqual([
      ["Ethernet0", null, 60_000],
      ["Ethernet12", "profile-1", 70_000],
    ]);
    expect({ ecn, pfc_priorities, pfc_watchdog }).toMatchObject({
      ecn: { enabled: true, kmin: 200_000, priorities: [3] },
      pfc_priorities: [3],
      pfc_watchdog: { enabled: true, detection_time: 40e9 },
    });

    writeFileSync(file, text.replace('"green_min_threshold": "200000"', '"green_min_threshold": "300000"'));
    running.child.kill("SIGHUP");
    await eventually(async () => expect((await ask(socket, "switch")).ecn.kmin).toBe(300_000));
    writeFileSync(file, "{");
    running.child.kill("SIGHUP");
    await eventually(() => expect(running.log().at(-1)?.error).toContain("is no JSON"));
    expect(await ping(net, 10)).toEqual({ sent: 10, received: 10 });
    running.child.kill("SIGTERM");
    expect((await running.finished).status).toBe(0);
  });
});

/** QCN between daemons: a switch slows a NIC by CNMs, both tell of it, and set points change on reload. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { kViews } from "../../src/watch/show/views.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { daemon, metric, network, portOf, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

describeLive("weir switch and weir nic with QCN", () => {
  it.each(["auto", "af_xdp"])("slow a sender to its receiver's port: backend %s", async (backend) => {
    const net = await network();
    const fields = (rate: string) => `rate: ${rate}, backend: ${backend}`;
    const section = (setPoint: string) => `ecn: { enabled: false }
pfc: { enabled: false }
static_fdb:
  - { mac: "02:57:00:00:00:0a", port: a }
  - { mac: "02:57:00:00:00:0b", port: b }
qcn: { enabled: true, cpQSp: ${setPoint}, cpSampleBase: 10KB }
`;
    const bridge = await startSwitch(net, {
      more: section("20KB"),
      ports: [portOf(net, "a", fields("500Mbps")), portOf(net, "b", fields("50Mbps"))],
    });
    const path = folder();
    const fileOf = (name: "a" | "b") => join(path, `${name}.yaml`);
    const write = (name: "a" | "b", number: number, traffic: string, groups = "{}") =>
      writeFileSync(
        fileOf(name),
        `name: roce-${name}
interface: weir0
namespace: ${net.namespace(name).path}
address: 10.77.0.${number}
rate: 500Mbps
backend: ${backend}
pfc: { enabled: false }
congestion: { algorithm: qcn, profile: netfpga }
qcn: { reaction_point_groups: ${groups} }
peers: [{ name: peer, address: 10.77.0.${3 - number}, mac: "02:57:00:00:00:0${name === "a" ? "b" : "a"}" }]
queue_pairs: [{ name: qp, peer: peer, ${traffic} }]
metrics: false
control: ${join(path, `${name}.sock`)}
`,
      );
    const nic = (name: "a" | "b") => daemon("nic", fileOf(name), join(path, `${name}.sock`));
    write("b", 2, "remote_qpn: 0x11");
    await nic("b");
    write("a", 1, "send: { message: 1MB }");
    const sender = await nic("a");
    await eventually(async () => expect(await count(sender, "rp_cnm_handled")).toBeGreaterThan(20));
    await eventually(async () => {
      const [pair] = await ask(sender.socket, "queue_pairs");
      expect(pair).toMatchObject({ limited: true, alpha: null, priority: 3 });
      expect(pair?.rate).toBeLessThan(150e6);
    });
    const answers = {
      counters: await ask(bridge.socket, "counters"),
      switch: await ask(bridge.socket, "switch"),
    };
    const [grid] = kViews.cp.grids(answers as Parameters<typeof kViews.cp.grids>[0]);
    const row = grid?.rows.find(([port]) => port === "b");
    expect(row?.slice(0, 2)).toEqual(["b", "UC3"]);
    expect(row?.[3]).toBe("20.00");
    expect(Number(row?.[5])).toBeGreaterThan(20);
    const sent = 'weir_switch_cn_cp_transmitted_cnms_total{switch="sw0",port="b",priority="3"}';
    expect(await metric(bridge.url, sent)).toBeGreaterThan(20);

    bridge.write(section("40KB"));
    bridge.child.kill("SIGHUP");
    await eventually(async () => expect((await ask(bridge.socket, "switch")).qcn.cpQSp).toBe(40_000));
    const groups = () => ask(sender.socket, "reaction_points");
    expect(await groups()).toMatchObject([{ priority: 3, rpgAiRate: 500_000, gd: 1 / 128 }]);
    write("a", 1, "send: { message: 1MB }", "{ 3: { rpgGd: 8 } }");
    sender.child.kill("SIGHUP");
    await eventually(async () => {
      expect(await groups()).toMatchObject([{ priority: 3, rpgAiRate: 500_000, gd: 1 / 256 }]);
    });
    const before = await count(sender, "rp_cnm_handled");
    await eventually(async () => expect(await count(sender, "rp_cnm_handled")).toBeGreaterThan(before));
  });
});

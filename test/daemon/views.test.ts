/** The tables of `weir show`, from answers as daemons give them; and the verb on a daemon that answers. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ControlServer } from "../../src/daemon/control_server.js";
import type { ControlRequests, CounterValue } from "../../src/daemon/protocol.js";
import type { View } from "../../src/daemon/views/view.js";
import { kViews } from "../../src/daemon/views/views.js";
import { weir } from "../cli/harness.js";
import { kHardware, kVeth } from "./probes.js";

const zeros = [0, 0, 0, 0, 0, 0, 0, 0];
const port = (name: string, up = true) => ({
  name,
  interface: `veth-${name}`,
  namespace: null,
  mac: "02:00:00:00:00:01",
  mtu: 1500,
  rate: name === "a" ? 1e9 : 0,
  up,
  recoveries: 0,
  interface_mtu: name === "a" ? 9000 : 1500,
  mtu_changes: 0,
  receive: "af_packet" as const,
  transmit: name === "a" ? ("af_xdp" as const) : ("af_packet" as const),
  xdp_mode: null,
  backend_reason: name === "a" ? "a veth that is shaped" : "as configured",
  pfc: name === "a" ? ("works" as const) : ("not possible here" as const),
  mac_control: {
    reaches: name === "a" ? ("yes" as const) : ("no" as const),
    reason: name === "a" ? "a veth passes every frame" : "the MAC obeys PAUSE by itself",
  },
  probe:
    name === "b" ? null : { ...kVeth, mac_control: { reaches: "yes" as const, reason: "a veth passes every frame" } },
});
const count = (name: string, labels: Record<string, string>, value: number): CounterValue => ({
  name,
  unit: "packets",
  labels,
  value,
});
const onSwitch = (name: string, of: string, value: number) => count(name, { switch: "sw0", port: of }, value);
const inQueue = (name: string, of: string, value: number, priority = "3") =>
  count(name, { switch: "sw0", port: of, priority }, value);

const kSwitch: Partial<ControlRequests> = {
  ports: [port("a"), port("b", false)],
  counters: {
    since: "2026-01-01T00:00:00.000Z",
    at_ns: 0,
    counters: [
      onSwitch("rx_packets", "a", 10),
      onSwitch("rx_bytes", "a", 1000),
      onSwitch("drop_runt", "a", 2),
      onSwitch("drop_no_route", "a", 3),
      onSwitch("tx_packets", "b", 5),
      inQueue("queue_packets", "a", 0),
      inQueue("queue_packets", "b", 200),
      inQueue("queue_bytes", "b", 216_400),
      inQueue("wred_ecn_marked_packets", "b", 3),
      inQueue("cn_cp_transmitted_frames", "b", 200),
      inQueue("cn_cp_transmitted_cnms", "b", 12),
      inQueue("cn_remapped_frames", "a", 4),
      inQueue("queue_watermark_bytes", "b", 61_200),
      inQueue("pg_packets", "a", 200),
      inQueue("pg_watermark_bytes", "a", 50_000),
      inQueue("pfc_rx_packets", "b", 4),
      inQueue("pfc_tx_packets", "a", 7),
      inQueue("pfc_rx_pause_duration", "b", 2.5e6),
    ],
  },
  switch: {
    name: "sw0",
    pfc_priorities: [3],
    ecn: { enabled: true, kmin: 5000, kmax: 200_000, pmax: 0.01, priorities: [3] },
    qcn: { enabled: true, priorities: [3], cpQSp: 26_000, cpWeight: 1, cpSampleBase: 150_000 },
    buffer: { total: 12e6, shared: 11e6, occupied: 3000, pfc_threshold: 10e6 },
    ports: [
      {
        ...port("a"),
        queue_bytes: zeros,
        ingress_bytes: zeros.with(3, 3000),
        headroom_bytes: zeros,
        paused: 0,
        pausing: 8,
      },
      {
        ...port("b"),
        queue_bytes: zeros.with(3, 1500),
        ingress_bytes: zeros,
        headroom_bytes: zeros,
        paused: 8,
        pausing: 0,
      },
    ],
  },
  fdb: [
    { mac: "02:00:00:00:00:01", vlan: 0, ports: ["a"], kind: "learned", expires_in_s: 12.4 },
    { mac: "02:00:00:00:00:02", vlan: 7, ports: ["a", "b"], kind: "static", expires_in_s: null },
  ],
};

const nic = (name: string, value: number) => count(name, { device: "roce0" }, value);
const kNic: Partial<ControlRequests> = {
  ports: [port("eth1")],
  counters: {
    since: "",
    at_ns: 0,
    counters: [
      nic("tx_packets", 100),
      nic("np_cnp_sent", 1),
      nic("rp_cnp_handled", 2),
      nic("rp_cnm_handled", 21),
      nic("rp_cnm_unknown_flow", 1),
      nic("rp_cnm_truncated", 0),
      count("rp_port_pri_created_rps", { device: "roce0", priority: "3" }, 5),
      count("rp_port_pri_centiseconds", { device: "roce0", priority: "3" }, 150),
      count("rx_prio_pause", { device: "roce0", priority: "3" }, 9),
      count("tx_packets", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 77),
    ],
  },
  queue_pairs: [
    {
      name: "to-b",
      qpn: 17,
      remote_qpn: 18,
      peer: "b",
      priority: 3,
      state: "ready",
      limited: true,
      rate: 4e8,
      target_rate: 5e8,
      alpha: 0.25,
      stage: "fast_recovery",
    },
  ],
};

const rows = (view: View, answers: Partial<ControlRequests>) =>
  view.grids?.(answers as ControlRequests).map((grid) => grid.rows) ?? [];

describe("of a switch", () => {
  it("counters add up drops, and tell their reasons", () => {
    expect(rows(kViews.counters, kSwitch)).toEqual([
      [
        ["a", "U", "10", "1000", "5", "0", "0", "0"],
        ["b", "D", "0", "0", "0", "5", "0", "0"],
      ],
      [
        ["a", "runt", "2"],
        ["a", "no_route", "3"],
      ],
    ]);
  });

  it("pfc has SONiC's shape: one row per port, one column per priority", () => {
    const [received, sent, paused] = rows(kViews.pfc, kSwitch);
    expect(kViews.pfc.grids(kSwitch as ControlRequests)[0]?.head).toEqual([
      "Port Rx",
      "PFC0",
      "PFC1",
      "PFC2",
      "PFC3",
      "PFC4",
      "PFC5",
      "PFC6",
      "PFC7",
    ]);
    expect(received?.[1]).toEqual(["b", "0", "0", "0", "4", "0", "0", "0", "0"]);
    expect(sent?.[0]).toEqual(["a", "0", "0", "0", "7", "0", "0", "0", "0"]);
    expect(paused?.[1]).toEqual(["b", "0", "0", "0", "2.50", "0", "0", "0", "0"]);
  });

  it("ecn and queue show the queues that carried anything", () => {
    expect(rows(kViews.ecn, kSwitch)).toEqual([[["b", "UC3", "3", "200", "1.50%"]]]);
    expect(rows(kViews.queue, kSwitch)).toEqual([[["b", "UC3", "200", "216400", "3", "1.50", "61.20"]]]);
  });

  it("cp shows every congestion point with its set point", () => {
    expect(rows(kViews.cp, kSwitch)).toEqual([
      [
        ["a", "UC3", "0.00", "26.00", "0", "0", "0", "4", "0"],
        ["b", "UC3", "1.50", "26.00", "200", "12", "0", "0", "0"],
      ],
    ]);
  });

  it("buffer shows the pool, and priority groups with their pauses", () => {
    expect(rows(kViews.buffer, kSwitch)).toEqual([
      [["12000.00", "3.00", "11000.00", "10000.00"]],
      [["a", "PG3", "3.00", "0.00", "50.00", "0.00", "0", "yes"]],
    ]);
  });

  it("pfc names the ports where it does not work", () => {
    expect(rows(kViews.pfc, kSwitch)[3]).toEqual([["b", "not possible here", "the MAC obeys PAUSE by itself"]]);
  });

  it("fdb and ports", () => {
    expect(rows(kViews.fdb, kSwitch)).toEqual([
      [
        ["-", "02:00:00:00:00:01", "a", "Dynamic", "12"],
        ["7", "02:00:00:00:00:02", "a,b", "Static", "-"],
      ],
    ]);
    const offloads = "tso gso tx rx txvlan rxvlan";
    expect(rows(kViews.ports, kSwitch)).toEqual([
      [
        ["a", "veth-a", "-", "up", "02:00:00:00:00:01", "0", "1.000", "1500 (interface 9000)"],
        ["b", "veth-b", "-", "down", "02:00:00:00:00:01", "0", "unlimited", "1500"],
      ],
      [
        ["a", "veth", "10 Gb/s", "1/1", "-", "native, several buffers", offloads],
        ["b", "unknown", "-", "-", "-", "-", "-"],
      ],
      [
        ["a", "af_packet", "af_xdp", "a veth that is shaped"],
        ["b", "af_packet", "af_packet", "as configured"],
      ],
      [
        ["a", "works", "arrive", "a veth passes every frame"],
        ["b", "not possible here", "do not arrive", "the MAC obeys PAUSE by itself"],
      ],
    ]);
  });

  it("ports tell the mode of XDP, and what hardware is like", () => {
    const mac_control = { reaches: "unlikely", reason: "" } as const;
    const probe = { ...kHardware, mac_control };
    const ports = [{ ...port("a"), probe, mac_control, receive: "af_xdp" as const, xdp_mode: "native" as const }];
    const [, interfaces, backends, pfc] = rows(kViews.ports, { ports });
    expect(interfaces?.[0]?.slice(1, 6)).toEqual([
      "hardware (ice, 0000:03:00.0)",
      "100 Gb/s",
      "1/1",
      "2048/256",
      "native, zero-copy, several buffers",
    ]);
    expect(backends?.[0]?.slice(1, 3)).toEqual(["af_xdp (native)", "af_xdp"]);
    expect(pfc?.[0]?.[2]).toBe("unlikely");
  });
});

describe("of a NIC", () => {
  it("counters are its own, not its queue pairs'", () => {
    expect(rows(kViews.counters, kNic)).toEqual([
      [
        ["tx_packets", "100", "packets"],
        ["np_cnp_sent", "1", "packets"],
        ["rp_cnp_handled", "2", "packets"],
        ["rp_cnm_handled", "21", "packets"],
        ["rp_cnm_unknown_flow", "1", "packets"],
        ["rp_cnm_truncated", "0", "packets"],
      ],
    ]);
  });

  it("rp shows rates, reaction points, and what became of CNMs", () => {
    expect(rows(kViews.rp, kNic)).toEqual([
      [["to-b", "3", "yes", "fast_recovery", "0.400", "0.500"]],
      [["3", "5", "1.50"]],
      [
        ["handled", "21"],
        ["unknown_flow", "1"],
      ],
    ]);
  });

  it("qp has no alpha under QCN", () => {
    const [pair] = kNic.queue_pairs ?? [];
    if (pair === undefined) throw new Error("no queue pair");
    expect(rows(kViews.qp, { queue_pairs: [{ ...pair, alpha: null }] })[0]?.[0]?.at(-1)).toBe("-");
  });

  it("pfc, ecn and qp", () => {
    expect(rows(kViews.pfc, kNic)[0]).toEqual([["eth1", "0", "0", "0", "9", "0", "0", "0", "0"]]);
    expect(rows(kViews.ecn, kNic)).toEqual([[["0", "1", "2", "0", "0"]]]);
    expect(rows(kViews.qp, kNic)).toEqual([
      [["to-b", "17", "18", "b", "ready", "fast_recovery", "0.400", "0.500", "0.2500"]],
    ]);
  });
});

describe("weir show", () => {
  async function daemon(answers: Partial<ControlRequests>): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), "weir-show-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const server = await ControlServer.open(join(folder, "sw0.sock"), ({ request }) => answers[request as "ports"]);
    onTestFinished(() => server.close());
    return server.path;
  }

  it("draws tables", async () => {
    const socket = await daemon(kSwitch);
    const { status, stdout } = await weir(["show", "fdb", "--socket", socket]);
    expect(status).toBe(0);
    expect(stdout).toBe(
      [
        "Forwarding table, 2 entries",
        "Vlan  MacAddress         Port  Type     Ages in s",
        "----  -----------------  ----  -------  ---------",
        "-     02:00:00:00:00:01  a     Dynamic         12",
        "7     02:00:00:00:00:02  a,b   Static           -",
        "",
      ].join("\n"),
    );
  });

  it("gives JSON of what it asked for", async () => {
    const socket = await daemon(kSwitch);
    const { stdout } = await weir(["show", "queue", "--socket", socket, "--json"]);
    expect(JSON.parse(stdout)).toEqual({ counters: kSwitch.counters, switch: kSwitch.switch });
  });

  it("says so when there is nothing to show", async () => {
    const socket = await daemon({ fdb: [] });
    expect((await weir(["show", "fdb", "--socket", socket])).stdout).toBe(
      "Forwarding table, 0 entries: nothing so far\n",
    );
  });

  it("says what it can show, and when nobody answers", async () => {
    const unknown = await weir(["show", "weather"]);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toBe("error: unknown command 'weather'\n(weir show --help lists what there is)\n\n");
    const nobody = await weir(["show", "pfc", "--socket", "/nonexistent/sw0.sock"]);
    expect(nobody).toMatchObject({
      status: 1,
      stderr:
        "error: cannot reach the daemon at /nonexistent/sw0.sock: there is no such socket\n  hint: is it running?\n",
    });
  });

  it("clear asks the daemon to", async () => {
    const socket = await daemon({ clear: { cleared: "2026-01-01T00:00:00.000Z" } });
    const { status, stdout } = await weir(["clear", "counters", "--socket", socket]);
    expect([status, stdout]).toEqual([0, "counters cleared at 2026-01-01T00:00:00.000Z\n"]);
  });
});

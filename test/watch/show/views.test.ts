/** The tables of `weir show`, from answers as daemons give them; and the verb on a daemon that answers. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ControlServer } from "../../../src/device/control_server.js";
import type {
  ControlRequests,
  CounterValue,
  DcbxPortReport,
  DcbxReport,
  SwitchReport,
} from "../../../src/device/protocol.js";
import type { View } from "../../../src/watch/show/view.js";
import { kViews } from "../../../src/watch/show/views.js";
import { weir } from "../../cli/harness.js";
import { kHardware } from "../../daemon/probes.js";
import { count, kNic, kSwitch, port } from "./answers.js";

const rows = (view: View, answers: Partial<ControlRequests>) =>
  view.grids?.(answers as ControlRequests).map((grid) => grid.rows) ?? [];

const counting = (answers: Partial<ControlRequests>, counters: CounterValue[]): Partial<ControlRequests> => ({
  ...answers,
  counters: { since: "", at_ns: 0, counters },
});

describe("of a switch", () => {
  it("counters add up drops, and tell their reasons", () => {
    expect(rows(kViews.counters, kSwitch)).toEqual([
      [
        ["a", "U", "10", "1000", "21", "7", "0", "0", "0", "0"],
        ["b", "D", "0", "0", "0", "0", "5", "0", "6", "0"],
      ],
      [
        ["a", "runt", "2"],
        ["a", "no_route", "3"],
        ["a", "storm_broadcast", "12"],
        ["a", "vlan_untagged", "3"],
        ["a", "vlan_egress", "1"],
        ["a", "host_rx_overrun", "7"],
        ["b", "host_tx_errors", "2"],
        ["b", "tx_port_down", "4"],
      ],
    ]);
  });

  it("counters have no drops where frames were sent live", () => {
    const live = count("host_tx_live", { switch: "sw0", port: "b" }, 100);
    const [ports, drops] = rows(kViews.counters, counting(kSwitch, [live]));
    expect(ports?.[1]?.[8]).toBe("0");
    expect(drops).toEqual([]);
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

  it("telemetry shows what each port has written into packets", () => {
    const of = (port: string) => ({ switch: "sw0", port });
    const written = [count("int_written", of("b"), 190), count("int_overflowed", of("b"), 3)];
    expect(rows(kViews.telemetry, counting(kSwitch, written))).toEqual([
      [
        ["a", "0", "0", "0"],
        ["b", "190", "3", "0"],
      ],
    ]);
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
      [["12000.00", "3.00", "70.00", "11000.00", "10000.00"]],
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
      [
        ["a", "1", "8192", "9", "8", "0"],
        ["b", "0", "-", "0", "0", "0"],
      ],
    ]);
    expect(kViews.fdb.json?.(kSwitch as ControlRequests, 0)).toEqual({ fdb: kSwitch.fdb });
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
        ["a", "af_packet", "af_xdp (copied)", "a veth that is shaped"],
        ["b", "af_packet", "af_packet", "as configured"],
      ],
      [
        ["a", "works", "arrive", "a veth passes every frame"],
        ["b", "not possible here", "do not arrive", "the MAC obeys PAUSE by itself"],
      ],
    ]);
  });

  it("storm-control shows limits in the words of SONiC, and what was dropped", () => {
    expect(rows(kViews["storm-control"], kSwitch)[0]?.slice(0, 4)).toEqual([
      ["a", "broadcast", "10 Mb/s", "12"],
      ["a", "unknown-unicast", "unlimited", "0"],
      ["a", "multicast", "unlimited", "0"],
      ["b", "broadcast", "unlimited", "0"],
    ]);
  });

  it("vlan shows members by VLAN, and what was dropped because of them", () => {
    expect(rows(kViews.vlan, kSwitch)).toEqual([
      [
        ["10", "a", "untagged"],
        ["", "b", "tagged"],
        ["20", "a", "tagged"],
      ],
      [
        ["a", "3", "0", "1"],
        ["b", "0", "0", "0"],
      ],
    ]);
  });

  it("pfcwd shows which queues are in a storm, and what that cost", () => {
    expect(rows(kViews.pfcwd, kSwitch)[0]).toEqual([
      ["a", "UC3", "operational", "0/0", "0/0", "0"],
      ["b", "UC3", "stormed", "2/1", "200/17", "5"],
    ]);
    const report = kSwitch.switch as SwitchReport;
    const off = { ...report, pfc_watchdog: { ...report.pfc_watchdog, enabled: false } };
    expect(rows(kViews.pfcwd, { ...kSwitch, switch: off })[0]).toEqual([]);
  });

  it("lldp has a row for each neighbour, whatever that is called, and its counts", () => {
    expect(rows(kViews.lldp, kSwitch)).toEqual([
      [["a", "host", "02:00:00:00:00:02", "eth0?[2J", "bridge station", "100"]],
      [
        ["a", "5", "3", "0", "1", "2", "4", "0", "0"],
        ["b", "5", "0", "0", "0", "0", "0", "0", "0"],
      ],
    ]);
    expect(kViews.lldp.grids(kNic as ControlRequests).map(({ title }) => title)).toEqual([
      "LLDP neighbours off",
      "LLDP frames off",
    ]);
  });

  it("dcbx shows both ends, what is in use, and what does not fit", () => {
    const [ports, ets, congestion] = rows(kViews.dcbx, kSwitch);
    expect(ports).toEqual([
      ["a", "host", "yes", "no", "3", "none", "none (peer's)", "3", "5", "roce-priority mismatch"],
      ["b", "-", "no", "-", "3", "-", "3", "3", "-", "no peer"],
    ]);
    // A peer that says nothing of PFC and of RoCEv2's priority cannot be at odds with this end.
    const { enabled, ports: all } = kSwitch.dcbx as DcbxReport;
    const silent = all.map((port) => ({
      ...port,
      peer: port.peer && { ...port.peer, pfc: undefined },
      peer_roce_priority: null,
      mismatches: [],
    }));
    const found = rows(kViews.dcbx, { ...kSwitch, dcbx: { enabled, ports: silent as DcbxPortReport[] } })[0];
    expect(found?.map((row) => row.at(-1))).toEqual(["nothing to compare", "no peer"]);
    const strict = ["strict", "strict"];
    const own = ["60%", ...strict, "40%", ...strict, ...strict];
    expect(ets).toEqual([
      ["a", "own", ...own],
      ["a", "peer recommends", "60%/2", "60%/2", "strict", ...Array(5).fill("40%/5")],
      ["a", "in use (own)", ...own],
      ["b", "own", ...own],
      ["b", "in use (own)", ...own],
    ]);
    expect(congestion).toEqual([["a", "3", "interior"]]);
    const [a] = kSwitch.dcbx?.ports ?? [];
    const several = { dcbx: { enabled: true, ports: [{ ...(a as NonNullable<typeof a>), peers: 2 }] } };
    expect(rows(kViews.dcbx, several)[0]?.[0]?.at(-1)).toBe("2 peers");
  });

  it("ports tell of frames that do not pass", () => {
    const ports = [port("a"), { ...port("b"), tx_stalled: true }, { ...port("c"), rx_stuck: true, tx_stalled: true }];
    expect(rows(kViews.ports, { ports })[0]?.map((row) => row[3])).toEqual([
      "up",
      "up, tx stalled",
      "up, tx stalled, rx stuck",
    ]);
  });

  it("ports tell the mode of XDP, and what hardware is like", () => {
    const mac_control = { reaches: "unlikely", reason: "" } as const;
    const probe = { ...kHardware, mac_control };
    const xdp = {
      receive: "af_xdp",
      xdp_mode: "native",
      xdp_queues: 2,
      rx_zero_copy: true,
      tx_zero_copy: true,
    } as const;
    const ports = [{ ...port("a"), probe, mac_control, ...xdp }];
    const [, interfaces, backends, pfc] = rows(kViews.ports, { ports });
    expect(interfaces?.[0]?.slice(1, 6)).toEqual([
      "hardware (ice, 0000:03:00.0)",
      "100 Gb/s",
      "1/1",
      "2048/256",
      "native, zero-copy, several buffers",
    ]);
    expect(backends?.[0]?.slice(1, 3)).toEqual(["af_xdp (native, 2 queues, zero copy)", "af_xdp (zero copy)"]);
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
      [["3", "qcn", "100", "15 ms", "150 KB", "5", "5 Mb/s", "50 Mb/s", "port", "5 Mb/s", "1/128", "50%"]],
      [
        ["handled", "21"],
        ["unknown_flow", "1"],
      ],
    ]);
  });

  it("qp has no rate of one that has sent nothing", () => {
    const [pair] = kNic.queue_pairs ?? [];
    if (pair === undefined) throw new Error("no queue pair");
    expect(rows(kViews.qp, { queue_pairs: [{ ...pair, rate: 0 }] })[0]?.[0]?.slice(-4)).toEqual(["-", "-", "-", "-"]);
  });

  it("telemetry shows what acknowledgements have brought back", () => {
    const back = [
      count("rx_telemetry", { device: "roce0" }, 80),
      count("rx_telemetry_unwritten", { device: "roce0" }, 5),
    ];
    expect(rows(kViews.telemetry, counting(kNic, back))).toEqual([[["eth1", "80", "5", "0", "0"]]]);
  });

  it("qp has no alpha under QCN", () => {
    const [pair] = kNic.queue_pairs ?? [];
    if (pair === undefined) throw new Error("no queue pair");
    expect(rows(kViews.qp, { queue_pairs: [{ ...pair, alpha: null, window: null }] })[0]?.[0]?.slice(-2)).toEqual([
      "-",
      "-",
    ]);
  });

  it("pfc, ecn and qp", () => {
    expect(rows(kViews.pfc, kNic)[0]).toEqual([["eth1", "0", "0", "0", "9", "0", "0", "0", "0"]]);
    expect(rows(kViews.ecn, kNic)).toEqual([[["0", "1", "2", "0", "0"]]]);
    expect(rows(kViews.qp, kNic)).toEqual([
      [["to-b", "-", "stream", "17", "18", "b", "ready", "fast_recovery", "0.400", "0.500", "12.34", "0.2500"]],
    ]);
  });

  it("qp and programs name programs, also those of another pid namespace", () => {
    const [pair] = kNic.queue_pairs ?? [];
    const [program] = kNic.programs ?? [];
    if (pair === undefined || program === undefined) throw new Error("nobody");
    const own = { ...pair, name: "ib_write_bw/99", qpn: 99, transport: "rc", qp_state: "rts", program } as const;
    expect(rows(kViews.qp, { queue_pairs: [own] })[0]?.[0]?.slice(0, 7)).toEqual([
      ...["ib_write_bw/99", "812", "rc", "99", "18", "b", "rts"],
    ]);
    const hidden = { ...program, pid: 0, command: "" };
    expect(rows(kViews.programs, { programs: [program, hidden] })[0]).toEqual([
      ["812", "ib_write_bw", "1000", "2", "90", "92160", "3", "192", "1", "0"],
      ["?", "-", "1000", "2", "90", "92160", "3", "192", "1", "0"],
    ]);
  });
});

describe("weir show", () => {
  async function daemon(answers: Partial<ControlRequests>): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), "weir-show-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const all = { status: kSwitch.status, ...answers };
    const server = await ControlServer.open(join(folder, "sw0.sock"), ({ request }) => all[request as "ports"]);
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
        "Learned addresses by port",
        "Port  Learned  Limit  Evicted  Over limit  No room",
        "----  -------  -----  -------  ----------  -------",
        "a           1   8192        9           8        0",
        "b           0      -        0           0        0",
        "",
      ].join("\n"),
    );
  });

  it("gives JSON of what it asked for", async () => {
    const socket = await daemon(kSwitch);
    const { stdout } = await weir(["show", "queue", "--socket", socket, "--json"]);
    const counters = kSwitch.counters?.counters.map(({ meaning: _, ...counter }) => counter);
    expect(JSON.parse(stdout)).toEqual({ counters: { ...kSwitch.counters, counters }, switch: kSwitch.switch });
  });

  it("says so when there is nothing to show", async () => {
    const socket = await daemon({ counters: { since: "", at_ns: 0, counters: [] } });
    expect((await weir(["show", "ecn", "--socket", socket])).stdout).toBe("ECN: nothing so far\n");
  });

  it("says what it can show, and when nobody answers", async () => {
    const unknown = await weir(["show", "weather"]);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toBe("error: unknown command 'weather'\n(weir show --help lists what there is)\n");
    const nobody = await weir(["show", "pfc", "--socket", "/nonexistent/sw0.sock"]);
    expect(nobody).toMatchObject({
      status: 1,
      stderr:
        "error: cannot reach the daemon at /nonexistent/sw0.sock: there is no such socket\n  hint: is it running?\n",
    });
  });

  it("knows mistyped words from names", async () => {
    const socket = await daemon(kSwitch);
    const show = (...words: string[]) => weir(["show", ...words, "--socket", socket]);
    expect((await show("queue", "sw0")).status).toBe(0);
    const words = "words behind queue: counters, wredcounters, watermark";
    expect(await show("queue", "wredcounter")).toMatchObject({
      status: 2,
      stdout: "",
      stderr: `error: no daemon or lab called wredcounter is running\n  hint: did you mean wredcounters? ${words}\n`,
    });
    expect(await show("queue", "wredcounter", "sw0")).toMatchObject({
      status: 2,
      stderr: `error: queue takes one name, not wredcounter sw0\n  hint: did you mean wredcounters? ${words}\n`,
    });
    expect(await show("queue", "sw9")).toMatchObject({
      status: 1,
      stderr: `error: no daemon or lab called sw9 is running\n  hint: running: sw0; ${words}\n`,
    });
    expect(await show("ports", "sw9")).toMatchObject({
      status: 1,
      stderr: "error: no daemon or lab called sw9 is running\n  hint: running: sw0\n",
    });
    expect(await show("ports", "sw0", "sw1")).toMatchObject({
      status: 2,
      stderr: "error: ports takes one name, not sw0 sw1\n",
    });
    expect(await show("rdma", "stat")).toMatchObject({
      status: 2,
      stderr: "error: unknown command 'stat'\n(one of link, res, statistic follows)\n",
    });
  });

  it("clear asks the daemon to", async () => {
    const socket = await daemon({ clear: { cleared: "2026-01-01T00:00:00.000Z" } });
    const { status, stdout } = await weir(["clear", "counters", "--socket", socket]);
    expect([status, stdout]).toEqual([0, "counters cleared at 2026-01-01T00:00:00.000Z\n"]);
  });
});

/** Scrapes of a source that does as told. */
import { describe, expect, it } from "vitest";
import type { ControlRequests } from "../../../src/device/protocol.js";
import { MetricsRegistry, type NicReading, type PortReading } from "../../../src/watch/metrics/registry.js";
import { describedAs } from "../../native/counters.js";
import { histogramOf } from "../../native/histograms.js";
import { kSwitch as kAnswers } from "../show/answers.js";
import { kNic, kSwitch, nic, source, sw, type Told } from "./source.js";

/** Series of an exposition: "name{labels}" with labels sorted, to value. */
async function scrape(registry: MetricsRegistry): Promise<Map<string, number>> {
  const lines = (await registry.scrape()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const [, name, labels, value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const sorted = labels === undefined ? "" : `{${labels.split(",").sort().join(",")}}`;
      return [`${name}${sorted}`, Number(value)];
    }),
  );
}

const kOwn = { transport: "stream", priority: 3, program: null, direct: false } as const;

describe("the registry", () => {
  it("adds what was counted since the scrape before, and never goes back", async () => {
    const told = source([["rx_packets", sw, 10]]);
    const registry = new MetricsRegistry(told.source, kSwitch);
    const name = 'weir_switch_port_rx_packets_total{port="a",switch="sw0"}';
    expect((await scrape(registry)).get(name)).toBe(10);
    told.counters = [["rx_packets", sw, 25]];
    expect((await scrape(registry)).get(name)).toBe(25);
    told.counters = [["rx_packets", sw, 5]];
    expect((await scrape(registry)).get(name)).toBe(25);
    told.counters = [["rx_packets", sw, 7]];
    expect((await scrape(registry)).get(name)).toBe(27);
  });

  it("exposes series from the start, and none before devices live", async () => {
    const told = source([]);
    const registry = new MetricsRegistry(told.source, kSwitch);
    expect([...(await scrape(registry)).keys()].filter((name) => name.startsWith("weir_switch"))).toEqual([]);
    told.counters = [["drop_no_route", sw, 0]];
    const series = await scrape(registry);
    expect(series.get('weir_switch_port_dropped_packets_total{port="a",reason="no_route",switch="sw0"}')).toBe(0);
  });

  it("converts durations: seconds for a switch, microseconds where dashboards expect them", async () => {
    const ofSwitch = source([["pfc_rx_pause_duration", { ...sw, priority: "3" }, 1.5e9]]);
    const one = await scrape(new MetricsRegistry(ofSwitch.source, kSwitch));
    const labels = 'direction="rx",port="a",priority="3",switch="sw0"';
    expect(one.get(`weir_switch_pfc_pause_seconds_total{${labels}}`)).toBeCloseTo(1.5);
    const ofNic = source([["rx_prio_pause_duration", { ...nic, priority: "3" }, 1.5e9]], {
      ports: () => [{ device: "roce0", netdev: "eth1", mac_control: { reaches: "yes" } } as PortReading],
    });
    const two = await scrape(new MetricsRegistry(ofNic.source, kNic));
    const own = 'device="roce0",direction="rx",netdev="eth1",port="1",priority="3"';
    expect(two.get(`rdma_roce_pfc_pause_duration_total{${own}}`)).toBeCloseTo(1.5e6);
  });

  it("lets gauges go down", async () => {
    const told = source([["rp_cur_flows", nic, 4]]);
    const registry = new MetricsRegistry(told.source, kNic);
    await scrape(registry);
    told.counters = [["rp_cur_flows", nic, 1]];
    expect((await scrape(registry)).get('weir_rp_cur_flows{device="roce0",port="1"}')).toBe(1);
  });

  it("leaves queue pairs out unless asked for", async () => {
    const pair = {
      name: "to-b",
      qpn: 0x11,
      remote_qpn: 0x12,
      peer: "b",
      state: "ready",
      limited: true,
      rate: 4e8,
      target_rate: 5e8,
      alpha: 0.25,
      window: 7.5,
      stage: "additive_increase",
      ...kOwn,
    } as const;
    const told = source([["tx_packets", { ...nic, qpn: "0x000011", flow: "to-b" }, 9]], {
      nics: () => [{ device: "roce0", pfc: [3], pairs: [pair], programs: [] }],
    });
    const without = await scrape(new MetricsRegistry(told.source, kNic));
    expect([...without.keys()].filter((name) => name.startsWith("weir_qp_"))).toEqual([]);
    expect(without.get('weir_queue_pairs{device="roce0",port="1"}')).toBe(1);
    expect(without.get('weir_nic_pfc_enabled{device="roce0",port="1",priority="3"}')).toBe(1);
    expect(without.get('weir_nic_pfc_enabled{device="roce0",port="1",priority="4"}')).toBe(0);
    const series = await scrape(new MetricsRegistry(told.source, { ...kNic, queuePairs: Number.POSITIVE_INFINITY }));
    const labels = 'device="roce0",port="1",qp="to-b",qpn="0x000011"';
    expect(series.get(`weir_qp_tx_packets_total{${labels}}`)).toBe(9);
    expect(series.get(`weir_qp_rate_bytes_per_second{${labels}}`)).toBe(5e7);
    expect(series.get(`weir_qp_target_rate_bytes_per_second{${labels}}`)).toBe(62.5e6);
    expect(series.get(`weir_qp_alpha{${labels}}`)).toBe(0.25);
    expect(series.get(`weir_qp_congestion_window_packets{${labels}}`)).toBe(7.5);
    const stages = ["fr", "ai", "hai"].map((stage) => series.get(`weir_qp_rp_stage{${labels},stage="${stage}"}`));
    expect(stages).toEqual([0, 1, 0]);
  });

  it("has series of so many queue pairs as it may, of those that move most, and of no others", async () => {
    const pair = {
      ...kOwn,
      state: "ready",
      limited: false,
      rate: 1e9,
      target_rate: 1e9,
      alpha: 0,
      window: null,
      stage: "fast_recovery",
    } as const;
    const of = (qpn: number) => ({ device: "roce0", qpn: `0x00000${qpn}`, flow: `f${qpn}` });
    const moved = (...bytes: number[]): Told["counters"] =>
      bytes.flatMap((value, i) => [
        ["tx_wire_bytes", of(i + 1), value],
        ["tx_packets", of(i + 1), value / 1000],
      ]);
    const told = source(moved(9000, 2000, 0), {
      nics: () => [
        {
          device: "roce0",
          pfc: [],
          programs: [],
          pairs: [1, 2, 3].map((qpn) => ({ ...pair, name: `f${qpn}`, qpn, remote_qpn: qpn, peer: "b" })),
        },
      ],
    });
    const registry = new MetricsRegistry(told.source, { ...kNic, queuePairs: 2 });
    const shown = async (metric: string) =>
      [...(await scrape(registry))]
        .filter(([name]) => name.startsWith(`${metric}{`))
        .map(([name, value]) => [/qp="(\w+)"/.exec(name)?.[1], value]);
    expect(await shown("weir_qp_tx_packets_total")).toEqual([
      ["f1", 9],
      ["f2", 2],
    ]);
    told.counters = moved(9000, 2000, 50_000);
    expect((await shown("weir_qp_rate_bytes_per_second")).map(([qp]) => qp)).toEqual(["f1", "f3"]);
    // A queue pair that comes back has all that it has counted.
    told.counters = moved(9000, 90_000, 50_000);
    expect(await shown("weir_qp_tx_packets_total")).toEqual([
      ["f3", 50],
      ["f2", 90],
    ]);
    expect(await shown("weir_queue_pairs")).toEqual([[undefined, 3]]);
  });

  it("tells of programs, and of their queue pairs while they are there and if asked to", async () => {
    const pair = {
      ...{ name: "ib_write_bw/99", qpn: 99, remote_qpn: 100, peer: "10.0.0.2", state: "ready", transport: "rc" },
      ...{ limited: true, rate: 8e8, target_rate: 8e8, alpha: 0.5, window: null, stage: "fast_recovery", priority: 3 },
      direct: true,
      program: { pid: 812, uid: 1000, command: "ib_write_bw" },
      counters: { tx_packets: 9, tx_wire_bytes: 9000 },
    } as NicReading["pairs"][number];
    const program = {
      ...{ pid: 812, uid: 1000, command: "ib_write_bw", queue_pairs: 1, tx_packets: 9, tx_bytes: 1, rx_packets: 0 },
      ...{ rx_bytes: 0, drop_program_busy: 4, drop_program_packet: 5 },
    };
    let nics: NicReading[] = [{ device: "roce0", pfc: [], pairs: [pair], programs: [program] }];
    const told = source([["rx_packets", nic, 1]], { nics: () => nics });
    const plain = await scrape(new MetricsRegistry(told.source, kNic));
    expect(plain.get('weir_programs{device="roce0",port="1"}')).toBe(1);
    const named = (series: Map<string, number>) => [...series.keys()].filter((name) => /ib_write_bw|812/.test(name));
    expect(named(plain)).toEqual([]);
    const registry = new MetricsRegistry(told.source, { ...kNic, queuePairs: 1 });
    const asked = await scrape(registry);
    const own = 'device="roce0",port="1",qp="ib_write_bw/99",qpn="0x000063"';
    expect(asked.get(`weir_qp_tx_packets_total{${own}}`)).toBe(9);
    expect(asked.get(`weir_qp_alpha{${own}}`)).toBe(0.5);
    const drops = 'command="ib_write_bw",device="roce0",pid="812",port="1"';
    expect(asked.get(`weir_program_dropped_packets_total{${drops},reason="busy"}`)).toBe(4);
    expect(asked.get(`weir_program_dropped_packets_total{${drops},reason="packet"}`)).toBe(5);
    nics = [{ device: "roce0", pfc: [], pairs: [], programs: [] }];
    expect(named(await scrape(registry))).toEqual([]);
  });

  it("tells of neighbours, and of what does not fit them", async () => {
    const { lldp, dcbx } = kAnswers as Required<Pick<ControlRequests, "lldp" | "dcbx">>;
    const { source: told } = source([], { discovery: () => [{ device: "sw0", lldp, dcbx }] });
    const series = await scrape(new MetricsRegistry(told, kSwitch));
    expect(series.get('weir_lldp_neighbours{device="sw0",port="a"}')).toBe(1);
    expect(series.get('weir_lldp_neighbours{device="sw0",port="b"}')).toBe(0);
    expect(series.get('weir_dcbx_mismatch{device="sw0",of="roce-priority",port="a"}')).toBe(1);
    expect(series.get('weir_dcbx_mismatch{device="sw0",of="pfc",port="a"}')).toBe(0);
    const frames = (what: string) => series.get(`weir_lldp_frames_total{device="sw0",port="a",what="${what}"}`);
    expect(["sent", "received", "discarded", "with_errors"].map(frames)).toEqual([5, 3, 1, 2]);
  });

  it("tells of a lab's devices side by side, queue pairs of one number among them, and how the lab is scaled", async () => {
    const tables = [
      [["rx_packets", { switch: "sw", port: "h1" }, 5]],
      ["h1", "h2"].map((device, i) => ["tx_wire_bytes", { device, qpn: "0x000011", flow: "x" }, 100 * (i + 1)]),
    ] as [string, Record<string, string>, number][][];
    const pair = { qpn: 0x11, remote_qpn: 0x11, state: "ready", limited: false, stage: "fast_recovery" } as const;
    const pairs = [{ ...kOwn, ...pair, name: "x", peer: "r", rate: 8e9, target_rate: 8e9, alpha: null, window: null }];
    const { source: lab } = source([], {
      counters: () =>
        tables.map((own) => ({
          manifest: own.map(([name, labels]) => describedAs(name, labels)),
          value: (i: number) => own[i]?.[2] ?? 0,
        })),
      nics: () => ["h1", "h2"].map((device) => ({ device, pfc: [], pairs, programs: [] })),
      workers: () => ["switches", "nics"].map((name) => ({ name, loopGapNs: 1e6 })),
      scale: () => 40,
    });
    const { reloads: _, ...own } = lab;
    const series = await scrape(new MetricsRegistry(own, { ...kNic, kind: "lab", queuePairs: 1 }));
    expect(series.get('weir_switch_port_rx_packets_total{port="h1",switch="sw"}')).toBe(5);
    const of = (device: string) => `{device="${device}",port="1",qp="x",qpn="0x000011"}`;
    expect(series.get(`weir_qp_tx_wire_bytes_total${of("h2")}`)).toBe(200);
    expect(series.get(`weir_qp_rate_bytes_per_second${of("h2")}`)).toBe(1e9);
    for (const name of ["weir_qp_tx_wire_bytes_total", "weir_qp_rate_bytes_per_second"])
      expect(series.get(`${name}${of("h1")}`)).toBeUndefined();
    expect(series.get('weir_worker_loop_gap_max_seconds{worker="nics"}')).toBe(1e-3);
    expect(series.get("weir_lab_scale")).toBe(40);
    expect([...series.keys()].filter((name) => name.startsWith("weir_reloads"))).toEqual([]);
  });

  it("calls the counters of a NIC as sysfs does too, and as node_exporter does if asked to", async () => {
    const port = {
      device: "roce0",
      netdev: "eth1",
      name: "eth1",
      up: true,
      rate: 10e9,
      transitions: 0,
      interface_mtu: 1500,
      mtu_changes: 0,
      tx_stalled: false,
      rx_stuck: false,
      tx_falls_back: false,
    };
    const told = source(
      [
        ["rx_bytes", nic, 4000],
        ["np_cnp_sent", nic, 7],
      ],
      { ports: () => [{ ...port, mac_control: { reaches: "yes" } }] },
    );
    const own = 'device="roce0",port="1"';
    const names = (series: Map<string, number>) => [...series.keys()].filter((name) => name.startsWith("node_"));
    const plain = await scrape(new MetricsRegistry(told.source, kNic));
    expect(plain.get(`rdma_port_rcv_data_total{${own}}`)).toBe(1000);
    expect(plain.get(`rdma_rx_bytes_total{${own}}`)).toBe(4000);
    const info = [...plain.keys()].find((name) => name.startsWith("rdma_port_info"));
    for (const label of ['netdev="eth1"', 'state="ACTIVE"', 'link_speed="10 Gb/sec"']) expect(info).toContain(label);
    expect(names(plain)).toEqual([]);
    const more = await scrape(new MetricsRegistry(told.source, { ...kNic, nodeInfiniband: true }));
    expect(more.get(`node_infiniband_port_data_received_bytes_total{${own}}`)).toBe(4000);
    expect(more.get(`node_infiniband_np_cnp_packets_sent_total{${own}}`)).toBe(7);
    expect(more.get(`node_infiniband_state_id{${own}}`)).toBe(4);
    expect(more.get(`node_infiniband_rate_bytes_per_second{${own}}`)).toBe(1.25e9);
  });

  it("has histograms of durations in seconds, and of queues by the microseconds that they lasted", async () => {
    const gap = { name: "loop_gap", labels: { worker: "sw0" } } as const;
    const gaps = histogramOf([100, 1], [300, 1], [400, 1], [700, 1]);
    const queue = { name: "queue_length", labels: { ...sw, priority: "3" } } as const;
    const lengths = histogramOf([200, 5500], [1500, 4000], [3000, 2500]);
    const told = source([], {
      histograms: () => [
        { ...gap, ...gaps },
        { ...queue, ...lengths },
        { name: "ecn_to_cnp", labels: nic, ...histogramOf() },
      ],
    });
    const registry = new MetricsRegistry(told.source, kSwitch);
    await scrape(registry);
    const series = await scrape(registry);
    const of = (name: string, labels: string) => series.get(`${name}{${labels}}`);
    expect(of("weir_worker_loop_gap_seconds_bucket", 'le="2.56e-7",worker="sw0"')).toBe(1);
    expect(of("weir_worker_loop_gap_seconds_bucket", 'le="5.12e-7",worker="sw0"')).toBe(3);
    expect(of("weir_worker_loop_gap_seconds_bucket", 'le="+Inf",worker="sw0"')).toBe(4);
    expect(of("weir_worker_loop_gap_seconds_sum", 'worker="sw0"')).toBeCloseTo(1.5e-6);
    expect(of("weir_worker_loop_gap_seconds_count", 'worker="sw0"')).toBe(4);
    const own = 'port="a",priority="3",switch="sw0"';
    expect(of("weir_switch_queue_length_bytes_bucket", `le="1024",${own}`)).toBe(5);
    expect(of("weir_switch_queue_length_bytes_bucket", `le="2048",${own}`)).toBe(9);
    expect(of("weir_switch_queue_length_bytes_count", own)).toBe(12);
    expect(of("weir_switch_queue_length_bytes_sum", own)).toBeCloseTo(14_600);
    expect(of("weir_nic_ecn_to_cnp_seconds_count", 'device="roce0",port="1"')).toBe(0);
    expect(await registry.scrape("openmetrics")).toContain("# TYPE weir_worker_loop_gap_seconds histogram\n");
  });

  it("exposes the same in OpenMetrics, and in Prometheus' format after that", async () => {
    const registry = new MetricsRegistry(source([["rx_packets", sw, 3]]).source, kSwitch);
    for (let i = 0; i < 2; i++) {
      const text = await registry.scrape("openmetrics");
      expect(text).toContain("# TYPE weir_switch_port_rx_packets counter\n");
      expect(text).toContain('\nweir_switch_port_rx_packets_total{switch="sw0",port="a"} 3\n');
      expect(text).toMatch(/\n# EOF\n$/);
    }
    const plain = await registry.scrape();
    expect(plain).toContain("# TYPE weir_switch_port_rx_packets_total counter\n");
    expect(plain).not.toContain("# EOF");
  });

  it("tells occupancy and pauses of a switch, and the daemon's own state", async () => {
    const zeros = [0, 0, 0, 0, 0, 0, 0, 0];
    const passes = { tx_stalled: false, rx_stuck: false };
    const port = {
      device: "sw0",
      netdev: undefined,
      up: true,
      ...passes,
      rate: 0,
      transitions: 0,
      interface_mtu: 9000,
      mtu_changes: 0,
    };
    const told = source([], {
      switches: () => [
        {
          name: "sw0",
          ports: ["a"],
          fdbEntries: 3,
          pfc: [3],
          ecn: { priorities: [3], kmin: 5000, kmax: 200_000 },
          state: {
            buffer: { total: 12e6, shared: 11e6, occupied: 5000, watermark: 70_000, pfc_threshold: 10e6 },
            ports: [
              {
                up: true,
                queue_bytes: zeros.with(3, 1500),
                ingress_bytes: zeros.with(3, 1400),
                headroom_bytes: zeros.with(3, 100),
                paused: 1 << 3,
                pausing: 0,
                pfc_storms: 0,
              },
            ],
          },
        },
      ],
      ports: () => [
        { ...port, name: "a", up: false, rate: 8e9, transitions: 3, mac_control: { reaches: "yes" } },
        { ...port, name: "b", tx_stalled: true, mtu_changes: 2, mac_control: { reaches: "unlikely" } },
        { ...port, name: "c", interface_mtu: null, mac_control: { reaches: "unknown" } },
      ],
      reloads: () => ({ succeeded: 2, failed: 1 }),
    });
    const series = await scrape(new MetricsRegistry(told.source, kSwitch));
    const labels = 'port="a",priority="3",switch="sw0"';
    expect(series.get(`weir_switch_queue_occupancy_bytes{${labels}}`)).toBe(1500);
    expect(series.get(`weir_switch_pg_occupancy_bytes{${labels}}`)).toBe(1400);
    expect(series.get(`weir_switch_pg_xoff_room_occupancy_bytes{${labels}}`)).toBe(100);
    expect(series.get(`weir_switch_pfc_paused{direction="rx",${labels}}`)).toBe(1);
    expect(series.get(`weir_switch_pfc_paused{direction="tx",${labels}}`)).toBe(0);
    expect(series.get('weir_switch_pool_occupancy_bytes{switch="sw0"}')).toBe(5000);
    expect(series.get('weir_switch_pool_watermark_bytes{switch="sw0"}')).toBe(70_000);
    expect(series.get('weir_switch_fdb_entries{switch="sw0"}')).toBe(3);
    expect(series.get('weir_switch_pfc_enabled{priority="3",switch="sw0"}')).toBe(1);
    expect(series.get('weir_switch_pfc_enabled{priority="0",switch="sw0"}')).toBe(0);
    expect(series.get('weir_switch_ecn_min_threshold_bytes{priority="3",switch="sw0"}')).toBe(5000);
    expect(series.get('weir_switch_ecn_max_threshold_bytes{priority="3",switch="sw0"}')).toBe(200_000);
    expect(series.get('weir_switch_ecn_max_threshold_bytes{priority="0",switch="sw0"}')).toBeUndefined();
    expect(series.get('weir_port_rate_bytes_per_second{device="sw0",port="a"}')).toBe(1e9);
    expect(series.get('weir_port_rate_bytes_per_second{device="sw0",port="b"}')).toBeUndefined();
    expect(series.get('weir_port_up{device="sw0",port="a"}')).toBe(0);
    expect(series.get('weir_port_stalled{device="sw0",direction="tx",port="a"}')).toBe(0);
    expect(series.get('weir_port_stalled{device="sw0",direction="tx",port="b"}')).toBe(1);
    expect(series.get('weir_port_stalled{device="sw0",direction="rx",port="b"}')).toBe(0);
    expect(series.get('weir_port_transitions_total{device="sw0",port="a"}')).toBe(3);
    expect(series.get('weir_port_mtu_bytes{device="sw0",port="b"}')).toBe(9000);
    expect(series.get('weir_port_mtu_bytes{device="sw0",port="c"}')).toBeUndefined();
    expect(series.get('weir_port_mtu_changes_total{device="sw0",port="b"}')).toBe(2);
    expect(series.get('weir_port_pfc_possible{device="sw0",port="a"}')).toBe(1);
    expect(series.get('weir_port_pfc_possible{device="sw0",port="b"}')).toBe(0);
    expect(series.get('weir_port_pfc_possible{device="sw0",port="c"}')).toBeUndefined();
    expect(series.get('weir_reloads_total{result="succeeded"}')).toBe(2);
    expect(series.get('weir_reloads_total{result="failed"}')).toBe(1);
    expect(series.get('weir_worker_loop_gap_max_seconds{worker="sw0"}')).toBe(0.0025);
    const build = [...series.keys()].find((name) => name.startsWith("weir_build_info"));
    expect(build).toContain('version="1.2.3"');
    expect(build).toContain(`node="${process.version}"`);
    expect(series.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
  });

  it("has a help line and a type for every metric", async () => {
    const told = source([
      ["rx_packets", sw, 1],
      ["pg_packets", { ...sw, priority: "0" }, 1],
    ]);
    const text = await new MetricsRegistry(told.source, kSwitch).scrape();
    const names = [...text.matchAll(/^([a-z]\w*)/gm)].map(([name]) => name);
    for (const name of names)
      expect(text).toMatch(new RegExp(`# HELP ${name} \\S.*\\n# TYPE ${name} (counter|gauge)\\n`));
  });
});

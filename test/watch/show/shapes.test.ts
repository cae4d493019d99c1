/** Views in the shapes of other tools, to the letter; and those shapes as the tools' own output has them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { onlyPort } from "../../../src/watch/show/port_choice.js";
import { tabulate } from "../../../src/watch/show/tabulate.js";
import type { Answers, View } from "../../../src/watch/show/view.js";
import { kViews } from "../../../src/watch/show/views.js";
import { count, kNic, kSwitch } from "./answers.js";

const nic = kNic as Answers;
const both = kSwitch as Answers;
const b = onlyPort(both, "b");
const show = (view: View, answers: Answers, position = 0) => view.text?.(answers, position);
const lines = (...all: string[]) => all.map((line) => `${line}\n`).join("");
const fixture = (name: string) => readFileSync(join(import.meta.dirname, "fixtures", name), "utf8");

describe("rdma", () => {
  it("link", () => {
    expect(show(kViews["rdma link"], nic)).toBe("link roce0/1 state ACTIVE physical_state LINK_UP netdev veth-eth1 \n");
    const down = { ...nic, ports: [{ ...nic.ports[0], up: false }] } as Answers;
    expect(show(kViews["rdma link"], down)).toBe("link roce0/1 state DOWN physical_state DISABLED netdev veth-eth1 \n");
    expect(kViews["rdma link"].json?.(nic, 0)).toEqual([
      { ifname: "roce0", port: 1, state: "ACTIVE", physical_state: "LINK_UP", netdev: "veth-eth1" },
    ]);
  });

  it("res", () => {
    expect(show(kViews["rdma res"], nic, 2)).toBe("2: roce0: qp 1 \n");
    expect(kViews["rdma res"].json?.(nic, 2)).toEqual([{ ifindex: 2, ifname: "roce0", qp: 1 }]);
  });

  it("res qp: one that only receives is ready to receive", () => {
    expect(show(kViews["rdma res qp"], nic)).toBe("link roce0/1 lqpn 17 rqpn 18 type RC state RTS pid 4711 \n");
    const idle = { ...nic, queue_pairs: nic.queue_pairs.map((pair) => ({ ...pair, state: "idle" as const })) };
    expect(show(kViews["rdma res qp"], idle)).toBe("link roce0/1 lqpn 17 rqpn 18 type RC state RTR pid 4711 \n");
    expect(kViews["rdma res qp"].json?.(nic, 0)).toEqual([
      { ifname: "roce0", port: 1, lqpn: 17, rqpn: 18, type: "RC", state: "RTS", pid: 4711 },
    ]);
  });

  it("statistic: all of the NIC in one line, none by priority or queue pair", () => {
    expect(show(kViews["rdma statistic"], nic)).toBe(
      "link roce0/1 tx_packets 100 np_cnp_sent 1 rp_cnp_handled 2 rp_cnm_handled 21 rp_cnm_unknown_flow 1 rp_cnm_truncated 0 \n",
    );
    expect(kViews["rdma statistic"].json?.(nic, 0)).toMatchObject([{ ifname: "roce0", port: 1, rp_cnm_handled: 21 }]);
  });

  it("res qp: those of programs are theirs", () => {
    const [pair] = nic.queue_pairs;
    const program = { pid: 812, uid: 1000, command: "ib_send_bw" };
    const queue_pairs = [{ ...pair, transport: "ud", qp_state: "init", program }] as typeof nic.queue_pairs;
    expect(show(kViews["rdma res qp"], { ...nic, queue_pairs })).toBe(
      "link roce0/1 lqpn 17 rqpn 18 type UD state INIT pid 812 comm ib_send_bw \n",
    );
  });

  it("statistic qp", () => {
    expect(show(kViews["rdma statistic qp"], nic)).toBe(
      lines("link roce0/1 cntn 17 pid 4711 tx_packets 77 ", "    LQPN: <17>"),
    );
  });
});

describe("dcb", () => {
  it("pfc: requests are sent, indications received", () => {
    expect(show(kViews["dcb pfc"], b)).toBe(
      lines(
        "pfc-cap 8 macsec-bypass off delay 0 ",
        "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off ",
        "requests 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 ",
        "indications 0:0 1:0 2:0 3:4 4:0 5:0 6:0 7:0 ",
      ),
    );
    expect(show(kViews["dcb pfc"], nic)).toContain("indications 0:0 1:0 2:0 3:9 4:0 ");
    expect(kViews["dcb pfc"].json?.(b, 0)).toEqual({
      b: {
        pfc_cap: 8,
        macsec_bypass: false,
        delay: 0,
        prio_pfc: [false, false, false, true, false, false, false, false],
        requests: [0, 0, 0, 0, 0, 0, 0, 0],
        indications: [0, 0, 0, 4, 0, 0, 0, 0],
      },
    });
  });

  it("several ports are told apart by the commands that would show them", () => {
    const text = show(kViews["dcb pfc"], both);
    expect(text?.split("\n").filter((line) => line.startsWith("#"))).toEqual([
      "# dcb -s pfc show dev a",
      "# dcb -s pfc show dev b",
    ]);
  });

  it("ets: shares are whole and make 100, strict classes have none", () => {
    expect(show(kViews["dcb ets"], b)).toBe(
      lines(
        "willing off ets-cap 8 cbs off ",
        "tc-bw 0:13 1:13 2:13 3:25 4:12 5:12 6:0 7:12 ",
        "pg-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 ",
        "tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets ",
        "prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 ",
        "reco-tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 ",
        "reco-tc-tsa 0:strict 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict ",
        "reco-prio-tc 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 ",
      ),
    );
    const willing = { ...b, dcbx: { enabled: true, ports: [{ ...kSwitch.dcbx?.ports[0], port: "b" }] as never } };
    expect(show(kViews["dcb ets"], willing)).toContain("willing on ets-cap");
    expect(show(kViews["dcb ets"], willing)).toContain("reco-prio-tc 0:0 1:0 2:1 3:3 4:3 5:3 6:3 7:3 \n");
    const strict = { strict: [0, 1, 2, 3, 4, 5, 6, 7], weights: [1, 1, 1, 1, 1, 1, 1, 1] };
    const all = { ...b, qos: { ...b.qos, scheduler: strict } };
    expect(show(kViews["dcb ets"], all)).toContain("tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 \n");
  });

  it("buffer: headroom of a switch, receive buffer of a NIC", () => {
    expect(show(kViews["dcb buffer"], b)).toBe(
      lines(
        "prio-buffer 0:0 1:0 2:0 3:3 4:0 5:0 6:0 7:0 ",
        "buffer-size 0:0b 1:0b 2:0b 3:96Kb 4:0b 5:0b 6:0b 7:0b ",
        "total-size 96Kb ",
      ),
    );
    expect(show(kViews["dcb buffer"], nic)).toContain("total-size 2Mb \n");
  });

  it("app: nothing by DSCP where DSCP is not trusted", () => {
    const text = show(kViews["dcb app"], b);
    expect(text).toMatch(/^default-prio 0 \ndscp-prio 0:0 1:0 .*26:3 .*63:7 \n$/);
    expect(show(kViews["dcb app"], nic)).toBe("default-prio 3 \n");
  });
});

describe("ethtool", () => {
  it("has mlx5's names and microseconds, the port's before those of its priorities", () => {
    expect(show(kViews.ethtool, b)).toBe(
      lines(
        "NIC statistics:",
        "     tx_packets: 5",
        "     tx_port_down: 4",
        "     host_tx_errors: 2",
        "     tx_prio3_packets: 200",
        "     tx_prio3_bytes: 216400",
        "     tx_prio3_marked: 3",
        "     cn_cp_transmitted_frames_prio3: 200",
        "     cn_cp_transmitted_cnms_prio3: 12",
        "     queue_watermark_bytes_prio3: 61200",
        "     rx_prio3_pause: 4",
        "     pfc_wd_storm_detected_prio3: 2",
        "     pfc_wd_storm_restored_prio3: 1",
        "     pfc_wd_tx_drop_prio3: 17",
        "     pfc_wd_rx_drop_prio3: 5",
        "     rx_prio3_pause_duration: 2500",
      ),
    );
  });

  it("of a NIC: its own, by priority as mlx5 has them, none of queue pairs", () => {
    const statistics = kViews.ethtool.json?.(nic, 0) as Record<string, Record<string, number>>;
    expect(statistics.eth1).toMatchObject({ tx_packets: 100, rx_prio3_pause: 9 });
    expect(Object.values(statistics.eth1 ?? {})).not.toContain(77);
  });

  it("counts impairments of a NIC's link, which bear the peer's name", () => {
    const faulty = count("lost", { device: "roce0", port: "sw" }, 4);
    const answers = { ...nic, counters: { ...nic.counters, counters: [...nic.counters.counters, faulty] } };
    expect(show(kViews.ethtool, answers)).toContain("     lost: 4\n");
  });

  it("counts impairments of a switch at the port that they are of", () => {
    const faulty = ["a", "b"].map((at) => count("lost", { device: "sw0", port: at }, 4));
    const answers = { ...both, counters: { ...both.counters, counters: [...both.counters.counters, ...faulty] } };
    expect(show(kViews.ethtool, answers)?.match(/lost: 4/g)).toHaveLength(2);
  });

  it("is laid out as ethtool itself does", () => {
    const pattern = /^NIC statistics:\n( {5}[^ \n]+: \d+\n)+$/;
    expect(fixture("ethtool-veth.txt")).toMatch(pattern);
    expect(show(kViews.ethtool, b)).toMatch(pattern);
  });
});

describe("SONiC", () => {
  it("pfc counters", () => {
    const many = count("pfc_rx_packets", { switch: "sw0", port: "a", priority: "3" }, 1_032_731);
    const answers = { ...both, counters: { ...both.counters, counters: [...both.counters.counters, many] } };
    expect(show(kViews["pfc counters"], answers)).toBe(
      lines(
        "  Port Rx    PFC0    PFC1    PFC2       PFC3    PFC4    PFC5    PFC6    PFC7",
        "---------  ------  ------  ------  ---------  ------  ------  ------  ------",
        "        a       0       0       0  1,032,731       0       0       0       0",
        "        b       0       0       0          4       0       0       0       0",
        "",
        "  Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7",
        "---------  ------  ------  ------  ------  ------  ------  ------  ------",
        "        a       0       0       0       7       0       0       0       0",
        "        b       0       0       0       0       0       0       0       0",
      ),
    );
    expect(kViews["pfc counters"].json?.(b, 0)).toMatchObject({
      "Port Rx": { b: { PFC3: 4 } },
      "Port Tx": { b: { PFC3: 0 } },
    });
  });

  it("pfc priority", () => {
    expect(show(kViews["pfc priority"], both)).toBe(
      lines(
        "Interface    Lossless priorities",
        "-----------  ---------------------",
        "a            3",
        "b            3",
      ),
    );
    expect(show(kViews["pfc priority"], nic)).toContain("eth1         N/A\n");
  });

  it("queue counters, and what is not counted by queue", () => {
    const text = show(kViews["queue counters"], b)?.split("\n");
    expect(text?.slice(0, 2)).toEqual([
      "  Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes",
      "------  -----  --------------  ---------------  -----------  ------------",
    ]);
    expect(text?.[5]).toBe("     b    UC3             200           216400          N/A           N/A");
    expect(kViews["queue counters"].json?.(b, 0)).toMatchObject({
      b: { UC3: { totalpacket: "200", totalbytes: "216400", droppacket: "N/A", dropbytes: "N/A" } },
    });
  });

  it("queue wredcounters", () => {
    const text = show(kViews["queue wredcounters"], b)?.split("\n");
    expect(text?.slice(0, 2)).toEqual([
      "  Port    TxQ    WredDrp/pkts    WredDrp/bytes    EcnMarked/pkts    EcnMarked/bytes",
      "------  -----  --------------  ---------------  ----------------  -----------------",
    ]);
    expect(text?.[5]).toBe("     b    UC3             N/A              N/A                 3                N/A");
  });

  it("watermarks", () => {
    expect(show(kViews["queue watermark"], both)).toBe(
      lines(
        "Egress shared pool occupancy per unicast queue:",
        "  Port    UC0    UC1    UC2    UC3    UC4    UC5    UC6    UC7",
        "------  -----  -----  -----  -----  -----  -----  -----  -----",
        "     a      0      0      0      0      0      0      0      0",
        "     b      0      0      0  61200      0      0      0      0",
      ),
    );
    expect(show(kViews["priority-group watermark shared"], both)).toContain(
      "     a      0      0      0  50000      0      0      0      0\n",
    );
    expect(show(kViews["priority-group watermark headroom"], both)).toContain(
      "Ingress headroom per PG:\n  Port    PG0",
    );
    expect(kViews["queue watermark"].json?.(b, 0)).toMatchObject([{ Port: "b", UC3: "61200" }]);
    expect(show(kViews["buffer_pool watermark"], both)).toBe(
      lines("Shared pool maximum occupancy:", "       Pool    Bytes", "-----------  -------", "shared_pool    70000"),
    );
    expect(kViews["buffer_pool watermark"].json?.(both, 0)).toEqual([{ shared_pool: "70000" }]);
  });

  it("priority-group drop counters", () => {
    expect(show(kViews["priority-group drop counters"], b)).toMatch(/^Ingress PG dropped packets:\n {2}Port {4}PG0/);
  });

  it("mac", () => {
    expect(show(kViews.mac, both)).toBe(
      lines(
        "  No.    Vlan  MacAddress         Port    Type",
        "-----  ------  -----------------  ------  -------",
        "    1       0  02:00:00:00:00:01  a       Dynamic",
        "    2       7  02:00:00:00:00:02  a,b     Static",
        "Total number of entries 2",
      ),
    );
  });

  it("draws as tabulate does", () => {
    const rows = [
      ["Ethernet0", "UC0", "0"],
      ["Ethernet0", "UC1", "60"],
    ];
    expect(tabulate(["Port", "TxQ", "WredDrp/pkts"], rows)).toBe(fixture("sonic-simple.txt"));
  });
});

describe("one port", () => {
  it("is found by its name or its interface's", () => {
    expect(onlyPort(both, "veth-b").ports.map(({ name }) => name)).toEqual(["b"]);
    expect(b.counters.counters.every(({ labels }) => labels.port === "b")).toBe(true);
    expect(b.switch.ports.map(({ name }) => name)).toEqual(["b"]);
    expect(b.fdb.map(({ mac }) => mac)).toEqual(["02:00:00:00:00:02"]);
  });

  it("is refused where there is none of the name", () => {
    expect(() => onlyPort(both, "c")).toThrow(
      expect.objectContaining({ message: "there is no port c", hint: "there are a, b" }),
    );
  });
});

describe("SONiC: what a switch is set to", () => {
  it("pfcwd stats", () => {
    const text = show(kViews["pfcwd stats"], both);
    expect(text?.split("\n")[0]).toBe(
      "  QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP",
    );
    expect(text?.split("\n")[3]).toBe(
      "    b:3      stormed                        2/1        200/17           N/A                N/A                N/A",
    );
    expect(kViews["pfcwd stats"].json?.(both, 0)).toEqual({
      "a:3": { STATUS: "operational", "STORM DETECTED/RESTORED": "0/0", "TX OK/DROP": "0/0" },
      "b:3": { STATUS: "stormed", "STORM DETECTED/RESTORED": "2/1", "TX OK/DROP": "200/17" },
    });
  });

  it("pfcwd config", () => {
    expect(show(kViews["pfcwd config"], b)).toBe(
      lines(
        "  PORT    ACTION    DETECTION TIME    RESTORATION TIME    HISTORY",
        "------  --------  ----------------  ------------------  ---------",
        "     b      drop               200                 400    disable",
      ),
    );
  });

  it("ecn config: a profile of ports each", () => {
    expect(show(kViews["ecn config"], both)).toBe(
      lines(
        "Profile: default",
        "----------------------  -------",
        "ecn                     ecn_all",
        "green_min_threshold     5000",
        "green_max_threshold     200000",
        "green_drop_probability  1",
        "queues                  3",
        "ports                   a",
        "----------------------  -------",
        "",
        "Profile: uplink",
        "----------------------  -------",
        "ecn                     ecn_all",
        "green_min_threshold     50000",
        "green_max_threshold     400000",
        "green_drop_probability  10",
        "queues                  3",
        "ports                   b",
        "----------------------  -------",
        "",
      ),
    );
  });

  it("buffer configuration: beta is a power of two times the priorities", () => {
    expect(kViews["buffer configuration"].json?.(both, 0)).toEqual({
      pools: { shared_pool: { mode: "dynamic", size: 12e6, type: "both" } },
      profiles: {
        default: {
          pool: "shared_pool",
          dynamic_th: 0,
          xoff: 22_400,
          xon_offset: 3000,
          lossy_dynamic_th: 0,
          ports: "a",
        },
        uplink: {
          pool: "shared_pool",
          dynamic_th: -2,
          xoff: 60_000,
          xon_offset: 3000,
          lossy_dynamic_th: 0,
          ports: "b",
        },
      },
    });
    expect(show(kViews["buffer configuration"], both)).toContain(
      lines("Pool: shared_pool", "----  --------", "mode  dynamic", "size  12000000", "type  both", "----  --------"),
    );
  });
});

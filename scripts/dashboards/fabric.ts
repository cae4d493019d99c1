// The dashboard of all NICs and switches together.
import { type Dashboard, q, quantile, rate } from "./dashboard.js";

export const kFabric: Dashboard = {
  uid: "weir-fabric",
  title: "Weir fabric",
  description: "All NICs and switches at a glance: where it is congested, who pauses whom, what is lost.",
  variables: [],
  rows: [
    {
      title: "Now",
      panels: [
        {
          title: "Daemons",
          description: "NICs and switches that are scraped.",
          unit: "short",
          stat: true,
          queries: [q("count by (kind) (weir_build_info)", "{{kind}}")],
        },
        {
          title: "Interfaces down",
          description: "Ports whose interface is down or gone.",
          unit: "short",
          stat: true,
          queries: [q("count(weir_port_up == 0) or vector(0)", "down")],
        },
        {
          title: "Priorities paused",
          description: "Ports and priorities that a neighbour has stopped now.",
          unit: "short",
          stat: true,
          queries: [q('sum(weir_switch_pfc_paused{direction="rx"})', "paused")],
        },
        {
          title: "Lossless drops",
          description: "Frames lost at lossless priorities in the last hour.",
          unit: "short",
          stat: true,
          queries: [
            q(
              "sum(increase(weir_switch_pg_dropped_packets_total[1h]) * on (instance, switch, priority) group_left () weir_switch_pfc_enabled)",
              "switches",
            ),
            q(
              "sum(increase(weir_nic_prio_buf_discard_packets_total[1h]) * on (instance, device, priority) group_left () weir_nic_pfc_enabled)",
              "NICs",
            ),
          ],
        },
      ],
    },
    {
      title: "Traffic and congestion",
      panels: [
        {
          title: "Received by NICs",
          description: "Bits of frames, the ten NICs that receive most.",
          unit: "bps",
          queries: [q(`topk(10, sum by (device) (${rate("rdma_rx_bytes_total")}) * 8)`, "{{device}}")],
        },
        {
          title: "Marks, CNPs sent, CNPs handled",
          description: "Over the whole fabric. What is sent and not handled was lost on the way, or ignored.",
          unit: "pps",
          queries: [
            q(`sum(${rate("weir_switch_queue_wred_ecn_marked_packets_total")})`, "marked by switches"),
            q(`sum(${rate("rdma_np_ecn_marked_roce_packets_total")})`, "marked, received"),
            q(`sum(${rate("rdma_np_cnp_sent_total")})`, "CNPs sent"),
            q(`sum(${rate("rdma_rp_cnp_handled_total")})`, "CNPs handled"),
          ],
        },
        {
          title: "Longest queues",
          description: "99% of the time a queue was shorter than this; the ten longest.",
          unit: "bytes",
          queries: [
            q(
              `topk(10, histogram_quantile(0.99, sum by (switch, port, priority, le) (${rate("weir_switch_queue_length_bytes_bucket")})))`,
              "{{switch}} {{port}} {{priority}}",
            ),
          ],
        },
        {
          title: "Flows limited",
          description: "Queue pairs that reaction points hold below the line rate, by NIC.",
          unit: "short",
          queries: [q("sum by (device) (weir_rp_cur_flows)", "{{device}}")],
        },
      ],
    },
    {
      title: "Pauses",
      panels: [
        {
          title: "Who is stopped",
          description: "Share of time that a neighbour stops these ports of switches and NICs.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `topk(10, ${rate('weir_switch_pfc_pause_seconds_total{direction="rx"}')})`,
              "{{switch}} {{port}} {{priority}}",
            ),
            q(
              `topk(10, ${rate('rdma_roce_pfc_pause_duration_total{direction="rx"}')} / 1e6)`,
              "{{device}} {{priority}}",
            ),
          ],
        },
        {
          title: "Who stops others",
          description:
            "Share of time that these ports stop their neighbour. One that stops and is not stopped is where it begins.",
          unit: "percentunit",
          max: 1,
          queries: [
            q(
              `topk(10, ${rate('weir_switch_pfc_pause_seconds_total{direction="tx"}')})`,
              "{{switch}} {{port}} {{priority}}",
            ),
            q(
              `topk(10, ${rate('rdma_roce_pfc_pause_duration_total{direction="tx"}')} / 1e6)`,
              "{{device}} {{priority}}",
            ),
          ],
        },
      ],
    },
    {
      title: "Losses and hosts",
      panels: [
        {
          title: "Drops",
          description: "Frames dropped by switches and NICs, by reason.",
          unit: "pps",
          queries: [
            q(`sum by (reason) (${rate("weir_switch_port_dropped_packets_total")})`, "switches {{reason}}"),
            q(`sum by (reason) (${rate("weir_nic_dropped_packets_total")})`, "NICs {{reason}}"),
          ],
        },
        {
          title: "Lost by hosts",
          description: "Frames that came while a receive ring was full.",
          unit: "pps",
          queries: [
            q(`sum by (switch) (${rate("weir_switch_port_host_rx_overrun_total")})`, "{{switch}}"),
            q(`sum by (device) (${rate("weir_nic_host_rx_overrun_packets_total")})`, "{{device}}"),
          ],
        },
        {
          title: "Gap between turns, 99%",
          description: "Of every poll loop: what its host adds to every reaction.",
          unit: "s",
          queries: [quantile(0.99, "worker", "weir_worker_loop_gap_seconds_bucket")],
        },
        {
          title: "CPU",
          description: "CPUs that each daemon uses.",
          unit: "short",
          queries: [
            q(
              `${rate("process_cpu_seconds_total")} * on (instance) group_left (kind) weir_build_info`,
              "{{instance}} {{kind}}",
            ),
          ],
        },
      ],
    },
  ],
};
